#include "transport/nscc_params.h"

#include <algorithm>

#include "base/assert.h"
#include "wire/framing.h"
#include "wire/packet.h"

namespace weft::transport {

NsccParams NsccParams::derive(const NsccConfig& config, std::uint32_t mtu, const PeerRules& peer) {
  WEFT_ASSERT(mtu > 0);
  NsccParams p;
  p.enabled = config.enabled;
  p.quick_adapt = config.quick_adapt;
  p.trimming = config.trimming;
  p.unmarked_congestion = peer.unmarked_congestion;
  p.mtu = mtu;
  // The largest packet: a full one with an immediate.
  p.window_min =
      wire::nominal_size({.header_size = wire::header_size(
                              {.opcode = wire::Opcode::kWriteLastImm, .has_timestamp = true}),
                          .payload_size = mtu});
  p.base_rtt = config.base_rtt;
  p.rate = config.rate;
  p.qa_gate = config.qa_gate;
  const auto bdp = static_cast<std::int64_t>(config.rate.bytes_in(config.base_rtt));
  p.window_max = config.cwnd_bytes_max != 0 ? config.cwnd_bytes_max : bdp * 3 / 2;
  p.window_max = std::max<std::int64_t>(p.window_max, 2 * p.window_min);
  p.window_initial = config.cwnd_bytes_initial != 0 ? config.cwnd_bytes_initial : p.window_max;
  p.target = config.target_delay;
  if (p.target == Duration())
    p.target = config.trimming ? config.base_rtt * 3 / 4 : config.base_rtt;
  if (config.target_delay == Duration() && peer.target_rtts > 0)
    p.target = config.base_rtt * peer.target_rtts;
  // Below the target: a TCP flow that shares the switch's queue must find room left in it.
  p.standing_queue = p.target * 4 / 5;
  p.qa_threshold = config.qa_threshold;
  if (p.qa_threshold == Duration() && !config.trimming) p.qa_threshold = p.target * 4;
  // scaling_a = BDP / (100 Gb/s * 12 us), scaling_b = target / 12 us. With the long RTTs of
  // software, b would grow until the gain is near one BDP per round trip: b is at most 1.
  const std::int64_t a_q10 = std::max<std::int64_t>(bdp * 1024 / 150'000, 1);
  const std::int64_t b_q10 = std::clamp<std::int64_t>(p.target.ns() * 1024 / 12'000, 1, 1024);
  p.gain = std::max<std::int64_t>(4 * a_q10 * b_q10 * p.mtu >> 20, 1);
  p.fair_increase = 5 * a_q10 * p.mtu >> 10;
  p.eta = 15 * a_q10 * p.mtu / 100 >> 10;
  p.fast_q10 = std::max<std::int64_t>(a_q10 / 4, 1);
  p.adjust_bytes = 8 * p.mtu;
  p.adjust_period = config.adjust_period;
  const auto configured = [](std::uint32_t value, std::int64_t& out) {
    if (value != 0) out = value;
  };
  configured(config.fair_increase_bytes, p.fair_increase);
  configured(config.eta_bytes, p.eta);
  configured(config.fast_increase_q10, p.fast_q10);
  configured(config.gamma_q10, p.gamma_q10);
  configured(config.jump_min_q10, p.jump_min_q10);
  configured(config.adjust_bytes, p.adjust_bytes);
  WEFT_ASSERT(p.window_min > 0 && p.window_min <= p.window_max);
  return p;
}

}  // namespace weft::transport
