// Endpoint: the MRC protocol of one host, as a passive node. It owns the QPs and answers one
// question of its own: which QP is this datagram for?
//
// Calls from above: create, connect, post, poll. Calls from below: the five functions of
// world::Node. Everything is allocated in the constructor or in create_qp (set-up); post_*, on_*,
// poll_* never allocate. Not thread safe: whoever drives it holds the lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "base/trace.h"
#include "transport/config.h"
#include "transport/control_queue.h"
#include "transport/endpoint_asks.h"
#include "transport/ev_journal.h"
#include "transport/ev_prober.h"
#include "transport/peer.h"
#include "transport/psn_window.h"
#include "transport/qp.h"
#include "transport/receive_budget.h"
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
  // A QP in INIT, sending from `first_psn` on. Errors: kExhausted (a bound of the config), kInvalid.
  Result<Qpn> create_qp(const QpConfig& config, Psn first_psn);
  // The QP as if it had been created so: for what is only known with its peer, as the paths and the
  // MTU. REQUIRES INIT; posted receives stay. Errors: as create_qp, kNotFound, kWrongState.
  Result<void> configure_qp(Qpn qpn, const QpConfig& config);
  // INIT -> RTR -> RTS: knows its peer from here on.
  Result<void> connect(Time now, Qpn qpn, const PeerInfo& peer);
  // The same in two steps. INIT -> RTR: takes what the peer sends. Errors: as connect.
  Result<void> start_receiving(Time now, Qpn qpn, const PeerInfo& peer);
  // RTR -> RTS: sends from `first_psn` on, with the requestor's half of `config`. Errors: as
  // create_qp, kNotFound, kWrongState.
  Result<void> start_sending(Time now, Qpn qpn, const QpConfig& config, Psn first_psn);
  // Any state -> INIT, under the same number: what was posted is gone without a word, as are the
  // peer and everything learnt. Completions not yet polled stay. Errors: as create_qp, kNotFound.
  Result<void> reset_qp(Time now, Qpn qpn, const QpConfig& config);
  // Any state -> ERR: everything posted completes as flushed.
  Result<void> fail_qp(Time now, Qpn qpn);
  // Any state -> gone. Completions not yet polled stay.
  Result<void> destroy_qp(Time now, Qpn qpn);
  // What was received and not yet answered is answered with the next packets: for whoever is about
  // to take a QP away, whose peer would else ask in vain.
  void flush_answers(Time now);
  // What the next SACKs of this QP tell its requestor about room here.
  Result<void> limit_receive(Qpn qpn, const ReceiveLimit& limit);
  // Controller: this EV carries nothing until allowed again, on the QPs that there are now.
  void deny_ev(Time now, fabric::Ev ev, bool denied);
  // The same on one QP; nothing if it is gone.
  void deny_ev(Time now, Qpn qpn, fabric::Ev ev, bool denied);
  // Controller: other parameters of congestion control from now on. Errors: kNotFound.
  Result<void> set_congestion(Qpn qpn, const NsccConfig& nscc);
  // Controller: a port that is disabled is down whatever its carrier, and what comes in on it is
  // dropped.
  void set_port_admin(Time now, PortIndex port, bool enabled);
  // Controller: asks another host, once. Errors: kInvalid (port, an id that is under way),
  // kExhausted.
  Result<void> post_endpoint_request(Time now, const EndpointAsk& ask);
  // Takes answers, oldest first. What is not answered stays under way until cancelled.
  std::size_t poll_endpoint_answers(std::span<EndpointAnswer> out) { return asks_.poll(out); }
  void cancel_endpoint_requests() { asks_.clear(); }
  // Takes the oldest news of an EV; false if there is none. Only with EndpointConfig::ev_news_max.
  bool poll_ev_news(EvNews& out) { return journal_.poll(out); }
  std::uint64_t ev_news_dropped() const { return journal_.dropped(); }

  // --- work ------------------------------------------------------------------------------------
  // Errors: kWrongState, kExhausted (queue full), kNotFound, kInvalid (more than 2^22 packets).
  Result<void> post_write(Time now, Qpn qpn, const WriteRequest& request);
  // Several at once, in order: how many were taken. The next one would have been refused.
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

  // --- what is known ---------------------------------------------------------------------------
  QpState qp_state(Qpn qpn) const;
  struct QpView {
    QpState state = QpState::kReset;
    std::int64_t cwnd_bytes = 0, inflight_bytes = 0;
    Psn cack, next_psn;
    std::uint32_t ev_active = 0, ev_bad = 0;  // in rotation; condemned
    std::uint32_t ev_active_min = 0;          // the smallest ev_active ever was since connect
    std::uint32_t incomplete = 0;             // work requests not completed
    std::uint32_t lost_waiting = 0;           // packets waiting to be sent again
    bool peer_silent = false;
    PortMask ports_left_out = 0;  // condemned, or without an EV in rotation
    Time deadline;
  };
  QpView view(Qpn qpn) const;
  // transport.*: packets, bytes, retransmits, NACKs by reason, drops by reason, probes, EVs
  // condemned and revived ...
  CounterTable counters() const;
  // Bytes taken, this object included.
  struct MemoryView {
    std::uint64_t endpoint = 0;  // queues, peers, tables
    std::uint64_t qps = 0, evs = 0;
    std::uint64_t psn_records = 0;  // as far as they were ever used
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
  // --- who is it for
  Qp* find_qp(Qpn qpn) const {
    QpSlot& qp = qps_[(qpn - first_qpn_) & qp_mask_];
    return qp && qp->qpn == qpn ? &*qp : nullptr;
  }
  std::uint32_t qp_index(const Qp& qp) const { return (qp.qpn - first_qpn_) & qp_mask_; }
  std::uint32_t find_peer(const Address& address) const;
  Result<std::uint32_t> add_peer(const PeerInfo& info);
  void hash_peer(std::uint32_t index);
  const QpParams* params_for(const QpConfig& config);
  Result<void> check(const QpConfig& config, std::uint32_t evs_used) const;
  Qp::Options options_for(const QpConfig& config, Qpn qpn, Psn first_psn);

  // --- incoming
  void on_packet(Time now, const world::Datagram& in, const wire::Packet& packet);
  void on_write(Time now, const world::Datagram& in, const wire::Bth& bth,
                const wire::Write& write);
  void on_endpoint_request(Time now, const world::Datagram& in, const wire::Bth& bth,
                           const wire::EndpointRequest& request);
  void on_endpoint_response(Time now, const world::Datagram& in, const wire::Bth& bth);
  void on_port_status(Time now, std::uint32_t peer, std::uint32_t mask);
  void update_port(Time now, PortIndex port);
  // --- is a process that was said to be gone really gone? (endpoint_refused.cc)
  void on_refusal(Time now, const Address& peer);
  void ask_refused(Time now);
  void ask_or_fail(Time now, Qp& qp);
  void after_requestor(Time now, Qp& qp, Status status);
  bool may_wait(Time now) const;
  void on_word(Time now, Qp& qp);
  void share_budget(Time now, Qp& qp);
  bool delays_answers(const Qp& qp) const {
    return config_.answers_delay > Duration() && qp.params->peer->delays_answers;
  }
  void flush_prompt_answers(Time now);
  void watch_quiet(Time now, Qp& qp);
  void report_quiet(Time now);
  void drop(DropReason reason) { ++drops_[static_cast<std::size_t>(reason)]; }

  // --- outgoing
  struct Batch;
  bool transmit_control(Time now, Batch& batch);
  void transmit_data(Time now, Batch& batch);
  std::uint8_t control_port(Peer& peer, std::uint8_t near, PortMask with_room);
  void check_reverse(Time now, std::uint32_t peer);
  void mark_ready(Qp& qp);
  std::uint16_t take_request_id();
  bool take_probe_token(Time now);
  void send_port_status(Time now, std::uint32_t peer);
  void resend_port_status(Time now);
  void revive(Time now, const EvProber::Watch& watch);
  void share_condemned(Time now, const Qp& from);

  void begin(Time now, Qp& qp);
  void forget(Qp& gone);
  void fail(Time now, Qp& qp, Status status);
  void collect(Qp& qp);
  // Half of the PSN space: beyond it "before" and "after" mean nothing.
  static std::uint64_t write_max(const Qp& qp) { return std::uint64_t{qp.params->mtu} << 22; }
  bool has_room(const Qp& qp) const {
    return !qp.requestor.is_full() && completions_reserved_ < config_.completion_queue_max;
  }
  void on_posted(Qp& qp);
  void deny_answers(Time now, const Qp& qp, fabric::Ev ev, bool denied);
  Requestor::Context context(Time now);
  void trace_port(Time now, PortIndex port);
  void trace_qp(Time now, TraceKind kind, const Qp& qp, std::uint64_t a);
  void trace_datagram(Time now, TraceKind kind, const world::Datagram& d, Qpn qpn,
                      std::uint32_t peer_host);

  Hot& hot(Call call) { return hot_table_[static_cast<std::size_t>(call)]; }

  // What every packet looks at comes first.
  HotTable hot_table_{};
  std::uint32_t first_qpn_ = 0, qp_mask_ = 0;
  std::unique_ptr<QpSlot[]> qps_;  // by (QPN - first) & mask
  world::Memory* memory_;
  Trace* trace_;
  PortMask ports_up_;                            // what may be used: both of these
  PortMask ports_carrier_, ports_disabled_ = 0;  // as the world says; as the controller does
  std::uint32_t port_count_ = 1;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> peer_slots_;  // open addressing: address -> peer index
  PsnBlockPool pool_;
  ControlQueue control_;
  EvProber prober_;
  ProbeBudget probe_budget_;
  EndpointAsks asks_;
  EvJournal journal_;
  ReceiveBudget budget_;
  DeadlineHeap deadlines_;
  Ring<std::uint32_t> ready_;  // QPs with something to send, in turn
  Ring<Completion> completions_;
  Ring<QpFailure> failures_;
  std::uint32_t completions_reserved_ = 0;  // posted and not yet polled
  std::vector<std::uint32_t> touched_;      // QPs with something to flush at the end of the batch
  std::uint32_t unanswered_ = 0;            // data packets since they were last flushed
  std::vector<std::uint32_t> watched_;      // QPs that received lately
  Time quiet_at_ = kNever;                  // when one of them may have been quiet for long
  Time answers_at_ = kNever;                // data went instead of answers: they follow then
  bool somebody_waits_ = false;             // for them: they follow data at once
  EndpointConfig config_;
  std::uint32_t qp_count_ = 0, qp_created_ = 0;
  std::uint32_t evs_used_ = 0;
  std::uint16_t next_request_ = 0;
  Time port_status_next_ = kNever;   // of refused QPs too
  std::uint32_t refused_count_ = 0;  // QPs whose peer was said to be gone
  std::int64_t probe_tokens_milli_ = 16'000;
  Time probe_tokens_at_;
  Prng prng_;
  RequestorCounters requestor_counters_;
  ResponderCounters responder_counters_;
  std::array<std::uint64_t, kDropReasonCount> drops_{};
  std::uint64_t control_packets_ = 0, reverse_probes_ = 0, port_updates_ = 0;
  std::uint64_t quiet_sacks_ = 0;
  std::uint64_t evs_revived_ = 0, planes_revived_ = 0;
  std::uint64_t refusals_ = 0, refused_qps_ = 0;
  std::vector<std::unique_ptr<QpParams>> params_;
  std::unique_ptr<std::array<std::byte, wire::kHeaderSizeMax>[]> headers_;
};

}  // namespace weft::transport
