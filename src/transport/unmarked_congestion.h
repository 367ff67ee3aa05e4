// UnmarkedCongestion: detects congestion where no switch marks or trims.
//
// Between software ends scheduling delays dominate the RTT, and an ordinary Ethernet neither marks
// nor trims (docs/decisions/0011, 0034, 0036). While no switch has signalled for 100 base RTTs, two
// things count as congestion instead: a standing queue (even the smallest RTT within 10 ms is long,
// since a scheduler delays some packets and a queue delays all), and much loss in a round of
// packets. The base RTT is the smallest RTT seen, and is doubted where marks go on.
//
// Nscc, the specification's algorithm, owns and asks this class. For a QP to a NIC it never
// applies. NsccParams outlive it.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "transport/nscc_params.h"

namespace weft::transport {

class UnmarkedCongestion {
 public:
  // After congestion that no switch marked, the window keeps at least this many packets.
  static constexpr std::int64_t kPacketsMin = 4;
  // A queue shows in the smallest RTT of this time, which is longer than a process waits for a
  // core.
  static constexpr Duration kIntervalMin = Duration::ms(10);

  explicit UnmarkedCongestion(const NsccParams& params)
      : params_(&params), base_rtt_(params.base_rtt) {}

  // Takes new parameters; what was learnt stays.
  void reconfigure(const NsccParams& params);

  // Both ends are software and no switch has marked or trimmed for 100 base RTTs: delay and loss
  // are the only signs of congestion.
  bool applies(Time now) const;
  // A switch marked or trimmed a packet. True if it is the first signal after 100 base RTTs of
  // silence: what was counted meanwhile no longer holds.
  bool on_signal(Time now);

  // --- the base RTT
  struct Sample {
    Duration rtt;
    bool marked = false;
    std::int64_t window = 0;  // congestion window at the time of the sample
  };
  // REQUIRES PeerRules::unmarked_congestion.
  void on_rtt(Time now, const Sample& sample);
  // A plane was lost: the remaining paths may be longer, which looks like a queue for a while.
  void on_plane_lost() { intervals_after_loss_ = kIntervalsAfterLoss; }
  // The smallest RTT seen, and at least the configured one. Timers and loss detection use it.
  Duration base_rtt() const { return base_rtt_; }
  // The base RTT less the part that marks make doubtful: delay is measured from it.
  Duration base_rtt_less_doubt() const;
  // The smallest RTT seen; zero before the first.
  Duration rtt_min() const { return rtt_min_ == kNoRtt ? Duration() : rtt_min_; }

  // --- congestion
  // True when even the fastest packets of the last interval waited in a queue.
  bool has_standing_queue(Time now) const;
  // How long those packets waited. REQUIRES has_standing_queue().
  Duration standing_delay() const;
  // Bytes were acknowledged or lost. on_acked returns true at the end of a round in which much was
  // lost: the window must shrink. REQUIRES applies().
  bool on_acked(std::int64_t bytes, std::int64_t window);
  void on_lost(std::int64_t bytes) { round_lost_ += bytes; }
  // Most bytes that the window may grow by per round trip after congestion; 0: as NSCC says.
  std::int64_t growth_max() const { return growth_max_; }
  // Limits the window's growth to one packet per round trip, as TCP's.
  void limit_growth() { growth_max_ = params_->mtu; }

 private:
  static constexpr Duration kNoRtt = Duration::s(1000);
  // After a lost plane: number of intervals with traffic in which the window may shrink to its
  // smallest.
  static constexpr std::uint8_t kIntervalsAfterLoss = 255;

  void end_interval(Time now, const Sample& sample);
  bool is_longer_path(Time now, std::int64_t window);
  void count_mark(bool marked, std::int64_t window);

  const NsccParams* params_;
  Duration base_rtt_;
  // The smallest RTT ever, of the current interval, and of the one before.
  Duration rtt_min_ = kNoRtt, rtt_min_now_ = kNoRtt, rtt_min_before_ = kNoRtt;
  Time interval_end_;
  // The part of the smallest RTT that may be a queue's delay.
  Duration base_rtt_doubt_;
  std::uint8_t samples_ = 0, samples_marked_ = 0;  // since the doubt last changed
  // Intervals left in which the remaining paths may prove longer, and consecutive intervals in
  // which a queue stood at the smallest window.
  std::uint8_t intervals_after_loss_ = 0, intervals_at_floor_ = 0;
  bool signalled_ = false;  // a switch has marked or trimmed, last at `last_signal_at_`
  Time last_signal_at_;
  std::int64_t round_acked_ = 0, round_lost_ = 0;
  std::int64_t growth_max_ = 0;
};

}  // namespace weft::transport
