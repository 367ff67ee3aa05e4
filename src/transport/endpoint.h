// Endpoint: the MRC protocol of one process, as a passive node. It owns the QPs and what they
// share, and finds the QP of each datagram.
//
// Kinds of methods, by their names:
//   create_, connect, fail_, destroy_ ...  set-up, from above; only these and the constructor
//                                          allocate memory
//   post_*                                 work, from above
//   on_*                                   events, from below (world::Node)
//   poll_*, next_deadline                  what came of it, for either side
//   view, counters, memory                 questions; they change nothing
//
// A driver calls them in this order, over and over:
//   1. on_datagrams with all that has come, on_port for each port that changed
//   2. on_deadline, if next_deadline() has passed: after the datagrams, as an answer that is there
//      already stops the timer that waits for it
//   3. the application: poll_completions, poll_failure, poll_endpoint_answers, poll_ev_news until
//      they give no more; then post_* and set-up
//   4. poll_transmit, until it gives less than world::kBatchMin or no port has room; also when
//      nothing was posted, as what was received is answered here
//   5. next_deadline: on_deadline must be called then, if nothing happens before. Every other call
//      may move it.
// Headers and payloads that poll_transmit gave are valid until the next call of any method.
//
// Not thread safe: a driver with several threads holds a lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/trace.h"
#include "transport/answer_scheduler.h"
#include "transport/completion_queue.h"
#include "transport/config.h"
#include "transport/control_queue.h"
#include "transport/control_router.h"
#include "transport/endpoint_asks.h"
#include "transport/endpoint_trace.h"
#include "transport/ev_journal.h"
#include "transport/ev_prober.h"
#include "transport/peer.h"
#include "transport/peer_table.h"
#include "transport/port_status.h"
#include "transport/psn_window.h"
#include "transport/qp.h"
#include "transport/qp_table.h"
#include "transport/ready_ring.h"
#include "transport/receive_budget.h"
#include "transport/refused_peers.h"
#include "transport/request_ids.h"
#include "transport/reverse_evs.h"
#include "transport/timers.h"
#include "transport/work.h"
#include "wire/drop_reason.h"
#include "world/world.h"

namespace weft::transport {

class Endpoint final : public world::Node {
 public:
  // `memory` and `trace` outlive the endpoint; trace may be null.
  Endpoint(const EndpointConfig& config, world::Memory& memory, Trace* trace);
  ~Endpoint() override;

  // --- set-up ----------------------------------------------------------------------------------
  // A QP in INIT that will send from `first_psn` on. Errors: kExhausted (a bound of the config),
  // kInvalid.
  Result<Qpn> create_qp(const QpConfig& config, Psn first_psn);
  // Gives the QP another configuration, as if it had been created with it: paths and MTU are often
  // known only with the peer. REQUIRES INIT; posted receives stay. Errors: as create_qp, kNotFound,
  // kWrongState.
  Result<void> configure_qp(Qpn qpn, const QpConfig& config);
  // INIT -> RTR -> RTS: from now on the QP has a peer.
  Result<void> connect(Time now, Qpn qpn, const PeerInfo& peer);
  // The first half of connect(), INIT -> RTR: the QP takes what the peer sends. Errors: as connect.
  Result<void> start_receiving(Time now, Qpn qpn, const PeerInfo& peer);
  // The second half of connect(), RTR -> RTS: the QP sends from `first_psn` on, with the
  // requestor's part of `config`. Errors: as create_qp, kNotFound, kWrongState.
  Result<void> start_sending(Time now, Qpn qpn, const QpConfig& config, Psn first_psn);
  // Any state -> INIT, with the same number. Posted work is dropped without a completion, and the
  // peer and everything learnt is forgotten. Completions not yet polled stay. Errors: as create_qp,
  // kNotFound.
  Result<void> reset_qp(Time now, Qpn qpn, const QpConfig& config);
  // Any state -> ERR: all posted work completes as flushed.
  Result<void> fail_qp(Time now, Qpn qpn);
  // Destroys the QP in any state. Completions not yet polled stay.
  Result<void> destroy_qp(Time now, Qpn qpn);
  // Drops what a QP that is gone has left to be polled: its completions and its failure.
  void forget_news(Qpn qpn);
  // Queues the answers to everything received. Call it before a QP is destroyed: its peer would
  // otherwise ask in vain for those answers.
  void flush_answers(Time now);
  // Sets what the next SACKs of this QP tell the requestor about room at this end.
  Result<void> limit_receive(Qpn qpn, const ReceiveLimit& limit);
  // Controller: this EV carries nothing until it is allowed again. Applies to the QPs that exist
  // now.
  void deny_ev(Time now, fabric::Ev ev, bool denied);
  // The same on one QP. Does nothing if the QP is gone.
  void deny_ev(Time now, Qpn qpn, fabric::Ev ev, bool denied);
  // Controller: new parameters of congestion control from now on. Errors: kNotFound.
  Result<void> set_congestion(Qpn qpn, const NsccConfig& nscc);
  // Controller: a disabled port is down even if it has a carrier, and packets that arrive on it are
  // dropped.
  void set_port_admin(Time now, PortIndex port, bool enabled);
  // Controller: sends a request to another host, once. Errors: kInvalid (bad port, or an id that is
  // in use), kExhausted.
  Result<void> post_endpoint_request(Time now, const EndpointAsk& ask);
  // Takes answers to those requests, oldest first. A request without an answer stays open until it
  // is cancelled.
  std::size_t poll_endpoint_answers(std::span<EndpointAnswer> out) { return asks_.poll(out); }
  void cancel_endpoint_requests() { asks_.clear(); }
  // Takes the oldest change of an EV (bad or good again); false if there is none. Only with
  // EndpointConfig::ev_news_max.
  bool poll_ev_news(EvNews& out) { return journal_.poll(out); }
  std::uint64_t ev_news_dropped() const { return journal_.dropped(); }

  // --- work ------------------------------------------------------------------------------------
  // Errors: kWrongState, kExhausted (queue full), kNotFound, kInvalid (more than 2^22 packets).
  Result<void> post_write(Time now, Qpn qpn, const WriteRequest& request);
  // Posts several writes in order and returns how many were taken. The next one would have been
  // refused.
  std::size_t post_writes(Time now, Qpn qpn, std::span<const WriteRequest* const> requests);
  Result<void> post_receive(Time now, Qpn qpn, std::uint64_t id);
  // Takes up to out.size() completions, oldest first.
  std::size_t poll_completions(std::span<Completion> out);
  // Takes the oldest QP that went to ERR, for whatever reason; false if there is none. Only with
  // EndpointConfig::tell_failures.
  struct QpFailure {
    Qpn qpn = 0;
    Status status = Status::kOk;
  };
  bool poll_failure(QpFailure& out);
  // There is a completion or a failure to poll.
  bool has_news() const { return !completions_.empty() || !failures_.empty(); }

  // --- what is known ---------------------------------------------------------------------------
  QpState qp_state(Qpn qpn) const;
  struct QpView {
    QpState state = QpState::kReset;
    std::int64_t cwnd_bytes = 0, inflight_bytes = 0;
    Psn cack, next_psn;
    std::uint32_t ev_active = 0, ev_bad = 0;  // EVs in rotation; condemned EVs
    std::uint32_t ev_active_min = 0;          // the lowest ev_active since connect
    std::uint32_t incomplete = 0;             // work requests that are not completed
    std::uint32_t lost_waiting = 0;           // packets that wait to be retransmitted
    bool peer_silent = false;
    // Ports that are condemned, down at either end, or without an EV in rotation.
    PortMask ports_left_out = 0;
    Time deadline;
  };
  QpView view(Qpn qpn) const;
  // Counts changes of paths: an EV, a plane, or a port of either end is lost or comes back, or an
  // EV is denied.
  std::uint64_t path_changes() const { return requestor_counters_.path_changes; }
  // transport.*: packets, bytes, retransmits and EVs condemned by plane, NACKs, drops and failures
  // of QPs by reason, probes. The table's layout depends on port_count only.
  CounterTable counters() const;
  // Per peer, now: RTT, windows, bytes in flight. Peers beyond kLabelledPeersMax share one entry.
  // Costs a walk over all QPs.
  CounterTable peer_counters() const;
  // Bytes of memory in use, with this object.
  struct MemoryView {
    std::uint64_t endpoint = 0;  // queues, peers, tables
    std::uint64_t qps = 0, evs = 0;
    std::uint64_t psn_records = 0;  // of blocks that were ever used
  };
  MemoryView memory() const;

  // --- world::Node -----------------------------------------------------------------------------
  void on_datagrams(Time now, std::span<const world::Datagram> in) override;
  void on_port(Time now, PortIndex port, world::PortState state) override;
  void on_deadline(Time now, Duration late_by) override;
  Time next_deadline() const override;
  std::size_t poll_transmit(Time now, std::span<const world::PortRoom> room,
                            std::span<world::Datagram> out) override;

 private:
  struct Batch;
  struct Counters {
    PerPlane control_packets{}, evs_revived{}, planes_revived{};
    std::uint64_t quiet_sacks = 0, refusals = 0, qps_refused = 0;
    std::array<std::uint64_t, kStatusCount> qp_failures{};
    std::array<std::uint64_t, kDropReasonCount> drops{};
  };

  // --- set-up
  const QpParams* params_for(const QpConfig& config);
  Result<void> check(const QpConfig& config, std::uint32_t evs_used) const;
  Qp::Options options_for(const QpConfig& config, Qpn qpn, Psn first_psn);
  Result<std::uint32_t> add_peer(const PeerInfo& info);
  void start_requestor(Time now, Qp& qp);
  void remove(Qp& qp);

  // --- incoming
  void on_packet(Time now, const world::Datagram& in, const wire::Packet& packet);
  void on_write_packet(Time now, const world::Datagram& in, const wire::Bth& bth,
                       const wire::Write& write);
  void on_probe(Time now, const world::Datagram& in, Qp& qp, const wire::Probe& probe);
  void on_answer(Time now, const world::Datagram& in, Qp& qp, const wire::Packet& packet);
  Qp* find_receiver(const world::Datagram& in, Qpn qpn);
  void on_endpoint_request(Time now, const world::Datagram& in, const wire::Bth& bth,
                           const wire::EndpointRequest& request);
  void on_endpoint_response(Time now, const world::Datagram& in, const wire::Bth& bth);
  void on_refusal(Time now, const Address& peer);
  void on_silence_over(Time now, Qp& qp);
  void after_requestor(Time now, Qp& qp, Status status);
  void share_budget(Time now, Qp& qp);
  void flush_prompt_answers();
  void drop(DropReason reason) { ++counters_.drops[static_cast<std::size_t>(reason)]; }

  // --- ports and paths
  void on_peer_ports(Time now, const Peer& peer, PortStatus::Change change);
  void on_own_port(Time now, PortIndex port);
  void revive(Time now, const EvProber::Watch& watch);
  void share_condemned(Time now, const Qp& from);

  // --- time
  Time time_of(EndpointTimer timer) const;
  void on_timer(EndpointTimer timer, Time now, Duration late_by);
  void on_requestor_timers(Time now, Duration late_by);
  void resend_port_status(Time now);
  void ask_refused(Time now);
  void report_quiet(Time now);

  // --- outgoing
  bool transmit_control(Time now, Batch& batch);
  void transmit_data(Time now, Batch& batch);
  void put_control(Time now, const ControlPacket& packet, PortIndex port, Batch& batch);
  void put_data(Time now, const Qp& qp, const Requestor::Outgoing& out, Batch& batch);
  void check_reverse_ev(Time now, std::uint32_t peer);
  bool may_delay_answers(Time now) const;
  void mark_ready(Qp& qp) { ready_.add(qps_.index_of(qp), qp.ready); }

  // --- work
  bool has_room(const Qp& qp) const { return !qp.requestor.is_full() && completions_.has_room(); }
  void on_posted(Qp& qp);
  void fail(Time now, Qp& qp, Status status);
  void complete(Qp& qp);
  Requestor::Context context(Time now);
  PrefetchParts& prefetch(Call call) { return prefetch_table_[static_cast<std::size_t>(call)]; }

  // First member: every packet reads it.
  PrefetchTable prefetch_table_{};
  QpTable qps_;
  world::Memory* memory_;
  EndpointTrace trace_;
  PortStatus ports_;
  PeerTable peers_;
  PsnBlockPool pool_;
  ControlQueue control_;
  ControlRouter router_;
  ReverseEvs reverse_evs_;
  EvProber prober_;
  ProbeBudget probe_budget_;
  EndpointAsks asks_;
  EvJournal journal_;
  ReceiveBudget budget_;
  DeadlineHeap deadlines_;
  ReadyRing ready_;
  CompletionQueue completions_;
  Ring<QpFailure> failures_;
  AnswerScheduler answers_;
  EndpointConfig config_;
  std::uint32_t evs_used_ = 0;
  RequestIds request_ids_;
  RefusedPeers refused_;
  Prng prng_;
  RequestorCounters requestor_counters_;
  ResponderCounters responder_counters_;
  Counters counters_;
  std::vector<std::unique_ptr<QpParams>> params_;
  std::unique_ptr<std::array<std::byte, wire::kHeaderSizeMax>[]> headers_;  // headers of one batch
};

}  // namespace weft::transport
