// AsyncEvents: what happened to QPs, CQs and ports of one verbs context without being asked for, in
// order, for those who wait for it.
//
// The descriptor counts the events that wait; whether getting one waits is its O_NONBLOCK. Bounded:
// events beyond kEventsMax are dropped, and that is logged once. Thread safe.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

#include "os/file_descriptor.h"

namespace weft::device {

struct AsyncEvent {
  const void* owner = nullptr;    // the mrc_context that is told
  const void* element = nullptr;  // the QP or CQ; null: a port
  int port = 0;
  ibv_event_type type = IBV_EVENT_QP_FATAL;
};

class AsyncEvents {
 public:
  static constexpr std::size_t kEventsMax = 1024;
  AsyncEvents();

  int fd() const { return fd_.get(); }
  void push(const AsyncEvent& event);
  // The oldest one of this owner: 0, or EAGAIN (none, and the descriptor does not block).
  int get(const void* owner, AsyncEvent& out);
  void acknowledge(const void* element);
  // The element is about to go: its waiting events are dropped, and those that were given out are
  // waited for until they are acknowledged.
  void forget(const void* element);
  // The owner is about to go: nobody will ask for its events.
  void forget_owner(const void* owner);

 private:
  void drop_waiting(bool (*is_meant)(const AsyncEvent&, const void*), const void* what);

  os::FileDescriptor fd_;
  std::mutex lock_;
  std::condition_variable arrived_, acknowledged_;
  std::deque<AsyncEvent> waiting_;
  std::deque<const void*> given_;  // elements of events not yet acknowledged
  bool dropped_ = false;
};

}  // namespace weft::device
