// LiveFile: state of a device that the living processes of a host share: a number that changes with
// the controller's state, and which processes use which profile.
//
// One small file that is never replaced. Its first eight bytes are the number, mapped, so that
// reading it costs no system call.
//
// A use is an OFD read lock on a byte that stands for the profile: the kernel releases it when the
// process ends, for whatever reason. A controller that needs a profile unused takes the write lock.
// An EV that a process finds bad is a read lock too, on a byte of its own: processes without
// permission to write can thus tell controllers what they found.
//
// The number is even, 2 * generation. It is odd while a change is written, or if its writer died:
// then the generation is unknown, and the next change makes it even again.
//
// A forked child must not keep its parent's locks alive: the descriptor is closed in the child.
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
  // A file in an open directory. `create`: make it if it is missing. Errors: kNotFound, kSystem.
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

  bool is_open() const { return word_ != nullptr; }
  // No system call. REQUIRES is_open().
  std::uint64_t number() const { return word_->load(std::memory_order_acquire); }
  // For controllers. Errors: kSystem.
  Result<void> set_number(std::uint64_t value);

  // Adds a user of that profile in this process. Errors: EAGAIN if a controller holds the profile
  // for longer than a moment; EIO.
  CtlResult<void> lock(ProfileKind kind, std::uint32_t id);
  void unlock(ProfileKind kind, std::uint32_t id);

  // This process finds that EV of an EV profile bad, or good again. REQUIRES numbers within bounds.
  void mark_bad(std::uint32_t id, std::uint32_t entry, bool bad);
  // Which of the first `count` EVs of a profile other open files of this device mark as bad.
  std::vector<bool> found_bad(std::uint32_t id, std::uint32_t count) const;

  // Takes the write lock: no process can use the profile until the descriptor is closed. EBUSY if
  // some process uses it.
  CtlResult<os::FileDescriptor> exclude(ProfileKind kind, std::uint32_t id) const;

 private:
  Options options_{};
  std::atomic<int> fd_ = -1;
  std::atomic<std::uint64_t>* word_ = nullptr;  // mapped, read-only
  std::mutex mutex_;
  std::array<std::array<std::uint32_t, kEvProfilesMax>, 2> users_{};
};

static_assert(kEvProfilesMax == kCcProfilesMax);

}  // namespace weft::control
