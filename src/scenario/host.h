// Host: one host's part of a plan, as a program that posts it through Rdma in any world.
//
// Each step takes completions, releases operations that waited for them, and posts the next messages.
// The start times of operations are its deadlines. Memory is allocated by the constructor and during
// set-up only. A host costs a few hundred bytes, and 20 for each of its QPs. Owned by the fleet. The
// plan, scoreboard and trace outlive it.
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
    std::uint32_t sends_max, receives_max;  // of each QP
    rdma::RegionId source;                  // every address: messages leave from where they land
    Scoreboard& scoreboard;
    Trace* trace;  // may be null
  };
  explicit Host(const Setup& setup);

  // --- set-up: add_end for each end, then begin -------------------------------------------------
  // The next end, in the order of Plan::ends_of(). Its QP has the same index; the trace names it by
  // `qpn`.
  void add_end(transport::Qpn qpn);
  // Posts the receives for the first immediates. REQUIRES that every end is connected.
  void begin(Time now, rdma::Rdma& rdma);

  std::uint32_t end_count() const { return static_cast<std::uint32_t>(ends_.size()); }
  transport::Qpn qpn(std::uint32_t end) const { return ends_[end].qpn; }
  // Bytes of heap that this object holds.
  std::size_t heap_bytes() const;

  // Says what the host waits for: "flow 17 to host 3: 5 of 8 messages completed". Empty when
  // everything is done.
  std::string stuck(const transport::Endpoint& endpoint) const;

  // --- rdma::Program ---------------------------------------------------------------------------
  void step(Time now, rdma::Rdma& rdma) override;
  Time next_deadline() const override { return start_at_; }
  bool is_done() const override;

 private:
  struct EndState {
    transport::Qpn qpn = 0;
    std::uint32_t posted = 0;           // writes posted and not completed
    std::uint32_t received = 0;         // immediates received
    std::uint32_t receives_posted = 0;  // total since begin(): also the number of the next one
    std::uint32_t receives_ended = 0;   // completed or flushed: also the number of the next one
  };
  // A started operation that is not complete.
  struct Active {
    std::uint32_t op = 0;  // index within this host's operations
    bool failed = false;
    std::uint64_t posted = 0, completed = 0;  // messages
    Time progress_at{};
  };
  // A message that was posted and is not completed. The id of its write is its index.
  struct Posted {
    std::uint32_t op = 0;  // of a free entry: the next free one
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
  // Starts operations that are released, posts messages that fit, and ends operations that are
  // complete.
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
  Time start_at_ = kNever;  // start of operation op_next_, if it waits only for time
  std::vector<EndState> ends_;
  std::vector<Active> active_;  // the first active_count_ entries are in use
  std::vector<Posted> posted_;
  std::uint32_t posted_free_ = 0;  // the first free entry
};

}  // namespace weft::scenario
