// NsccParams: the constants of congestion control, derived once from a configuration and shared by
// all QPs that have the same one. Integers only: shares are in 1/1024.
#pragma once

#include <cstdint>

#include "base/rate.h"
#include "base/time.h"
#include "transport/config.h"

namespace weft::transport {

struct NsccParams {
  bool enabled = true;
  bool quick_adapt = true;
  bool trimming = true;
  bool unmarked_congestion = false;  // PeerRules::unmarked_congestion
  std::int64_t mtu = 0;
  std::int64_t window_min = 0;  // one full packet
  std::int64_t window_max = 0;
  std::int64_t window_initial = 0;
  Duration base_rtt;
  Duration target;
  Duration standing_queue;  // a longer queue that lasts is unmarked congestion
  Duration qa_threshold;    // a delay beyond this triggers quick adapt; zero: no delay does
  std::uint32_t qa_gate = 3;
  std::int64_t gain = 0;  // alpha * target: most bytes that a window grows per RTT, at zero delay
  std::int64_t fair_increase = 0;  // fi
  std::int64_t eta = 0;
  std::int64_t fast_q10 = 0;        // fi_scale
  std::int64_t gamma_q10 = 819;     // gamma: 0.8
  std::int64_t jump_min_q10 = 512;  // max_md_jump: 0.5
  std::int64_t adjust_bytes = 0;    // default 8 MTU
  Duration adjust_period;           // zero: the current base RTT
  Rate rate;

  // REQUIRES an MTU of at least one byte.
  static NsccParams derive(const NsccConfig& config, std::uint32_t mtu, const PeerRules& peer);
};

}  // namespace weft::transport
