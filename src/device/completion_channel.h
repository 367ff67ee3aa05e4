// CompletionChannel: which CQs have events, with a descriptor that a program can sleep on.
//
// The descriptor is an eventfd that counts the waiting events. get() blocks unless the descriptor
// is O_NONBLOCK, as in verbs. Each attached CQ has one entry with a count of events, so that memory
// is bounded by the number of CQs. Thread safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "os/file_descriptor.h"

namespace weft::device {

class CompletionQueue;

class CompletionChannel {
 public:
  // Errors: kSystem.
  static Result<CompletionChannel*> create();

  int fd() const { return fd_.get(); }
  void attach(CompletionQueue& cq);
  // Drops the waiting events of `cq`, and waits until the program has acknowledged the delivered
  // ones.
  void detach(CompletionQueue& cq);
  std::size_t attached() const;

  void notify(CompletionQueue& cq);
  // Takes an event. Returns 0 and its CQ; or EAGAIN (no event waits and the descriptor is
  // O_NONBLOCK); or EINTR.
  int get(CompletionQueue*& out);
  void acknowledge(CompletionQueue& cq, std::uint32_t count);

 private:
  explicit CompletionChannel(int fd) : fd_(fd) {}
  // The events of one CQ: those that wait, and those that were delivered but not acknowledged
  // (`got`).
  struct Member {
    CompletionQueue* cq = nullptr;
    std::uint64_t waiting = 0, got = 0;
  };
  Member& member(CompletionQueue& cq);

  os::FileDescriptor fd_;
  mutable std::mutex lock_;
  std::condition_variable acknowledged_;
  std::vector<Member> members_;
  std::size_t turn_ = 0;  // round robin: index of the member whose events are taken next
};

}  // namespace weft::device
