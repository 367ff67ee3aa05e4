// DeviceQp: what the engine knows of one QP: what is posted, where completions go, in which state
// the application sees it.
//
// Made by QueuePair, which owns it; known to the engine's node between add() and remove().
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "device/async_events.h"
#include "device/completion_queue.h"
#include "device/send_queue.h"
#include "net/host_memory.h"
#include "transport/work.h"

namespace weft::device {

struct DeviceQp {
  struct Options {
    SendQueue::Limits sends{};
    std::uint32_t receives = 1;
    std::uint32_t domain = 0;
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* receive_cq = nullptr;
    bool signal_all = false;
    // Who is told of what happens to it, and under which name.
    AsyncEvents* events = nullptr;
    const void* owner = nullptr;
    const void* handle = nullptr;
  };
  explicit DeviceQp(const Options& o) : options(o), sends(o.sends), receives(o.receives) {}

  Options options;
  transport::Qpn qpn = 0;
  SendQueue sends;
  ReceiveQueue receives;
  std::atomic<ibv_qp_state> state{IBV_QPS_RESET};
  std::atomic<bool> queued{false};  // in the list of those with posts
  // The rest is the engine's, under its lock.
  net::HostMemory::Place source;   // where its last write was sent from: mostly the next one too
  std::uint64_t source_epoch = 0;  // when that was looked up; 0: never
  bool stalled = false;            // has posts that the endpoint does not take yet
  bool local_error = false;        // memory of a write was taken away: the next flushed one says so
};

}  // namespace weft::device
