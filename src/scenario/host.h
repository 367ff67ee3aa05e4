// Host: a node that carries out one host's part of a plan on the endpoint that it wraps.
//
// A world drives it like any node. It passes all calls on to the endpoint; within the same call it
// takes completions, releases operations that waited for them, and posts the next messages. The
// start times of operations are its own deadlines. Memory is allocated by the constructor and
// during set-up only. A host costs a few hundred bytes, and 16 for each of its QPs, besides its
// endpoint. Owned by the fleet. The plan, scoreboard, memory and trace outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "scenario/scoreboard.h"
#include "scenario/workload.h"
#include "transport/endpoint.h"
#include "world/world.h"

namespace weft::scenario {

class Host final : public world::Node {
 public:
  struct Setup {
    const Plan& plan;
    HostIndex host;
    const transport::EndpointConfig& config;
    world::Memory& memory;
    Scoreboard& scoreboard;
    Trace* trace;  // may be null
  };
  explicit Host(const Setup& setup);

  // --- set-up: create_qp once for each end, connect each end, then begin ------------------------
  // Creates the QP of the next end, in the order of Plan::ends_of().
  Result<transport::Qpn> create_qp(const transport::QpConfig& config, Psn first_psn);
  Result<void> connect(Time now, std::uint32_t end, const transport::PeerInfo& peer);
  // Posts the receives for the first immediates. REQUIRES that every end is connected.
  Result<void> begin(Time now);

  transport::Endpoint& endpoint() { return endpoint_; }
  const transport::Endpoint& endpoint() const { return endpoint_; }
  std::uint32_t end_count() const { return static_cast<std::uint32_t>(ends_.size()); }
  transport::Qpn qpn(std::uint32_t end) const { return ends_[end].qpn; }
  // Bytes of heap that this object holds, without the endpoint.
  std::size_t heap_bytes() const;

  // Says what the host waits for: "flow 17 to host 3: 5 of 8 messages completed". Empty when
  // everything is done.
  std::string stuck() const;

  // --- world::Node -----------------------------------------------------------------------------
  void on_datagrams(Time now, std::span<const world::Datagram> in) override;
  void on_port(Time now, world::PortIndex port, world::PortState state) override;
  void on_deadline(Time now, Duration late_by) override;
  Time next_deadline() const override;
  std::size_t poll_transmit(Time now, std::span<const world::PortRoom> room,
                            std::span<world::Datagram> out) override;

 private:
  struct EndState {
    transport::Qpn qpn = 0;
    std::uint32_t posted = 0;           // writes posted and not completed
    std::uint32_t received = 0;         // immediates received
    std::uint32_t receives_posted = 0;  // total since begin(): also the number of the next one
  };
  // A started operation that is not complete.
  struct Active {
    std::uint32_t op = 0;  // index within this host's operations
    bool failed = false;
    std::uint64_t posted = 0, completed = 0;  // messages
    Time progress_at{};
  };

  const Op& op_of(const Active& active) const;
  FlowIndex flow_of(const Active& active) const;
  FlowRecord& record_of(const Active& active) const;
  std::uint32_t receives_expected(std::uint32_t end) const;

  void take_completions(Time now);
  void on_write_completed(Time now, const transport::Completion& completion);
  void on_receive_completed(Time now, const transport::Completion& completion);
  void post_receive(Time now, std::uint32_t end);
  // Starts operations that are released, posts messages that fit, and ends operations that are
  // complete.
  void advance(Time now);
  bool is_released(const Op& op) const;
  bool has_more(Time now, const Active& active) const;
  void post_messages(Time now, Active& active);
  bool post_message(Time now, Active& active);
  void finish(const Active& active);
  void trace_completion(Time now, const transport::Completion& completion, std::uint32_t size);

  const Plan& plan_;
  Scoreboard& scoreboard_;
  Trace* trace_;
  HostIndex host_;
  std::uint32_t send_queue_max_, receive_queue_max_;
  std::uint32_t op_next_ = 0;  // the first operation of this host that has not started
  std::uint32_t active_count_ = 0;
  Time start_at_ = kNever;  // start of operation op_next_, if it waits only for time
  std::vector<EndState> ends_;
  std::vector<Active> active_;  // the first active_count_ entries are in use
  transport::Endpoint endpoint_;
};

}  // namespace weft::scenario
