#include "os/file_text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace weft::os {
namespace {

// Opens a file without waiting: a pipe may have no writer. Null with errno on an error; null with
// errno 0 when the path is neither a file nor a character device.
std::FILE* open_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return nullptr;
  struct stat info {};
  errno = 0;
  if (fstat(fd, &info) == 0) {
    if (S_ISREG(info.st_mode) || S_ISCHR(info.st_mode)) return fdopen(fd, "rb");
    errno = S_ISDIR(info.st_mode) ? EISDIR : 0;
  }
  const int why = errno;
  close(fd);
  errno = why;
  return nullptr;
}

}  // namespace

Result<std::string> file_text(const std::string& path, const std::string& expected,
                              std::size_t bytes_max) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: cannot be read: {}; expected {}", path, why, expected)};
  };
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(open_file(path.c_str()), close);
  if (!file) return refused(errno != 0 ? std::strerror(errno) : "it is a pipe or a disk, no file");
  std::string text;
  char piece[4096];
  for (std::size_t count; (count = std::fread(piece, 1, sizeof piece, file.get())) > 0;) {
    text.append(piece, count);
    if (text.size() > bytes_max) return refused(fmt::format("larger than {} bytes", bytes_max));
  }
  if (std::ferror(file.get()) != 0) return refused(std::strerror(errno));
  return text;
}

}  // namespace weft::os
