#include "lab/lab_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft::lab {
namespace {

constexpr const char* kLabSuffix = ".lab";
constexpr const char* kMarkSuffix = ".run";

Error cannot(const std::string& path, const char* what) {
  return {ErrorKind::kSystem, fmt::format("lab: {}: {}: {}", path, what, strerrordesc_np(errno))};
}

bool is_ours(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

bool is_mine_alone(const std::string& path) {
  struct stat about {};
  return is_ours(path) && lstat(path.c_str(), &about) == 0 && (about.st_mode & 022) == 0;
}

struct flock whole_file() {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return whole;
}

}  // namespace

Result<LabFolder> LabFolder::open() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  std::vector<std::string> candidates;
  if (geteuid() == 0) candidates.push_back("/run/weft");
  if (runtime != nullptr && runtime[0] == '/') candidates.push_back(std::string(runtime) + "/weft");
  candidates.push_back(fmt::format("/tmp/weft-{}", geteuid()));
  // Root of a user namespace may be unable to write to /run. Then the next candidate is used.
  for (const std::string& path : candidates) {
    mkdir(path.c_str(), 0755);  // other users may read it: control sockets are here
    if (is_mine_alone(path) && access(path.c_str(), W_OK) == 0) return LabFolder(path);
    // If this folder belongs to us but cannot be used, it is an error: it may contain labs, and
    // another folder would hide them.
    if (!is_ours(path)) continue;
    return Error{ErrorKind::kSystem,
                 is_mine_alone(path)
                     ? fmt::format("lab: {}: cannot be written to; is it mounted read-only?", path)
                     : fmt::format("lab: {}: others may write to it; chmod 755 {}", path, path)};
  }
  return Error{ErrorKind::kSystem,
               fmt::format("lab: {}: expected a folder that belongs to us and that nobody else may "
                           "write to; move it away",
                           candidates.back())};
}

Result<os::FileDescriptor> LabFolder::lock() const {
  const std::string file = path_ + "/lock";
  os::FileDescriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) return cannot(file, "cannot be opened");
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return cannot(file, "cannot be locked");
  }
  return fd;
}

// The names of files with this suffix, without it; sorted.
std::vector<std::string> LabFolder::stems(const char* suffix) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (entry.path().extension() == suffix) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> LabFolder::names() const { return stems(kLabSuffix); }

// The lock belongs to the open file description, which child processes of the maker share. The
// kernel releases the lock when the last of these processes has ended. is_abandoned() only tests
// the lock, so it never blocks a process.
Result<os::FileDescriptor> LabFolder::hold(const std::string& name) const {
  const std::string path = mark(name);
  os::FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) return cannot(path, "cannot be opened");
  struct flock whole = whole_file();
  if (fcntl(fd.get(), F_OFD_SETLK, &whole) != 0) return cannot(path, "cannot be locked");
  return fd;
}

bool LabFolder::is_abandoned(const std::string& name) const {
  const os::FileDescriptor fd(::open(mark(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock whole = whole_file();
  return fd.is_open() && fcntl(fd.get(), F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
}

std::vector<std::string> LabFolder::abandoned() const {
  std::vector<std::string> names = stems(kMarkSuffix);
  std::erase_if(names, [this](const std::string& name) { return !is_abandoned(name); });
  return names;
}

Result<LabState> LabFolder::read(const std::string& name) const {
  std::ifstream in(file(name), std::ios::binary);
  std::stringstream text;
  if (in.is_open()) text << in.rdbuf();
  if (!in.is_open()) {
    std::string there;
    for (const std::string& other : names()) there += (there.empty() ? "" : ", ") + other;
    return Error{ErrorKind::kNotFound, fmt::format("lab: there is none called {}; {}", name,
                                                   there.empty() ? "`weft lab up FILE` makes one"
                                                                 : "there are " + there)};
  }
  auto state = lab_state_from(text.str());
  if (!state) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("lab: {}: {}; it is damaged: remove the namespaces weft.{}.* that `ip "
                             "netns list` shows, each with `ip netns del`, and then this file",
                             file(name), state.error().message, name)};
  }
  return state;
}

Result<void> LabFolder::write(const LabState& state) const {
  const std::string to = file(state.spec.name), temporary = to + ".new";
  const std::string text = to_text(state);
  os::FileDescriptor fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) return cannot(temporary, "cannot be opened");
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const Error error = cannot(temporary, "cannot be written");
    unlink(temporary.c_str());
    return error;
  }
  if (std::rename(temporary.c_str(), to.c_str()) != 0) return cannot(to, "cannot be written");
  return {};
}

Result<void> LabFolder::forget(const std::string& name) const {
  if (unlink(control(name).c_str()) != 0 && errno != ENOENT)
    return cannot(control(name), "cannot be removed");
  if (unlink(file(name).c_str()) != 0 && errno != ENOENT)
    return cannot(file(name), "cannot be removed");
  // Remove the mark last: as long as it exists, a later sweep finds whatever else is left.
  if (unlink(mark(name).c_str()) != 0 && errno != ENOENT)
    return cannot(mark(name), "cannot be removed");
  return {};
}

std::string LabFolder::file(const std::string& name) const {
  return path_ + "/" + name + kLabSuffix;
}
std::string LabFolder::mark(const std::string& name) const {
  return path_ + "/" + name + kMarkSuffix;
}

}  // namespace weft::lab
