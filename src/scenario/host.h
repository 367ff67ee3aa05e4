// Host: a program that posts one host's part of a plan through Rdma, in any world.
//
// Each step polls completions, starts operations that waited for them, and posts the next messages.
// next_deadline() is the start time of the next operation. Memory is allocated only by the
// constructor and during set-up. A host takes a few hundred bytes, and 20 for each QP. Owned by the
// fleet. The plan, scoreboard and trace outlive the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/trace.h"
#include "rdma/program.h"
#include "scenario/scoreboard.h"
#include "scenario/workload.h"
#include "transport/endpoint.h"

namespace weft::scenario {

class Host final : public rdma::Program {
 public:
  struct Setup {
    const Plan& plan;
    HostIndex host;
    std::uint32_t sends_max, receives_max;  // bounds for each QP
    // a region with every address: a message has the same address at both ends
    rdma::RegionId source;
    Scoreboard& scoreboard;
    Trace* trace;  // may be null
  };
  explicit Host(const Setup& setup);

  // --- set-up: call add_end() for each end, then begin() ---------------------------------------
  // Adds the next end, in the order of Plan::ends_of(). The QpIndex of its QP is the end's index.
  // `qpn` names the QP in the trace.
  void add_end(transport::Qpn qpn);
  // Posts the receives for the first immediates. REQUIRES that every end is connected.
  void begin(Time now, rdma::Rdma& rdma);

  std::uint32_t end_count() const { return static_cast<std::uint32_t>(ends_.size()); }
  transport::Qpn qpn(std::uint32_t end) const { return ends_[end].qpn; }
  // Bytes of heap that this object holds.
  std::size_t heap_bytes() const;

  // What the host waits for: "flow 17 to host 3: 5 of 8 messages completed". Empty if everything is
  // done.
  std::string stuck(const transport::Endpoint& endpoint) const;

  // --- rdma::Program ---------------------------------------------------------------------------
  void step(Time now, rdma::Rdma& rdma) override;
  Time next_deadline() const override { return start_at_; }
  bool is_done() const override;

 private:
  struct EndState {
    transport::Qpn qpn = 0;
    std::uint32_t posted = 0;    // writes posted and not completed
    std::uint32_t received = 0;  // immediates received
    // total since begin(); this is also the next receive's number
    std::uint32_t receives_posted = 0;
    // completed or flushed; this is also the number of the receive that ends next
    std::uint32_t receives_ended = 0;
  };
  // An operation that has started and is not complete.
  struct Active {
    std::uint32_t op = 0;  // index in the list of this host's operations
    bool failed = false;
    std::uint64_t posted = 0, completed = 0;  // messages
    Time progress_at{};
  };
  // A message that is posted and not completed. Its index in posted_ is the id of its write.
  struct Posted {
    std::uint32_t op = 0;  // in a free entry: the index of the next free entry
    std::uint32_t message = 0;
  };

  const Op& op_of(const Active& active) const;
  FlowIndex flow_of(const Active& active) const;
  FlowRecord& record_of(const Active& active) const;
  std::uint32_t receives_expected(std::uint32_t end) const;

  bool take_completions(Time now, rdma::Rdma& rdma);
  void on_write_completed(Time now, const rdma::Completion& completion);
  void on_receive_completed(Time now, const rdma::Completion& completion, rdma::Rdma& rdma);
  void post_receive(Time now, std::uint32_t end, rdma::Rdma& rdma);
  // Starts operations that may start, posts messages while queues have room, and finishes
  // operations that are complete.
  void advance(Time now, rdma::Rdma& rdma);
  bool is_released(const Op& op) const;
  bool has_more(Time now, const Active& active) const;
  void post_messages(Time now, Active& active, rdma::Rdma& rdma);
  bool post_message(Time now, Active& active, rdma::Rdma& rdma);
  void finish(const Active& active);

  const Plan& plan_;
  Scoreboard& scoreboard_;
  Trace* trace_;
  HostIndex host_;
  rdma::RegionId source_;
  std::uint32_t sends_max_, receives_max_;
  std::uint32_t op_next_ = 0;  // the first operation of this host that has not started
  std::uint32_t active_count_ = 0;
  // start time of operation op_next_, if that operation waits only for its time
  Time start_at_ = kNever;
  std::vector<EndState> ends_;
  std::vector<Active> active_;  // the first active_count_ entries are in use
  std::vector<Posted> posted_;
  std::uint32_t posted_free_ = 0;  // index of the first free entry of posted_
};

}  // namespace weft::scenario
