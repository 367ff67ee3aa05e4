// CompletionChannel: which CQs have news, with a descriptor that a program can sleep on.
//
// The descriptor is an eventfd that counts the events waiting; whether getting one waits is its
// O_NONBLOCK, as with verbs. A CQ waits in line at most once, with a count, so that the line is
// never longer than there are CQs. Thread safe.
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
  // Takes the CQ out of the line, and waits until each event that was given out is acknowledged.
  void detach(CompletionQueue& cq);
  std::size_t attached() const;

  void notify(CompletionQueue& cq);
  // 0 and the CQ, or EAGAIN (nothing, and the descriptor does not block), or EINTR.
  int get(CompletionQueue*& out);
  void acknowledge(CompletionQueue& cq, std::uint32_t count);

 private:
  explicit CompletionChannel(int fd) : fd_(fd) {}
  // What is known of one CQ. `got`: given out and not acknowledged.
  struct Member {
    CompletionQueue* cq = nullptr;
    std::uint64_t waiting = 0, got = 0;
  };
  Member& member(CompletionQueue& cq);

  os::FileDescriptor fd_;
  mutable std::mutex lock_;
  std::condition_variable acknowledged_;
  std::vector<Member> members_;
  std::size_t turn_ = 0;  // the member whose event is given next, if it has one
};

}  // namespace weft::device
