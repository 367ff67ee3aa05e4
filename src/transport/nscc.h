// Nscc: how many bytes may be in flight? UET's network-signalled congestion control (reference
// section 7).
//
// One window over all paths, clocked by what the responder says it received. Integers only: shares
// are in 1/1024. Owned by one requestor; NsccParams are derived once and shared by QPs with the
// same configuration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/time.h"
#include "transport/config.h"

namespace weft::transport {

struct NsccParams {
  bool enabled = true;
  bool quick_adapt = true;
  bool trimming = true;
  bool software = false;
  std::int64_t mtu = 0;
  std::int64_t window_min = 0;  // one full packet
  std::int64_t window_max = 0;
  std::int64_t window_initial = 0;
  Duration base_rtt;
  Duration target;
  Duration standing;      // software: a queue longer than that which stands is congestion
  Duration qa_threshold;  // quick adapt on delay beyond this; zero: never on delay
  std::uint32_t qa_gate = 3;
  std::int64_t gain = 0;           // alpha * target: bytes a window may grow per RTT at no delay
  std::int64_t fair_increase = 0;  // fi
  std::int64_t eta = 0;
  std::int64_t fast_q10 = 0;        // fi_scale
  std::int64_t gamma_q10 = 819;     // 0.8
  std::int64_t jump_min_q10 = 512;  // max_md_jump 0.5
  std::int64_t adjust_bytes = 0;    // 8 MTU
  Duration adjust_period;           // zero: the base RTT of the moment
  Rate rate;

  static NsccParams derive(const NsccConfig& config, std::uint32_t mtu);
};

class Nscc {
 public:
  explicit Nscc(const NsccParams& params, Time now);

  std::int64_t window() const { return window_; }
  std::int64_t inflight() const { return inflight_; }
  Duration base_rtt() const { return base_rtt_; }
  // What is acknowledged sooner after it was sent is not an answer to that.
  Duration soonest() const {
    if (!params_->software) return base_rtt_ / 2;
    return rtt_min_ == kNoRtt ? Duration() : rtt_min_;
  }
  // May a packet of that nominal size go now? One is always allowed when nothing is in flight.
  bool allows(std::int64_t size) const { return inflight_ + size <= allowance() || inflight_ <= 0; }
  // What may be in flight: by the network, and by the peer.
  std::int64_t allowance() const { return std::min(window_, limit_); }
  std::int64_t limit() const { return limit_; }
  // The peer takes so many bytes at a time, whatever the network does.
  void set_limit(std::int64_t bytes) { limit_ = std::max(bytes, params_->window_min); }

  // Other parameters from now on: what was learnt stays, within the new bounds.
  void reconfigure(const NsccParams& params);

  void on_send(std::int64_t size) { inflight_ += size; }
  // A packet declared lost arrived after all and was not sent again: the responder counted it, we
  // had not.
  void on_unlost(std::int64_t size) { inflight_ += size; }
  // Leaving inflight without a word about congestion (resource NACK, dead port, error).
  void on_forget(std::int64_t size) { inflight_ -= size; }

  struct SackSample {
    std::int64_t newly = 0;  // bytes that the responder newly reports as received
    bool marked = false;
    bool rtt_valid = false;
    bool full_size = false;  // the RTT is that of a full packet: may lower base_rtt
    Duration rtt;
    std::uint8_t penalty = 0;  // rcv_cwnd_pen
    bool restore = false;
  };
  void on_sack(Time now, const SackSample& sack);
  struct Trim {
    std::int64_t size = 0;
    Time sent_at{};          // of the copy that was trimmed
    std::uint32_t draw = 0;  // random: spreads the next attempts of many senders
    bool last_hop = false;   // at the receiver's own port
  };
  void on_trim(Time now, const Trim& trim);
  // A packet was declared lost without a trim.
  void on_loss(Time now, std::int64_t size);
  // Under heavy incast even one packet a round trip is too much: then there is a time before which
  // nothing may go.
  Time paced_until() const { return paced_until_; }
  // A plane is gone: what is left may be longer.
  void on_plane_lost() { may_be_longer_ = kLongerFor; }
  // Nothing is outstanding: rounding of the responder's count is forgotten. Returns what was left
  // over.
  std::int64_t settle();

 private:
  static constexpr Duration kNoRtt = Duration::s(1000);
  // Intervals of traffic in which the window has come down to its smallest.
  static constexpr std::uint8_t kLongerFor = 255;

  struct Signal {
    bool loss = false, marked = false;
    Duration delay;
  };
  bool quick_adapt(Time now, Signal signal);
  bool fast_increase(std::int64_t newly, Duration delay);
  void decrease(Time now, bool stands);
  void fulfil(Time now);
  void observe_delay(Duration delay, bool marked);
  void observe_software(Time now, Duration rtt);
  void observe_marks(bool marked);
  void note_signal(Time now);
  bool is_untold(Time now) const;
  bool is_longer_way(Time now);
  bool queue_stands(Time now) const;
  void end_round(Time now);
  void pace(Time now, std::uint32_t draw);
  Duration adjust_period() const {
    return params_->adjust_period > Duration() ? params_->adjust_period : base_rtt_;
  }

  const NsccParams* params_;
  std::int64_t window_, window_max_;
  std::int64_t limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t inflight_ = 0;
  std::int64_t saved_window_ = 0;
  Duration base_rtt_;
  Duration delay_average_;
  // Of a software peer: the smallest RTT ever, and of this and the last interval. What a scheduler
  // adds comes and goes; a queue that stands is in the smallest one too.
  Duration rtt_min_ = kNoRtt, rtt_min_now_ = kNoRtt, rtt_min_before_ = kNoRtt;
  Time rtt_interval_end_, signal_at_;
  // By how much the smallest RTT is thought to be too large: a queue may have stood in it. See
  // docs/decisions/0034.
  Duration doubt_;
  std::uint8_t samples_ = 0, samples_marked_ = 0;
  // Intervals left in which the way may prove longer, and those in a row in which it seemed so.
  std::uint8_t may_be_longer_ = 0, stood_at_floor_ = 0;
  std::int64_t round_acked_ = 0, round_lost_ = 0;
  std::int64_t growth_ = 0;  // bytes that the window may grow in a round trip; 0: as NSCC says
  std::int64_t achieved_ = 0, received_ = 0, fast_count_ = 0, increase_ = 0;
  std::int64_t ignore_ = 0, ignored_ = 0;
  Time qa_end_, last_adjust_, last_decrease_;
  // Below a window of one packet: the mean time between packets, when it last grew, and the
  // earliest next packet.
  Duration gap_;
  Time gap_since_, paced_until_;
  bool trigger_qa_ = false, increasing_ = false, limited_ = false, qa_armed_ = false;
  bool signalled_ = false;  // a mark or a trim was seen
};

}  // namespace weft::transport
