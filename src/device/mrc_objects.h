// The objects behind the opaque pointers of mrc.h.
//
// Each object knows its parent and counts its children: an object in use is not destroyed (EBUSY).
// The first member of mrc_qp is an ibv_qp*, because programs written for other providers rely on it
// (reference section 2.4).
#pragma once

#include <infiniband/verbs.h>
#include <mrc/mrc.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "device/completion_channel.h"
#include "device/completion_queue.h"
#include "device/ctl_event_cq.h"
#include "device/queue_pair.h"
#include "device/software_device.h"

struct mrc_context {
  weft::device::SoftwareContext& verbs;
  weft::device::DeviceEngine& engine;
  std::uint32_t api_version = 0;
  std::atomic<int> children{0}, hints{0};
};

struct mrc_comp_channel {
  mrc_context& context;
  std::unique_ptr<weft::device::CompletionChannel> channel;
};

struct mrc_cq {
  mrc_cq(mrc_context& of, std::uint32_t entries, void* program, mrc_comp_channel* on)
      : context(of),
        program_context(program),
        queue(entries, on == nullptr ? nullptr : on->channel.get(), this) {}
  mrc_context& context;
  void* program_context;
  std::atomic<int> qps{0};
  weft::device::CompletionQueue queue;
  std::unique_ptr<weft::device::EvEventCq> events{};  // set for an EV event CQ only
};

struct mrc_qp_hint {
  mrc_context& context;
  std::mutex lock;
  mrc_qp_hint_attr attr{};
  std::atomic<int> qps{0};
};

struct mrc_qp {
  ibv_qp* verbs = &verbs_qp;  // must be the first member
  ibv_qp verbs_qp{};
  mrc_context* context = nullptr;
  mrc_qp_init_attr init{};
  std::mutex modify_lock;  // protects the members below and verbs_qp.state
  mrc_qp_hint* hint = nullptr;
  std::unique_ptr<weft::device::QueuePair> qp;
};
