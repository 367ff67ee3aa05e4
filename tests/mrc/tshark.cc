#include "tshark.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace weft::mrc_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t to = text.find(at); to != std::string::npos; to = text.find(at, from)) {
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  parts.push_back(text.substr(from));
  return parts;
}

// 0x0123 is 291, True is 1: versions of tshark differ.
std::string plain(const std::string& value) {
  if (value == "True") return "1";
  if (value == "False") return "0";
  if (value.rfind("0x", 0) != 0) return value;
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(value.c_str(), &end, 16);
  return *end == '\0' ? std::to_string(number) : value;
}

std::string plain_list(const std::string& values) {
  std::string out;
  for (const std::string& value : split(values, ',')) {
    if (!out.empty()) out += ',';
    out += plain(value);
  }
  return out;
}

}  // namespace

Tshark::Tshark() {
  std::string pattern = (fs::temp_directory_path() / "weft-tshark-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for a capture");
  folder_ = pattern;
}

Tshark::~Tshark() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool Tshark::is_installed() { return std::system("command -v tshark > /dev/null 2>&1") == 0; }

void Tshark::add(ConstBytes frame) {
  const Time at = Time{} + Duration::ns(static_cast<std::int64_t>(++frame_count_));
  while (!pcap_.append(at, frame)) {
    capture_ += pcap_.pending();
    pcap_.clear();
  }
}

std::vector<Row> Tshark::read(const std::vector<std::string>& fields,
                              const std::vector<std::string>& options) {
  const fs::path capture = fs::path(folder_) / "frames.pcap";
  const fs::path out = fs::path(folder_) / "rows", complaints = fs::path(folder_) / "complaints";
  std::ofstream(capture, std::ios::binary) << capture_ << pcap_.pending();
  // Tests run in the root of the repository.
  std::string command = "tshark -n -X lua_script:tools/wireshark/mrc.lua -r " + capture.string();
  command += " -o udp.try_heuristic_first:TRUE -T fields -E separator=/t -E occurrence=a";
  for (const std::string& option : options) command += " -o " + option;
  for (const std::string& field : fields) command += " -e " + field;
  command += " > " + out.string() + " 2> " + complaints.string();
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command + text_of(complaints));

  std::vector<Row> rows;
  std::stringstream lines(text_of(out));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> values = split(line, '\t');
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < fields.size() && i < values.size(); ++i) {
      const bool is_text = fields[i].rfind("_ws.", 0) == 0;
      row[fields[i]] = is_text ? values[i] : plain_list(values[i]);
    }
  }
  return rows;
}

}  // namespace weft::mrc_test
