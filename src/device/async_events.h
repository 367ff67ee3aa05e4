// AsyncEvents: asynchronous events of the QPs, CQs and ports of one verbs context, in order.
//
// The descriptor counts the waiting events. get() blocks unless the descriptor is O_NONBLOCK.
// Bounded: events beyond kEventsMax are dropped, and that is logged once. Thread safe.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

#include "os/file_descriptor.h"

namespace weft::device {

struct AsyncEvent {
  const void* owner = nullptr;    // the mrc_context that gets the event
  const void* element = nullptr;  // the QP or CQ; null for a port
  int port = 0;
  ibv_event_type type = IBV_EVENT_QP_FATAL;
};

class AsyncEvents {
 public:
  static constexpr std::size_t kEventsMax = 1024;
  AsyncEvents();

  int fd() const { return fd_.get(); }
  void push(const AsyncEvent& event);
  // Takes the oldest event of `owner`. Returns 0, or EAGAIN (no event waits and the descriptor is
  // O_NONBLOCK).
  int get(const void* owner, AsyncEvent& out);
  void acknowledge(const void* element);
  // Call before `element` is destroyed: drops its waiting events, and waits until the program has
  // acknowledged the delivered ones.
  void forget(const void* element);
  // Call before `owner` is destroyed: drops its events.
  void forget_owner(const void* owner);

 private:
  void drop_waiting(bool (*is_meant)(const AsyncEvent&, const void*), const void* what);

  os::FileDescriptor fd_;
  std::mutex lock_;
  std::condition_variable arrived_, acknowledged_;
  std::deque<AsyncEvent> waiting_;
  std::deque<const void*>
      unacknowledged_;  // elements of delivered events that are not acknowledged
  bool drop_was_logged_ = false;
};

}  // namespace weft::device
