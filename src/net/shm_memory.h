// ShmMemory: the memory of one ring that two processes share, mapped here.
//
// A memfd, not a file in /dev/shm: it needs no name, no clean-up and no room there (containers have
// 64 MB), and its size is sealed, so that no process can shrink it under the other and no access
// ever ends in SIGBUS. One page of control words, then `capacity` bytes, mapped twice in a row: what
// begins near the end goes on at the beginning, and no record is ever cut.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace weft::net {

class ShmMemory {
 public:
  static constexpr std::size_t kCapacityMin = 256u << 10, kCapacityMax = 16u << 20;

  // New memory, all zero, touched. REQUIRES a power of two from kCapacityMin to kCapacityMax.
  // Errors: kSystem.
  static Result<ShmMemory> create(std::size_t capacity);
  // What a peer sent: refused unless its size is sealed and one that create() would take. Takes the
  // descriptor in any case. Errors: kInvalid, kSystem.
  static Result<ShmMemory> adopt(int fd);

  ShmMemory() = default;
  ShmMemory(ShmMemory&& other) noexcept { *this = static_cast<ShmMemory&&>(other); }
  ShmMemory& operator=(ShmMemory&& other) noexcept;
  ~ShmMemory();

  // To be sent to the other process; -1 after close_fd().
  int fd() const { return fd_; }
  // The mapping stays: a descriptor is not needed for it.
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
