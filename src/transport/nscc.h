// Nscc: sets the congestion window, the number of bytes that may be in flight. UET's
// network-signalled congestion control (reference section 7).
//
// One window over all paths, driven by the SACKs of the responder. Integers only: fractions are in
// 1/1024. Between software ends UnmarkedCongestion replaces the signals of switches; this class
// asks it. Owned by one requestor; NsccParams outlive it.
//
// Invariant: the bytes sent, less those declared lost, equal the bytes that the responder will have
// counted when everything has arrived. That sum, accounted(), is exact. inflight() is the part of
// it that the peer has not reported yet, and so only as correct as the peer's reports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/assert.h"
#include "base/time.h"
#include "transport/nscc_params.h"
#include "transport/unmarked_congestion.h"

namespace weft::transport {

class Nscc {
 public:
  explicit Nscc(const NsccParams& params, Time now);

  std::int64_t window() const { return window_; }
  std::int64_t inflight() const { return inflight_; }
  // Bytes sent less bytes declared lost, since the beginning.
  std::int64_t accounted() const { return accounted_; }
  Duration base_rtt() const { return base_rtt_; }
  // An acknowledgement that comes sooner than this after a packet was sent is not caused by that
  // packet.
  Duration answer_time_min() const {
    return params_->unmarked_congestion ? unmarked_.rtt_min() : base_rtt_ / 2;
  }
  // True if a packet of that nominal size may be sent now. With nothing in flight one packet is
  // always allowed.
  bool allows(std::int64_t size) const { return inflight_ + size <= allowance() || inflight_ <= 0; }
  // How much may be in flight: the smaller of the congestion window and the peer's limit.
  std::int64_t allowance() const { return std::min(window_, limit_); }
  std::int64_t limit() const { return limit_; }
  // The peer accepts at most this many bytes in flight, whatever the network allows.
  void set_limit(std::int64_t bytes) { limit_ = std::max(bytes, params_->window_min); }

  // Takes new parameters. The state stays, within the new bounds.
  void reconfigure(const NsccParams& params);

  // All sizes are nominal, and above zero.
  void on_send(std::int64_t size) { account(size); }
  // A packet that was declared lost has arrived and was not retransmitted: the responder counted
  // it, so we count it again.
  void on_lost_packet_arrived(std::int64_t size) { account(size); }
  // A packet was lost for a reason other than congestion (resource NACK, dead port, error).
  void on_loss_without_congestion(std::int64_t size) { account(-size); }

  struct SackSample {
    std::int64_t newly = 0;  // bytes that this SACK is the first to report as received
    bool marked = false;
    bool rtt_valid = false;
    bool full_size = false;  // the RTT is of a full packet: it may lower base_rtt
    Duration rtt;
    std::uint8_t penalty = 0;  // rcv_cwnd_pen of the SACK
    bool restore = false;
  };
  // REQUIRES sack.newly >= 0.
  void on_sack(Time now, const SackSample& sack);
  struct Trim {
    std::int64_t size = 0;
    Time sent_at{};          // when the trimmed copy was sent
    std::uint32_t draw = 0;  // random number: spreads the retries of many senders
    bool last_hop = false;   // trimmed at the receiver's own port
  };
  void on_trim(Time now, const Trim& trim);
  // A packet was declared lost, and no trim was reported for it.
  void on_loss(Time now, std::int64_t size);
  // Under heavy incast even one packet per round trip is too much. Nothing may be sent before this
  // time.
  Time paced_until() const { return paced_until_; }
  // A plane was lost: the remaining paths may be longer.
  void on_plane_lost() { unmarked_.on_plane_lost(); }
  // Called when nothing is outstanding: clears the rounding error of the responder's count. Returns
  // what was left in flight.
  std::int64_t settle();

 private:
  // The state of the network, as shown by a SACK with an RTT sample.
  struct Congestion {
    Duration delay;         // above the base RTT
    bool marked = false;    // a switch marked the packet, or a queue stands
    bool standing = false;  // a queue stands without a switch's signal
  };
  struct Signal {
    bool loss = false, marked = false;
    Duration delay;
  };
  void account(std::int64_t bytes) {
    WEFT_ASSERT(bytes != 0);
    inflight_ += bytes;
    accounted_ += bytes;
  }
  void on_signal(Time now);
  void on_much_loss(Time now);
  void apply_penalty(const SackSample& sack);
  void shorten_gap(Time now, const SackSample& sack);
  void learn_base_rtt(Time now, const SackSample& sack);
  Congestion congestion_of(Time now, const SackSample& sack) const;
  void average_delay(const Congestion& congestion);
  void increase(std::int64_t newly, Duration delay);
  bool fast_increase(std::int64_t newly, Duration delay);
  void stop_fast_increase();
  void decrease(Time now, bool standing);
  void apply_increase(Time now);
  bool quick_adapt(Time now, Signal signal);
  void pace(Time now, std::uint32_t draw);
  Duration adjust_period() const {
    return params_->adjust_period > Duration() ? params_->adjust_period : base_rtt_;
  }
  std::int64_t unmarked_window_min() const {
    return UnmarkedCongestion::kPacketsMin * params_->window_min;
  }

  const NsccParams* params_;
  std::int64_t window_, window_max_;
  std::int64_t limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t inflight_ = 0, accounted_ = 0;
  std::int64_t saved_window_ = 0;  // the window before the receiver's penalty; 0: no penalty
  Duration base_rtt_;
  Duration delay_average_;
  std::int64_t achieved_ = 0, received_ = 0, fast_count_ = 0, increase_ = 0;
  std::int64_t ignore_ = 0, ignored_ = 0;
  Time qa_end_, last_adjust_, last_decrease_;
  // Pacing, below a window of one packet: the mean time between packets, when it last grew, and the
  // earliest time of the next packet.
  Duration gap_;
  Time gap_since_, paced_until_;
  bool trigger_qa_ = false, increasing_ = false, limited_ = false, qa_armed_ = false;
  UnmarkedCongestion unmarked_;
};

}  // namespace weft::transport
