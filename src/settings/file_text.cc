#include "settings/file_text.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace weft::settings {

Result<std::string> file_text(const std::string& path, const std::string& expected,
                              std::size_t bytes_max) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: cannot be read: {}; expected {}", path, why, expected)};
  };
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rbe"), close);
  if (!file) return refused(std::strerror(errno));
  std::string text;
  char piece[4096];
  for (std::size_t count; (count = std::fread(piece, 1, sizeof piece, file.get())) > 0;) {
    text.append(piece, count);
    if (text.size() > bytes_max) return refused(fmt::format("larger than {} bytes", bytes_max));
  }
  // A folder opens, and is refused here.
  if (std::ferror(file.get()) != 0) return refused(std::strerror(errno));
  return text;
}

}  // namespace weft::settings
