#include "settings/secret_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "seal/key_schedule.h"

namespace weft::settings {
namespace {

constexpr std::size_t kSecretSizeMax = 4096;
constexpr const char* kHowToMake = "make one with `(umask 077; head -c 32 /dev/urandom > FILE)`";

Error refused(const std::string& path, const std::string& why) {
  return {ErrorKind::kInvalid, fmt::format("secret file {}: {}", path, why)};
}

}  // namespace

Result<std::vector<std::byte>> read_secret_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int code = errno;
    const std::string why = std::strerror(code);
    return refused(path, code == ENOENT ? fmt::format("{}; {}", why, kHowToMake)
                                        : why + "; expected a file that this user may read");
  }
  struct stat about {};
  std::vector<std::byte> bytes(kSecretSizeMax + 1);
  const bool known = fstat(fd, &about) == 0;
  const bool regular = known && S_ISREG(about.st_mode);
  const ssize_t size = regular ? read(fd, bytes.data(), bytes.size()) : -1;
  const std::string why = std::strerror(errno);
  close(fd);
  if (!regular) return refused(path, fmt::format("not a file; {}", kHowToMake));
  if ((about.st_mode & 077) != 0) {
    return refused(path, fmt::format("others may read it (mode {:03o}), expected 600; "
                                     "`chmod 600 {}`, or make another if they did",
                                     about.st_mode & 0777, path));
  }
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return refused(path, fmt::format("it belongs to another user ({}), who may read it; expected "
                                     "one of ours",
                                     about.st_uid));
  }
  if (size < 0) return refused(path, "it cannot be read: " + why);
  bytes.resize(static_cast<std::size_t>(size));
  if (bytes.size() < seal::KeySchedule::kSecretSizeMin || bytes.size() > kSecretSizeMax) {
    return refused(path, fmt::format("expected {} to {} bytes, found {}{}; {}",
                                     seal::KeySchedule::kSecretSizeMin, kSecretSizeMax,
                                     bytes.size() > kSecretSizeMax ? "more than " : "",
                                     std::min(bytes.size(), kSecretSizeMax), kHowToMake));
  }
  return bytes;
}

}  // namespace weft::settings
