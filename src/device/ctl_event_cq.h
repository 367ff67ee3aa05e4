// EvEventCq: an EV event CQ of a program. It has a queue of events and, if the CQ has a completion
// channel, a thread that notifies the channel of new events.
//
// The thread sleeps in the kernel between events. Several threads may poll.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "control/ctl_events.h"
#include "device/completion_queue.h"
#include "os/file_descriptor.h"

namespace weft::device {

class EvEventCq {
 public:
  // `notify`: the CQ whose channel is notified of events; it outlives this object. Null: the
  // program gave no channel. Errors: kSystem.
  static Result<std::unique_ptr<EvEventCq>> create(std::unique_ptr<control::EvEventQueue> queue,
                                                   CompletionQueue* notify);
  ~EvEventCq();
  EvEventCq(const EvEventCq&) = delete;
  EvEventCq& operator=(const EvEventCq&) = delete;

  std::size_t poll(std::span<control::EvEvent> out);

 private:
  explicit EvEventCq(std::unique_ptr<control::EvEventQueue> queue) : queue_(std::move(queue)) {}
  void watch(CompletionQueue& notify) const;

  std::mutex lock_;
  std::unique_ptr<control::EvEventQueue> queue_;
  os::FileDescriptor stop_, epoll_;
  std::thread thread_;
};

}  // namespace weft::device
