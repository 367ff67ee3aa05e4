// Requestor: decides what to send now, and when each write is done.
//
// Turns posted writes into packets. Keeps each PSN until the responder has it, and each write until
// its Transport ACK. Takes an EV from the path set and permission from the congestion window; gets
// SACKs, NACKs and Transport ACKs. Owned by one Qp.
//
// In four files: sending (requestor.cc), answers (requestor_receive.cc), lost packets
// (requestor_loss.cc), and timers (requestor_time.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/counters.h"
#include "base/trace.h"
#include "transport/answer_times.h"
#include "transport/control_queue.h"
#include "transport/ev_prober.h"
#include "transport/loss.h"
#include "transport/nscc.h"
#include "transport/path_set.h"
#include "transport/peer.h"
#include "transport/probe_budget.h"
#include "transport/probe_log.h"
#include "transport/psn_window.h"
#include "transport/retry_timer.h"
#include "transport/tail_timer.h"
#include "transport/work.h"
#include "transport/write_queue.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::transport {

// The time in ticks of 128 ns, as TSETH carries it.
constexpr wire::Timestamp timestamp(Time at) {
  return {static_cast<std::uint16_t>(at.ps() / 128'000)};
}

// The age of a timestamp, as far as 16 bits tell: up to 8.4 ms.
constexpr Duration age_of(Time now, wire::Timestamp sent) {
  return Duration::ns(128) * static_cast<std::uint16_t>(timestamp(now).ticks - sent.ticks);
}

struct RequestorCounters {
  PerPlane packets{}, bytes{}, retransmits{}, evs_condemned{}, planes_condemned{};
  std::uint64_t spurious = 0, completion_resends = 0;
  std::uint64_t lost_inferred = 0, lost_trimmed = 0, lost_port = 0, lost_timer = 0,
                lost_overflow = 0, timeouts = 0, silences = 0;
  std::uint64_t nacks_resource = 0, nacks_window = 0, probes = 0, marks = 0, stale = 0;
  std::uint64_t evs_withdrawn = 0, unbalanced = 0;
  std::uint64_t path_changes = 0;  // of all the kinds above, and those that the endpoint finds
};

// Shared by all QPs that have the same configuration.
struct QpParams {
  QpConfig config;                      // without its EVs
  const PeerRules* peer = &kNicRules;   // the rules of config.peer
  std::uint32_t budget_unit_bytes = 0;  // unit of SACK.mpr; 0: it counts PSNs
  NsccParams nscc;
  std::uint32_t mtu = 4096;
  std::uint32_t burst = 1;
};

class Requestor {
 public:
  struct Options {
    const QpParams* params = nullptr;
    PsnBlockPool* pool = nullptr;
    Psn first_psn;
    std::uint32_t send_queue_max = 16;
    PathSet::Options paths;
  };
  // The parts of the endpoint that a requestor uses: an argument of each call, never kept.
  struct Context {
    Time now;
    Time received_at;  // when the current packet arrived: may be before `now`
    ControlQueue& control;
    EvProber& prober;
    RequestorCounters& counters;
    ProbeBudget& probes;
    std::span<Peer> peers;
    Trace* trace = nullptr;
    std::uint32_t host = 0;
  };

  Requestor(const Options& options, std::span<const fabric::Ev> evs);

  void start(Time now, const QpEnds& ends);

  bool is_full() const { return writes_.is_full(); }
  // REQUIRES !is_full().
  void post(Time now, const WriteRequest& request);

  // The packet polled last was the last of its burst.
  bool is_burst_over() const { return burst_.left == 0; }
  // True while there may be something to send: lost packets, unsent data, or a packet that asks for
  // a completion again.
  bool has_work() const { return window_.lost() > 0 || writes_.has_unsent() || completion_resend_; }
  enum class Polled : std::uint8_t { kPacket, kNothing, kWindowClosed, kNoPort };
  struct Outgoing {
    fabric::Ev ev;
    world::Dscp dscp = world::Dscp::kTrimmable;
    world::PayloadRef payload;
    std::uint8_t header_size = 0;
  };
  // Polls one packet, on one of the `usable` ports. Its header is written to `header`. REQUIRES
  // room for wire::kHeaderSizeMax bytes there.
  Polled poll(Context& context, PortMask usable, Bytes header, Outgoing& out);

  // False: the SACK cannot be valid here (counted as stale).
  bool on_sack(Context& context, const wire::Bth& bth, const wire::Sack& sack);
  // Returns kOk, or the status with which the QP must fail.
  Status on_nack(Context& context, const wire::Nack& nack);
  // Returns kOk, or the status with which the QP must fail.
  Status on_transport_ack(Context& context, Psn psn, const wire::TransportAck& ack);
  // Any packet of the peer for this QP arrived.
  void on_heard(Context& context);
  // A port of ours or of the peer is down: packets in flight on it are lost.
  void on_port_lost(Context& context, PortIndex port);
  // The port is up again. Its queue is empty: packets on it overtake the others.
  void on_port_back(Time now, PortIndex port);
  // Returns kOk, or kRetryExceeded. REQUIRES now >= deadline().
  Status on_deadline(Context& context, Duration late_by);
  Time deadline() const;

  // Takes one finished write; false if there is none. After fail() all writes are finished.
  bool poll_completion(Completion& out) { return writes_.poll_completion(qp_.local_qpn, out); }
  // The number of writes that finished without a completion since the last call.
  std::uint32_t take_unsignalled_done() { return writes_.take_unsignalled_done(); }
  // The QP went to ERR. `status` is for the write that failed (the write of the packet that a NAK
  // named, else the oldest); all others complete as flushed.
  void fail(Status status);

  // Reports window and inflight to the trace.
  void trace_window(Context& context);

  // The part of this object that the next SACK, and the next packet to send, will touch; for
  // prefetching.
  world::Node::Part prefetch() const {
    const auto* begin = reinterpret_cast<const char*>(&params_);
    const auto* end = static_cast<const char*>(paths_.end());
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }

  world::Node::Part prefetch_records() { return window_.prefetch(); }

  PathSet& paths() { return paths_; }
  const PathSet& paths() const { return paths_; }
  const Nscc& congestion() const { return nscc_; }
  // REQUIRES parameters that differ in congestion control only.
  void set_congestion(const QpParams& params) {
    WEFT_ASSERT(params.mtu == params_->mtu && params.peer == params_->peer);
    params_ = &params;
    nscc_.reconfigure(params.nscc);
  }
  const PsnWindow& window() const { return window_; }
  std::size_t bytes() const { return writes_.bytes() + window_.bytes(); }
  std::uint32_t incomplete() const { return writes_.size(); }
  bool is_peer_silent() const { return silent_; }
  // When the peer last sent any answer.
  Time last_heard() const { return last_heard_; }
  // Sends a reliability probe on each plane.
  void probe_planes(Context& context);

 private:
  using Piece = WriteQueue::Piece;

  // --- sending (requestor.cc)
  Polled poll_lost(Context& context, PortMask usable, Bytes header, Outgoing& out);
  Polled poll_new(Context& context, PortMask usable, Bytes header, Outgoing& out);
  Polled poll_completion_resend(Context& context, PortMask usable, Bytes header, Outgoing& out);
  struct Burst {
    PathSet::Slot slot = PathSet::kNone;
    std::uint32_t left = 0;  // how much of the burst is left, in sixteenths of a full packet
  };
  static constexpr std::uint32_t kFullPart = 16;
  std::uint32_t part_of_burst(const Piece& p) const;
  PathSet::Slot pick(Time now, PortMask usable, const Piece& p, PathSet::Slot avoid);
  struct Copy {  // one transmission of a piece
    Psn psn;
    PathSet::Slot slot = PathSet::kNone;
    bool rtx = false, ack_request = false;
  };
  void emit(Context& context, const WriteQueue::Entry& entry, const Piece& piece, const Copy& copy,
            Bytes header, Outgoing& out);
  // Each packet is sent by itself, as in the simulator. The peer need not know.
  bool sends_singly() const { return params_->burst == 1; }
  std::uint32_t burst_packets() const;
  std::int64_t size_to_begin(const WriteQueue::Entry& entry, std::int64_t size) const;
  bool needs_ack_request(std::int64_t size) const;
  std::int64_t nominal_size(Psn psn, const PsnRecord& record) const;

  // --- answers (requestor_receive.cc)
  struct Trigger {  // of a SACK: the packet that made the responder send it
    Time sent_at = kNever;
    PathSet::Slot slot = PathSet::kNone;
    bool rtt_valid = false, full_size = false, of_probe = false;
    Duration rtt;
    std::optional<Duration> earlier_copy_age;  // set if a copy before the newest triggered the SACK
  };
  Trigger trigger_of(const Context& context, const wire::Bth& bth, const wire::Sack& sack);
  void acknowledge_all(Context& context, const wire::Sack& sack);
  bool acknowledge_cumulative(Context& context, Psn cack);
  bool acknowledge_bitmap(Context& context, const wire::Sack& sack);
  void acknowledge(Context& context, Psn psn);
  void learn_delays(Context& context, const Trigger& trigger);
  void learn_answer_time(Context& context, const Trigger& trigger);
  void learn_order(const Context& context, const Trigger& trigger);
  void apply_path_mark(Context& context, PathSet::Slot slot, wire::PathMark mark);
  void apply_receive_limit(const wire::Sack& sack);
  void extend_window(std::uint8_t mpr);
  // The PSN is of a write that was sent and is not done.
  bool is_under_way(Psn psn) const {
    if (window_.contains(psn)) return true;
    return writes_.has_under_way() && psn.since(writes_.oldest().first) >= 0 &&
           window_.next().since(psn) > 0;
  }
  // Everything sent has arrived, and the Transport ACK of a write is missing.
  bool waits_for_transport_ack() const {
    return window_.outstanding() == 0 && window_.lost() == 0 && writes_.has_under_way();
  }
  void retire(Context& context);
  void settle(Context& context);

  // --- loss (requestor_loss.cc)
  void infer_losses(Context& context, const wire::Sack& sack, Time trigger_sent, Knowledge known);
  void lose_all_before(Context& context, Time threshold);
  void lose_missing(Context& context, const wire::Sack& sack, Time threshold);
  void lose_if_before(Context& context, Psn psn, Time threshold);
  void lose(Context& context, Psn psn, PsnRecord& record);
  void lose_on_port(Context& context, PortIndex port);
  void forget_loss(Psn psn, PsnRecord& record);
  void watch_plane(Context& context, PortIndex port);
  void on_spurious_loss(Context& context);

  // --- time (requestor_time.cc)
  AnswerTimes times(const Context& context) const {
    return {.peer = *params_->peer,
            .loss = loss_,
            .answers = context.peers[qp_.peer].answers,
            .base_rtt = nscc_.base_rtt(),
            .target = params_->nscc.target};
  }
  bool is_stuck() const;
  Time tail_due(const Context& context);
  void advance_tail_if_stuck(const Context& context);
  void arm_timers(const Context& context);
  void on_tail(Context& context);
  void on_timeout(Context& context, Time since);
  enum class ProbeClass : std::uint8_t { kData, kControl };
  void probe(Context& context, std::optional<PortIndex> port, ProbeClass probe_class);
  // Only pacing keeps the QP from sending.
  bool is_paced() const { return nscc_.paced_until() > pacing_waited_for_ && has_work(); }

  ProbeLog probes_sent_;
  // From here on: members that every packet reads.
  const QpParams* params_;
  QpEnds qp_;
  WriteQueue writes_;
  PsnWindow window_;
  Nscc nscc_;
  LossDetector loss_;
  RetryTimer retry_;
  Psn window_end_;                    // first PSN beyond the peer's window (MPR)
  Psn acknowledged_;                  // last PSN that a Transport ACK covered
  std::uint32_t rcvd_bytes_256_ = 0;  // the newest value of SACK.rcvd_bytes
  bool completion_resend_ = false;
  bool silent_ = false;
  bool postponed_ = false;         // the deadline was postponed once because the world was late
  std::int64_t opened_bytes_ = 0;  // nominal bytes of all PSNs sent, each counted once
  std::int64_t bytes_since_ack_request_ = 0;
  Burst burst_;
  Time last_heard_, last_send_;
  Time spurious_learnt_at_;  // when the loss detector last learnt from a spurious loss
  // Send times: of the oldest packet sent once that this SACK is the first to acknowledge, and of
  // the newest packet that triggered any SACK.
  Time oldest_newly_acked_sent_at_, newest_trigger_sent_at_;
  Time resume_at_;  // after a resource NACK: no retransmission before this time
  TailTimer tail_;
  Time pacing_waited_for_;       // the pacing time that was last waited for
  bool peer_overflows_ = false;  // the peer loses packets because its buffer is full
  std::uint8_t peer_mpr_ = 0;    // dynamic MPR: the last value of the peer; 0: none yet
  std::optional<Psn> refused_;   // the PSN that a NAK named
  PathSet paths_;
};

}  // namespace weft::transport
