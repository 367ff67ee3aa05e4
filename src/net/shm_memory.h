// ShmMemory: the memory of one ring that two processes share, mapped into this process.
//
// The memory is a memfd, not a file in /dev/shm: it needs no name, no clean-up and no space in
// /dev/shm (containers have 64 MB). Its size is sealed, so that neither process can shrink it and
// no access ends in SIGBUS. The memory holds one page of control words, then `capacity` bytes.
// These are mapped twice in a row, so that a record which begins near the end is still contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace weft::net {

class ShmMemory {
 public:
  static constexpr std::size_t kCapacityMin = 256u << 10, kCapacityMax = 16u << 20;

  // Allocates zeroed memory with all pages present. REQUIRES a capacity that is a power of two from
  // kCapacityMin to kCapacityMax. Errors: kSystem.
  static Result<ShmMemory> create(std::size_t capacity);
  // Maps memory that a peer sent. Refuses it unless its size is sealed and is a size that create()
  // makes. Always takes ownership of the descriptor. Errors: kInvalid, kSystem.
  static Result<ShmMemory> adopt(int fd);

  ShmMemory() = default;
  ShmMemory(ShmMemory&& other) noexcept { *this = static_cast<ShmMemory&&>(other); }
  ShmMemory& operator=(ShmMemory&& other) noexcept;
  ~ShmMemory();

  // The memfd, to be passed to the other process; -1 after close_fd().
  int fd() const { return fd_; }
  // Closes the descriptor; the mapping stays.
  void close_fd();

  std::byte* control() const { return base_; }
  std::byte* data() const { return base_ + kControlSize; }  // 2 * capacity() bytes are readable
  std::size_t capacity() const { return capacity_; }

 private:
  static constexpr std::size_t kControlSize = 4096;
  Result<void> map(std::size_t capacity);

  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace weft::net
