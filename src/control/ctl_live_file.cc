#include "control/ctl_live_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "os/system_error.h"

namespace weft::control {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

using os::system_error;

struct flock range_lock(short type, off_t start, off_t size) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = size;
  return lock;
}

// The file offset of the bytes for the EVs of profile `id`.
off_t evs_at(std::uint32_t id) { return 0x10'0000 + static_cast<off_t>(id) * kEvsPerProfileMax; }

struct flock byte_lock(short type, ProfileKind kind, std::uint32_t id) {
  const off_t base = kind == ProfileKind::kEv ? 0x1'0000 : 0x2'0000;
  return range_lock(type, base + static_cast<off_t>(id), 1);
}

// Descriptors that a child of fork() must close. OFD locks belong to the open file, which parent
// and child share: without closing, the locks would outlive the parent.
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

// Links a complete file to its name, so that no process sees a shorter file. The first page is
// written, because on a full file system reading a hole raises SIGBUS. If several processes do
// this, the first that links the name makes the file. The temporary name is random, because
// containers that share the directory may have the same thread numbers.
Result<void> make_file(const LiveFile::Options& options) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) return system_error("getrandom");
  const std::string fresh = fmt::format("{}.{:016x}.new", options.name, number);
  const os::FileDescriptor made(openat(options.directory, fresh.c_str(),
                                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!made.is_open()) return system_error(options.name);
  const std::array<std::byte, kWordBytes> zero{};
  errno = ENOSPC;  // the reason if fewer bytes are written
  const bool written = fchmod(made.get(), 0644) == 0 &&
                       pwrite(made.get(), zero.data(), zero.size(), 0) == kWordBytes;
  const bool named = written && (linkat(options.directory, fresh.c_str(), options.directory,
                                        options.name.c_str(), 0) == 0 ||
                                 errno == EEXIST);
  const int error = errno;
  unlinkat(options.directory, fresh.c_str(), 0);
  errno = error;
  if (!named) return system_error(options.name);
  return {};
}

}  // namespace

Result<void> LiveFile::open(const Options& options) {
  WEFT_ASSERT(!is_open());
  options_ = options;
  // O_NONBLOCK: open() must not wait if the name is a FIFO.
  const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int fd = openat(options.directory, options.name.c_str(), O_RDONLY | flags);
  if (fd < 0 && errno == ENOENT && options.create) {
    WEFT_CHECK(make_file(options));
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
  // The file is opened a second time for locks: a mapping keeps its open file alive, also in a
  // forked child, and locks would stay with it.
  fd_ = openat(options.directory, options.name.c_str(), O_RDONLY | flags);
  if (fd_ < 0) {
    const Error error = system_error(options.name);
    munmap(mapped, kWordBytes);
    return error;
  }
  mapped_number_ = static_cast<std::atomic<std::uint64_t>*>(mapped);
  if (!remember(&fd_)) {
    return Error{ErrorKind::kExhausted,
                 fmt::format("a process opens a device at most {} times", kOpenMax)};
  }
  return {};
}

LiveFile::~LiveFile() {
  forget(&fd_);
  if (mapped_number_ != nullptr) munmap(mapped_number_, kWordBytes);
  if (const int fd = fd_.exchange(-1); fd >= 0) close(fd);
}

Result<void> LiveFile::set_number(std::uint64_t value) {
  const os::FileDescriptor file(openat(options_.directory, options_.name.c_str(),
                                       O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
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
  // A controller holds the write lock only while it writes a file. One second is very long for
  // that.
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
  (void)fcntl(fd_, F_OFD_SETLK, &none);  // can fail only in a forked child, which holds no lock
}

void LiveFile::mark_bad(std::uint32_t id, std::uint32_t entry, bool bad) {
  struct flock want = range_lock(bad ? F_RDLCK : F_UNLCK, evs_at(id) + entry, 1);
  // No process takes write locks on these bytes, so this fails only if the kernel is out of memory.
  // Then other processes do not see the mark.
  (void)fcntl(fd_, F_OFD_SETLK, &want);
}

std::vector<bool> LiveFile::found_bad(std::uint32_t id, std::uint32_t count) const {
  std::vector<bool> bad(count);
  // Within a range the kernel reports only one lock. The parts before and after that lock are
  // queried separately.
  std::vector<std::pair<off_t, off_t>> ranges{{0, static_cast<off_t>(count)}};
  while (!ranges.empty()) {
    const auto [begin, end] = ranges.back();
    ranges.pop_back();
    if (begin >= end) continue;
    struct flock lock = range_lock(F_WRLCK, evs_at(id) + begin, end - begin);
    if (fcntl(fd_, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) continue;
    const off_t from = std::max(lock.l_start - evs_at(id), begin);
    const off_t to = lock.l_len == 0 ? end : std::min(lock.l_start + lock.l_len - evs_at(id), end);
    for (off_t i = from; i < to; ++i) bad[static_cast<std::size_t>(i)] = true;
    ranges.emplace_back(begin, from);
    ranges.emplace_back(to, end);
  }
  return bad;
}

CtlResult<os::FileDescriptor> LiveFile::exclude(ProfileKind kind, std::uint32_t id) const {
  os::FileDescriptor file(
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

}  // namespace weft::control
