// DeviceQp: what the engine knows of one QP: its posts, its CQs, and the state that the application
// sees.
//
// Owned by QueuePair; the engine's node refers to it between add() and remove().
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
    // The event queue that gets this QP's events, and the mrc_context that the events belong to.
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
  std::atomic<bool> queued{false};  // the QP is in the node's list of QPs with new posts
  // The members below REQUIRE the engine's lock.
  // the region of the QP's last write; the next write probably uses it too
  net::HostMemory::Place source;
  std::uint64_t source_epoch = 0;  // HostMemory::epoch() when `source` was looked up; 0: never
  bool stalled = false;            // has posts that the endpoint cannot take yet
  // a region in use was deregistered: the next flushed write reports this
  bool local_error = false;
};

}  // namespace weft::device
