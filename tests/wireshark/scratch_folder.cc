#include "scratch_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace weft::mrc_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string pattern = (fs::temp_directory_path() / "weft-mrc-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error(pattern + ": cannot be made");
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ScratchFolder::write(const std::string& name, std::string_view content) const {
  const std::string path = path_ + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
  return path;
}

std::string ScratchFolder::run(const std::string& command) const {
  const std::string out = path_ + "/stdout", complaints = path_ + "/stderr";
  if (std::system((command + " > " + out + " 2> " + complaints).c_str()) != 0)
    throw std::runtime_error(command + ": " + text_of(complaints));
  return text_of(out);
}

}  // namespace weft::mrc_test
