#include "device/ctl_live_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::device {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

Error system_error(const std::string& what) {
  return {ErrorKind::kSystem, fmt::format("{}: {}", what, std::strerror(errno))};
}

struct flock byte_lock(short type, ProfileKind kind, std::uint32_t id) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = (kind == ProfileKind::kEv ? 0x1'0000 : 0x2'0000) + static_cast<off_t>(id);
  lock.l_len = 1;
  return lock;
}

// What a child of fork() closes. A lock belongs to the open file, which the child shares: it would
// outlive its parent.
constexpr std::size_t kOpenMax = 64;
std::array<std::atomic<std::atomic<int>*>, kOpenMax> open_files{};

void close_in_child() {
  for (auto& slot : open_files) {
    std::atomic<int>* const file = slot.load();
    if (file == nullptr) continue;
    const int fd = file->exchange(-1);
    if (fd >= 0) close(fd);
  }
}

bool remember(std::atomic<int>* file) {
  static const int registered = pthread_atfork(nullptr, nullptr, close_in_child);
  if (registered != 0) return false;
  for (auto& slot : open_files) {
    std::atomic<int>* none = nullptr;
    if (slot.compare_exchange_strong(none, file)) return true;
  }
  return false;
}

void forget(std::atomic<int>* file) {
  for (auto& slot : open_files) {
    std::atomic<int>* mine = file;
    if (slot.compare_exchange_strong(mine, nullptr)) return;
  }
}

}  // namespace

Result<void> LiveFile::open(const Options& options) {
  WEFT_ASSERT(!is_open());
  options_ = options;
  const int flags = O_CLOEXEC | O_NOFOLLOW;
  int fd = openat(options.directory, options.name.c_str(), O_RDONLY | flags);
  if (fd < 0 && errno == ENOENT && options.create) {
    // Whoever is first gives it its size; no smaller file is ever seen under that name by a reader
    // that checks it.
    net::FileDescriptor made(
        openat(options.directory, options.name.c_str(), O_RDWR | O_CREAT | flags, 0644));
    if (!made.is_open() || fchmod(made.get(), 0644) != 0 ||
        ftruncate(made.get(), kWordBytes) != 0) {
      return system_error(options.name);
    }
    fd = openat(options.directory, options.name.c_str(), O_RDONLY | flags);
  }
  if (fd < 0) {
    const bool missing = errno == ENOENT;
    Error error = system_error(options.name);
    if (missing) error.kind = ErrorKind::kNotFound;
    return error;
  }
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size < static_cast<off_t>(kWordBytes)) {
    close(fd);
    return Error{ErrorKind::kSystem, fmt::format("{} is damaged; remove it", options.name)};
  }
  void* const mapped = mmap(nullptr, kWordBytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return system_error(options.name);
  // Opened once more: a mapping keeps its open file alive, and with it the locks, also in a child.
  fd_ = openat(options.directory, options.name.c_str(), O_RDONLY | flags);
  if (fd_ < 0) {
    const Error error = system_error(options.name);
    munmap(mapped, kWordBytes);
    return error;
  }
  word_ = static_cast<std::atomic<std::uint64_t>*>(mapped);
  if (!remember(&fd_)) {
    return Error{ErrorKind::kExhausted,
                 fmt::format("a process opens a device at most {} times", kOpenMax)};
  }
  return {};
}

LiveFile::~LiveFile() {
  forget(&fd_);
  if (word_ != nullptr) munmap(word_, kWordBytes);
  if (const int fd = fd_.exchange(-1); fd >= 0) close(fd);
}

Result<void> LiveFile::set_number(std::uint64_t value) {
  const net::FileDescriptor file(
      openat(options_.directory, options_.name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return system_error(options_.name);
  void* const mapped = mmap(nullptr, kWordBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return system_error(options_.name);
  static_cast<std::atomic<std::uint64_t>*>(mapped)->store(value, std::memory_order_release);
  munmap(mapped, kWordBytes);
  return {};
}

CtlResult<void> LiveFile::lock(ProfileKind kind, std::uint32_t id) {
  const std::lock_guard hold(mutex_);
  std::uint32_t& users = users_[static_cast<std::size_t>(kind)][id];
  if (users > 0) {
    ++users;
    return {};
  }
  struct flock want = byte_lock(F_RDLCK, kind, id);
  // A controller holds the write lock while it writes a file: a second is very long for that.
  for (int tries = 0; fcntl(fd_, F_OFD_SETLK, &want) != 0; ++tries) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
      return ctl_error(EIO, fmt::format("{}: {}", options_.name, std::strerror(errno)));
    }
    if (tries == 1000) return ctl_error(EAGAIN, "a controller is changing this profile");
    usleep(1000);
  }
  users = 1;
  return {};
}

void LiveFile::unlock(ProfileKind kind, std::uint32_t id) {
  const std::lock_guard hold(mutex_);
  std::uint32_t& users = users_[static_cast<std::size_t>(kind)][id];
  WEFT_ASSERT(users > 0);
  if (--users > 0) return;
  struct flock none = byte_lock(F_UNLCK, kind, id);
  (void)fcntl(fd_, F_OFD_SETLK, &none);  // fails only in a forked child, which holds no lock
}

CtlResult<net::FileDescriptor> LiveFile::exclude(ProfileKind kind, std::uint32_t id) const {
  net::FileDescriptor file(
      openat(options_.directory, options_.name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) {
    return ctl_error(errno == EACCES ? EPERM : EIO,
                     fmt::format("{}: {}", options_.name, std::strerror(errno)));
  }
  struct flock want = byte_lock(F_WRLCK, kind, id);
  if (fcntl(file.get(), F_OFD_SETLK, &want) == 0) return file;
  if (errno == EAGAIN || errno == EACCES) return ctl_error(EBUSY, "QPs use this profile");
  return ctl_error(EIO, fmt::format("{}: {}", options_.name, std::strerror(errno)));
}

}  // namespace weft::device
