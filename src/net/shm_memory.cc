#include "net/shm_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "os/system_error.h"

namespace weft::net {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool is_capacity(std::size_t bytes) {
  return std::has_single_bit(bytes) && bytes >= ShmMemory::kCapacityMin &&
         bytes <= ShmMemory::kCapacityMax;
}

}  // namespace

Result<ShmMemory> ShmMemory::create(std::size_t capacity) {
  WEFT_ASSERT(is_capacity(capacity));
  ShmMemory memory;
  memory.fd_ = memfd_create("weft-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.fd_ < 0) return os::system_error("memfd_create");
  if (ftruncate(memory.fd_, static_cast<off_t>(kControlSize + capacity)) != 0 ||
      fcntl(memory.fd_, F_ADD_SEALS, kSeals) != 0) {
    return os::system_error("memfd");
  }
  WEFT_CHECK(memory.map(capacity));
  return memory;
}

Result<ShmMemory> ShmMemory::adopt(int fd) {
  ShmMemory memory;
  memory.fd_ = fd;
  struct stat status {};
  // Only a memfd can have seals.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd, &status) != 0)
    return Error{ErrorKind::kInvalid, "shared memory of a peer: its size is not sealed"};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size < kControlSize || !is_capacity(size - kControlSize))
    return Error{ErrorKind::kInvalid, "shared memory of a peer: its size cannot be"};
  WEFT_CHECK(memory.map(size - kControlSize));
  return memory;
}

Result<void> ShmMemory::map(std::size_t capacity) {
  const std::size_t once = kControlSize + capacity, all = once + capacity;
  // Reserves the address range first, so that no other mapping gets between the two halves.
  void* const base = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return os::system_error("mmap of shared memory");
  base_ = static_cast<std::byte*>(base);
  capacity_ = capacity;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
  if (mmap(base_, once, kAccess, kFlags, fd_, 0) == MAP_FAILED ||
      mmap(base_ + once, capacity, kAccess, kFlags, fd_, kControlSize) == MAP_FAILED) {
    return os::system_error("mmap of shared memory");
  }
  // A forked child must not use the rings of its parent.
  madvise(base_, all, MADV_DONTFORK);
  return {};
}

ShmMemory& ShmMemory::operator=(ShmMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

ShmMemory::~ShmMemory() {
  close_fd();
  if (base_ != nullptr) munmap(base_, kControlSize + 2 * capacity_);
}

void ShmMemory::close_fd() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace weft::net
