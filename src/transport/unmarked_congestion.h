// UnmarkedCongestion: is the network congested although no switch says so?
//
// Between software ends an RTT is what two schedulers make of it, and an ordinary Ethernet neither
// marks nor trims (docs/decisions/0011, 0034, 0036). While no switch has signalled for 100 base
// RTTs, two things count as congestion instead: a queue that stands (the smallest RTT of 10 ms is
// late; a scheduler delays some packets, a queue delays all), and much loss in a round of packets.
// The base RTT is the smallest RTT seen, and is doubted where marks go on.
//
// The specification's algorithm is Nscc, which owns this and asks it. For a QP to a NIC nothing here
// ever applies. NsccParams outlive it.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "transport/nscc_params.h"

namespace weft::transport {

class UnmarkedCongestion {
 public:
  // Congestion that no switch marked leaves a window of so many packets.
  static constexpr std::int64_t kPacketsMin = 4;
  // The smallest RTT of so long a time shows a queue: longer than a process waits for a core.
  static constexpr Duration kIntervalMin = Duration::ms(10);

  explicit UnmarkedCongestion(const NsccParams& params)
      : params_(&params), base_rtt_(params.base_rtt) {}

  // Other parameters from now on; what was learnt stays.
  void reconfigure(const NsccParams& params);

  // Both ends are software and no switch has marked or trimmed for 100 base RTTs: delay and loss
  // are all that can tell of congestion.
  bool applies(Time now) const;
  // A switch marked or trimmed. True if it is the first signal after such a silence: what was
  // counted meanwhile says nothing any more.
  bool on_signal(Time now);

  // --- the base RTT
  struct Sample {
    Duration rtt;
    bool marked = false;
    std::int64_t window = 0;  // at that time
  };
  // REQUIRES PeerRules::unmarked_congestion.
  void on_rtt(Time now, const Sample& sample);
  // A plane is gone: the remaining paths may be longer, which looks like a queue for a while.
  void on_plane_lost() { intervals_after_loss_ = kIntervalsAfterLoss; }
  // The smallest RTT seen, and no less than the configured one: timers and loss go by it.
  Duration base_rtt() const { return base_rtt_; }
  // The base RTT less the part that marks make doubtful: delay is measured from here.
  Duration base_rtt_less_doubt() const;
  // The smallest RTT seen; zero before the first.
  Duration rtt_min() const { return rtt_min_ == kNoRtt ? Duration() : rtt_min_; }

  // --- congestion
  // Even the fastest packets of some time waited.
  bool has_standing_queue(Time now) const;
  // For how long they did. REQUIRES has_standing_queue().
  Duration standing_delay() const;
  // Bytes were acknowledged or lost. on_acked returns true at the end of a round in which much was
  // lost: the window must shrink. REQUIRES applies().
  bool on_acked(std::int64_t bytes, std::int64_t window);
  void on_lost(std::int64_t bytes) { round_lost_ += bytes; }
  // Bytes that the window may grow by in a round trip after congestion; 0: as NSCC says.
  std::int64_t growth_max() const { return growth_max_; }
  // From one packet a round trip on, as TCP.
  void limit_growth() { growth_max_ = params_->mtu; }

 private:
  static constexpr Duration kNoRtt = Duration::s(1000);
  // Intervals of traffic in which the window has come down to its smallest after a plane was lost.
  static constexpr std::uint8_t kIntervalsAfterLoss = 255;

  void end_interval(Time now, const Sample& sample);
  bool is_longer_path(Time now, std::int64_t window);
  void count_mark(bool marked, std::int64_t window);

  const NsccParams* params_;
  Duration base_rtt_;
  // The smallest RTT of all, of this interval, and of the one before.
  Duration rtt_min_ = kNoRtt, rtt_min_now_ = kNoRtt, rtt_min_before_ = kNoRtt;
  Time interval_end_;
  // The smallest RTT may be too large by that much: a queue may have stood in it.
  Duration base_rtt_doubt_;
  std::uint8_t samples_ = 0, samples_marked_ = 0;  // since it was last changed
  // Intervals left in which the remaining paths may prove longer, and those in a row in which a
  // queue stood at the smallest window.
  std::uint8_t intervals_after_loss_ = 0, intervals_at_floor_ = 0;
  bool signalled_ = false;  // a switch has marked or trimmed, at `signal_at_` last
  Time signal_at_;
  std::int64_t round_acked_ = 0, round_lost_ = 0;
  std::int64_t growth_max_ = 0;
};

}  // namespace weft::transport
