// LiveFile: the state of a device that running processes of a host share: a number that changes
// with the controller's settings, and which processes use which profile.
//
// One small file that is never replaced. Its first eight bytes are the number. They are mapped, so
// that reading the number takes no system call.
//
// A process uses a profile as long as it holds an OFD read lock on the profile's byte: the kernel
// releases the lock when the process ends, for whatever reason. A controller that needs an unused
// profile takes the write lock. To mark an EV as bad, a process holds a read lock on the EV's byte:
// this works without permission to write to the file.
//
// The number is 2 * generation, thus even. It is odd while a change is written, or if the writer
// died: then the generation is unknown, and the next change makes the number even again.
//
// A forked child must not keep its parent's locks: the descriptor is closed in the child.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/ctl_error.h"
#include "control/ctl_model.h"
#include "os/file_descriptor.h"

namespace weft::control {

enum class ProfileKind : std::uint8_t { kEv = 0, kCc = 1 };

class LiveFile {
 public:
  // A file in an open directory. `create`: make the file if it is missing. Errors: kNotFound,
  // kSystem.
  struct Options {
    int directory = -1;
    std::string name{};
    bool create = false;
  };
  LiveFile() = default;
  Result<void> open(const Options& options);
  ~LiveFile();
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  bool is_open() const { return mapped_number_ != nullptr; }
  // Takes no system call. REQUIRES is_open().
  std::uint64_t number() const { return mapped_number_->load(std::memory_order_acquire); }
  // Only controllers call this. Errors: kSystem.
  Result<void> set_number(std::uint64_t value);

  // Counts one more user of the profile in this process. Errors: EAGAIN if a controller holds the
  // write lock for longer than a moment; EIO.
  CtlResult<void> lock(ProfileKind kind, std::uint32_t id);
  void unlock(ProfileKind kind, std::uint32_t id);

  // Marks entry `entry` of EV profile `id` as bad for this process, or removes the mark. REQUIRES
  // both numbers within bounds.
  void mark_bad(std::uint32_t id, std::uint32_t entry, bool bad);
  // For each of the first `count` EVs of the profile: whether another open file of this device
  // marks it as bad.
  std::vector<bool> found_bad(std::uint32_t id, std::uint32_t count) const;

  // Takes the write lock: no process can use the profile until the returned descriptor is closed.
  // EBUSY if a process uses the profile.
  CtlResult<os::FileDescriptor> exclude(ProfileKind kind, std::uint32_t id) const;

 private:
  Options options_{};
  std::atomic<int> fd_ = -1;
  std::atomic<std::uint64_t>* mapped_number_ = nullptr;  // mapped, read-only
  std::mutex mutex_;
  std::array<std::array<std::uint32_t, kEvProfilesMax>, 2> users_{};
};

static_assert(kEvProfilesMax == kCcProfilesMax);

}  // namespace weft::control
