// Requestor: what should be sent now, and is it done?
//
// Turns posted writes into packets, keeps each PSN until the responder has it, and each write until
// its Transport ACK. Asks the path set for an EV and the congestion window for permission; hears
// SACKs, NACKs and Transport ACKs. Owned by one Qp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ring.h"
#include "base/trace.h"
#include "transport/control_queue.h"
#include "transport/ev_prober.h"
#include "transport/loss.h"
#include "transport/nscc.h"
#include "transport/path_set.h"
#include "transport/peer.h"
#include "transport/probe_budget.h"
#include "transport/psn_window.h"
#include "transport/retry_timer.h"
#include "transport/work.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::transport {

// 128 ns ticks, as TSETH carries them.
constexpr wire::Timestamp timestamp(Time at) {
  return {static_cast<std::uint16_t>(at.ps() / 128'000)};
}

// How long ago that was, as far as 16 bits tell: up to 8.4 ms.
constexpr Duration age_of(Time now, wire::Timestamp sent) {
  return Duration::ns(128) * static_cast<std::uint16_t>(timestamp(now).ticks - sent.ticks);
}

struct RequestorCounters {
  std::uint64_t packets = 0, bytes = 0, retransmits = 0, spurious = 0, completion_resends = 0;
  std::uint64_t lost_inferred = 0, lost_trimmed = 0, lost_port = 0, lost_timer = 0,
                lost_overflow = 0, timeouts = 0, silences = 0;
  std::uint64_t nacks_resource = 0, nacks_window = 0, probes = 0, marks = 0, stale = 0;
  std::uint64_t evs_condemned = 0, planes_condemned = 0, evs_withdrawn = 0, unbalanced = 0;
};

// What all QPs created alike share.
struct QpParams {
  QpConfig config;  // without its EVs
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
  // The rest of the endpoint that a requestor works with: given to each call, never kept.
  struct Context {
    Time now;
    Time received_at;  // when what is being looked at came: a world may be late
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

  bool is_full() const { return queue_.full(); }
  void post(Time now, const WriteRequest& request);

  // True while there may be something to send: lost packets, unsent data, a completion to ask for
  // again.
  // The packet polled last was the last of its run on one EV.
  bool is_run_over() const { return run_.left == 0; }
  bool has_work() const {
    return window_.lost() > 0 || sent_count_ < queue_.size() || completion_resend_;
  }
  enum class Polled : std::uint8_t { kPacket, kNothing, kWindowClosed, kNoPort };
  struct Outgoing {
    fabric::Ev ev;
    world::Dscp dscp = world::Dscp::kTrimmable;
    world::PayloadRef payload;
    std::uint8_t header_size = 0;
  };
  // One packet on one of `usable` ports; its header goes to `header`.
  Polled poll(Context& context, PortMask usable, Bytes header, Outgoing& out);

  // False: the packet makes no sense here (counted as stale).
  bool on_sack(Context& context, const wire::Bth& bth, const wire::Sack& sack);
  // kOk, or the status with which the QP must fail.
  Status on_nack(Context& context, const wire::Nack& nack);
  // kOk, or the status with which the QP must fail.
  Status on_transport_ack(Context& context, Psn psn, const wire::TransportAck& ack);
  // Any packet of the peer for this QP came.
  void on_heard(Context& context);
  // A port of ours or the peer's is gone: what is under way on it is lost.
  void on_port_lost(Context& context, PortIndex port);
  // It is there again, its queue empty: what goes by it overtakes the rest.
  void on_port_back(Time now, PortIndex port);
  // kOk, or kRetryExceeded. REQUIRES now >= deadline().
  Status on_deadline(Context& context, Duration late_by);
  Time deadline() const;

  // Takes one finished write; false if there is none. After fail(), all of them.
  bool poll_completion(Completion& out);
  // How many finished without a completion since this was last asked.
  std::uint32_t take_silent_done() {
    const std::uint32_t n = silent_done_;
    silent_done_ = 0;
    return n;
  }
  // The QP went to ERR: `status` for the write it happened to (that of the packet a NAK named, else
  // the oldest), flushed for the rest.
  void fail(Status status);

  // Tells the trace what window and inflight are now.
  void trace_window(Context& context);

  // What the next SACK, and the next packet to send, will touch.
  world::Node::Part hot() const {
    const auto* begin = reinterpret_cast<const char*>(&params_);
    const auto* end = static_cast<const char*>(paths_.end());
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }

  world::Node::Part hot_records() { return window_.hot(); }

  PathSet& paths() { return paths_; }
  const PathSet& paths() const { return paths_; }
  const Nscc& congestion() const { return nscc_; }
  // REQUIRES parameters that differ in congestion control only.
  void set_congestion(const QpParams& params) {
    params_ = &params;
    nscc_.reconfigure(params.nscc);
  }
  const PsnWindow& window() const { return window_; }
  std::size_t bytes() const { return queue_.bytes() + window_.bytes(); }
  std::uint32_t incomplete() const { return static_cast<std::uint32_t>(queue_.size()); }
  bool is_peer_silent() const { return silent_; }
  // When the peer last answered anything.
  Time last_heard() const { return last_heard_; }
  // A reliability probe on each plane.
  void probe_planes(Context& context);

 private:
  // Questions at the tail of a flow, five round trips apart, before only the retry timer asks.
  static constexpr std::uint8_t kTailTries = 16;
  // Of a peer that has answered nothing: the queue that several first windows make at 1 Gb/s.
  static constexpr Duration kSlackUnknown = Duration::ms(40);

  struct Wqe {
    WriteRequest request;
    Psn first, last;
    std::uint16_t msn = 0, rqmsn = 0;
    std::uint32_t packets_sent = 0;
    Status status = Status::kOk;
  };
  struct Piece {  // one packet's part of a write
    std::uint32_t offset = 0, size = 0;
    wire::Opcode opcode = wire::Opcode::kWriteOnly;
  };

  std::uint32_t packet_count(std::uint32_t size) const;
  Piece piece(const Wqe& wqe, std::uint32_t index) const;
  Wqe& wqe_of(Psn psn);
  std::int64_t nominal_size(Psn psn, const PsnRecord& record);
  std::int64_t nominal_of(const Piece& piece) const;
  std::int64_t full_size() const;  // nominal, of a packet of `mtu` bytes

  Polled poll_lost(Context& context, PortMask usable, Bytes header, Outgoing& out);
  Polled poll_new(Context& context, PortMask usable, Bytes header, Outgoing& out);
  Polled poll_completion_resend(Context& context, PortMask usable, Bytes header, Outgoing& out);
  struct Run {
    PathSet::Slot slot = PathSet::kNone;
    std::uint32_t left = 0;  // what may follow on it, in parts of a full packet
  };
  static constexpr std::uint32_t kFullPart = 16;
  std::uint32_t part_of_run(const Piece& p) const;
  PathSet::Slot pick(Time now, PortMask usable, const Piece& p, PathSet::Slot avoid);
  struct Copy {  // one sending of a piece
    Psn psn;
    PathSet::Slot slot = PathSet::kNone;
    bool rtx = false, ask = false;
  };
  void emit(Context& context, const Wqe& wqe, const Piece& piece, const Copy& copy, Bytes header,
            Outgoing& out);
  bool is_time_to_ask(std::int64_t size) const;
  std::uint32_t run_packets() const;
  Duration lateness(const Context& context) const;
  Duration slack(const Context& context) const;
  Duration answer_time(const Context& context) const;
  Duration proof_time() const;
  bool is_stuck() const;
  Time tail_due(const Context& context);
  void hurry_tail(const Context& context);
  // A probe of the control class overtakes what queues: it counts as sent that much earlier.
  Duration overtaken() const { return nscc_.base_rtt() + params_->nscc.target * 2; }
  std::int64_t size_to_begin(const Wqe& wqe, std::int64_t size) const;

  struct Trigger {  // of a SACK
    Time sent_at = kNever;
    PathSet::Slot slot = PathSet::kNone;
    bool rtt_valid = false, full_size = false, of_probe = false;
    Duration rtt;
    std::optional<Duration> older_age;  // of a copy before the newest, which has just arrived
  };
  Trigger trigger_of(const Context& context, const wire::Bth& bth, const wire::Sack& sack);
  void on_path_mark(Context& context, PathSet::Slot slot, wire::PathMark mark);
  void hear_limit(const wire::Sack& sack);
  void hear_delay(Context& context, const Trigger& trigger);
  void hear_order(const Context& context, const Trigger& trigger);
  void move_edge(std::uint8_t mpr);
  void note_spurious(Context& context);
  void acknowledge(Context& context, Psn psn);
  bool advance(Context& context, Psn cack);
  bool take_bits(Context& context, const wire::Sack& sack);
  void infer_losses(Context& context, const wire::Sack& sack, Time trigger_sent, Knowledge known);
  void lose(Context& context, Psn psn, PsnRecord& record);
  void lose_on_port(Context& context, PortIndex port);
  // A packet of a write that was sent and is not done.
  bool is_under_way(Psn psn) const {
    if (window_.contains(psn)) return true;
    return done_count_ < sent_count_ && psn.since(queue_[done_count_].first) >= 0 &&
           window_.next().since(psn) > 0;
  }
  // Everything sent has arrived, and a write still lacks its Transport ACK.
  bool waits_for_transport_ack() const {
    return window_.outstanding() == 0 && window_.lost() == 0 && done_count_ < sent_count_;
  }
  void retire(Context& context);
  void settle(Context& context);
  enum class ProbeClass : std::uint8_t { kData, kControl };
  void probe(Context& context, std::optional<PortIndex> port, ProbeClass probe_class);
  void arm(const Context& context);
  void on_tail(Context& context);
  void on_timeout(Context& context, Time since);
  // Waits for nothing but a time to send at.
  bool is_paced() const { return nscc_.paced_until() > paced_out_ && has_work(); }

  std::array<Time, 8> probe_sent_{};  // by probe id mod 8
  // From here on, what every packet looks at.
  const QpParams* params_;
  QpEnds qp_;
  Ring<Wqe> queue_;               // oldest first: incomplete writes
  std::uint32_t sent_count_ = 0;  // of queue_, from the front: all packets sent once
  PsnWindow window_;
  Nscc nscc_;
  LossDetector loss_;
  RetryTimer retry_;
  Psn edge_;                          // first PSN that may not be sent yet (MPR)
  Psn acknowledged_;                  // by Transport ACK
  std::uint32_t rcvd_bytes_256_ = 0;  // the newest the responder said
  std::uint16_t next_msn_ = 0, next_rqmsn_ = 0;
  std::uint16_t wimm_under_way_ = 0;
  std::uint32_t done_count_ = 0;   // of queue_, from the front: finished, not yet polled
  std::uint32_t silent_done_ = 0;  // finished unsignalled writes, not yet asked for
  bool completion_resend_ = false;
  bool silent_ = false;
  bool rearmed_ = false;  // the deadline was put off once because the world stood still
  std::int64_t bytes_since_ask_ = 0;
  Run run_;
  Time last_heard_, last_send_;
  Time spurious_at_;  // when the last mistake was learnt from
  // When was sent: the oldest that this SACK is the first to tell of (of what was sent once), and
  // the newest that triggered any.
  Time oldest_news_, newest_heard_;
  Time resume_at_;  // resource NACKs: nothing is resent before
  Time tail_at_ = kNever;
  Time paced_out_;  // the pacing time that was last waited for
  std::uint8_t tail_count_ = 0;
  bool peer_overflows_ = false;  // it loses packets for want of room
  std::uint8_t peer_mpr_ = 0;    // dynamic MPR: the last that the peer said; 0: none yet
  std::uint16_t next_probe_ = 0;
  std::optional<Psn> refused_;  // the packet that a NAK was about
  Time last_probe_;
  PathSet paths_;
};

}  // namespace weft::transport
