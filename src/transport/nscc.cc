#include "transport/nscc.h"

#include <algorithm>

#include "wire/framing.h"
#include "wire/packet.h"

namespace weft::transport {
namespace {

// Pacing ends when the gap would let so many packets go in a round trip.
constexpr std::int64_t kPacketsAfterPacing = 4;

// A queue stands when the smallest RTT of so long a time shows it: longer than a process waits for
// a core.
constexpr std::int64_t kStandingRtts = 8;
constexpr Duration kStandingMin = Duration::ms(10);
// Where no switch speaks a window does not become smaller than that.
constexpr std::int64_t kPacketsMin = 4;
// After so many intervals at that window what stands is taken for the way's length.
constexpr std::uint8_t kIntervalsAtFloor = 4;
// Loss is counted over a window, and over no fewer packets than these.
constexpr std::int64_t kRoundPackets = 64;

// Additive increase, seen from the gap between packets: a rate of 1 / gap grows by the same step a
// round trip whatever it is, so that senders in one incast come to equal shares. At most twice the
// rate at once.
Duration closer(Duration gap, Duration base_rtt) {
  const std::int64_t rtts_q4 = gap.ps() * 16 / std::max<std::int64_t>(base_rtt.ps(), 1);
  constexpr std::int64_t kStep =
      125;  // of which part of a packet a round trip, squared round trips
  const std::int64_t share = std::min(rtts_q4 * rtts_q4 / 256, kStep);
  return std::min(gap - gap / 8, gap * kStep / (kStep + share));
}

}  // namespace

NsccParams NsccParams::derive(const NsccConfig& config, std::uint32_t mtu) {
  NsccParams p;
  p.enabled = config.enabled;
  p.quick_adapt = config.quick_adapt;
  p.trimming = config.trimming;
  p.software = config.software;
  p.mtu = mtu;
  // The largest packet: full, with immediate.
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
  if (config.target_delay == Duration() && config.software) p.target = config.base_rtt * 4;
  // Below the target: TCP beside us fills what is left of the switch's queue and must find some.
  p.standing = p.target * 4 / 5;
  p.qa_threshold = config.qa_threshold;
  if (p.qa_threshold == Duration() && !config.trimming) p.qa_threshold = p.target * 4;
  // scaling_a = BDP / (100 Gb/s * 12 us), scaling_b = target / 12 us. b grows with long software
  // RTTs until the gain approaches a BDP a round trip: it is held at 1.
  const std::int64_t a_q10 = std::max<std::int64_t>(bdp * 1024 / 150'000, 1);
  const std::int64_t b_q10 = std::clamp<std::int64_t>(p.target.ns() * 1024 / 12'000, 1, 1024);
  p.gain = std::max<std::int64_t>(4 * a_q10 * b_q10 * p.mtu >> 20, 1);
  p.fair_increase = 5 * a_q10 * p.mtu >> 10;
  p.eta = 15 * a_q10 * p.mtu / 100 >> 10;
  p.fast_q10 = std::max<std::int64_t>(a_q10 / 4, 1);
  p.adjust_bytes = 8 * p.mtu;
  p.adjust_period = config.adjust_period;
  const auto told = [](std::uint32_t value, std::int64_t& out) {
    if (value != 0) out = value;
  };
  told(config.fair_increase_bytes, p.fair_increase);
  told(config.eta_bytes, p.eta);
  told(config.fast_increase_q10, p.fast_q10);
  told(config.gamma_q10, p.gamma_q10);
  told(config.jump_min_q10, p.jump_min_q10);
  told(config.adjust_bytes, p.adjust_bytes);
  return p;
}

Nscc::Nscc(const NsccParams& params, Time now)
    : params_(&params),
      window_(params.window_initial),
      window_max_(params.window_max),
      base_rtt_(params.base_rtt),
      last_adjust_(now),
      last_decrease_(now) {}

void Nscc::reconfigure(const NsccParams& params) {
  if (params.base_rtt != params_->base_rtt) base_rtt_ = params.base_rtt;
  // Without control the window is what it would be at first.
  if (!params.enabled) window_ = params.window_initial;
  window_max_ = params.window_max;
  window_ = std::clamp(window_, params.window_min, window_max_);
  saved_window_ = std::min(saved_window_, window_max_);
  limit_ = std::max(limit_, params.window_min);
  params_ = &params;
}

void Nscc::on_sack(Time now, const SackSample& sack) {
  inflight_ -= sack.newly;
  if (!params_->enabled) return;
  ignored_ += sack.newly;
  received_ += sack.newly;
  achieved_ += sack.newly;
  if (is_untold(now)) {
    round_acked_ += sack.newly;
    end_round(now);
  }
  if (sack.penalty > 0) {
    if (saved_window_ == 0) saved_window_ = window_;
    window_ = std::min(window_, std::max<std::int64_t>(inflight_, 0));
    window_ = std::max(params_->window_min, window_ - sack.penalty * sack.newly / 128);
    limited_ = true;
  } else if (saved_window_ != 0 && sack.restore) {
    window_ = saved_window_;
    saved_window_ = 0;
    limited_ = false;
  }
  if (gap_ > Duration() && sack.newly > 0) {
    // It gets through: come closer, faster when the queue was short, but no window yet.
    const bool short_queue = sack.rtt_valid && sack.rtt - base_rtt_ < params_->target / 2;
    gap_ = short_queue ? gap_ / 4 : closer(gap_, base_rtt_);
    if (gap_ < base_rtt_ / kPacketsAfterPacing) {
      // A window again, at the rate that the gap had.
      gap_ = Duration();
      window_ = std::max(window_, kPacketsAfterPacing * params_->window_min);
    }
    increase_ = 0;
    paced_until_ = std::min(paced_until_, now + gap_);
    return;
  }
  if (!sack.rtt_valid) return;
  if (sack.marked) note_signal(now);
  if (params_->software) {
    observe_software(now, sack.rtt);
    observe_marks(sack.marked);
  } else if (sack.full_size && sack.rtt < base_rtt_) {
    base_rtt_ = sack.rtt;
    const auto bdp = static_cast<std::int64_t>(params_->rate.bytes_in(base_rtt_));
    window_max_ = std::clamp(bdp * 3 / 2, params_->window_min * 2, params_->window_max);
    window_ = std::min(window_, window_max_);
  }
  const Duration base =
      params_->software ? std::max(base_rtt_ - doubt_, params_->base_rtt) : base_rtt_;
  Duration delay = std::max(sack.rtt - base, Duration());
  const bool stands = queue_stands(now);
  if (stands) delay = std::min(rtt_min_now_, rtt_min_before_) - base_rtt_;
  const bool marked = sack.marked || stands;
  observe_delay(delay, marked);
  if (quick_adapt(now, {.loss = false, .marked = sack.marked, .delay = delay})) return;
  const bool late = delay >= (stands ? params_->standing : params_->target);
  if (marked) {
    // Marked but early: the path set moves the load, the window stays.
    if (late) decrease(now, stands);
  } else if (!limited_) {
    if (late) {
      increase_ += params_->fair_increase * sack.newly;
      increasing_ = false;
      fast_count_ = 0;
    } else if (!fast_increase(sack.newly, delay)) {
      const std::int64_t left = (params_->target - delay).ns() * 1024 / params_->target.ns();
      increase_ += (params_->gain * left >> 10) * sack.newly;
    }
  }
  if (now - last_adjust_ >= adjust_period() || received_ > params_->adjust_bytes) fulfil(now);
}

void Nscc::note_signal(Time now) {
  if (is_untold(now)) {
    // What was counted while nobody spoke is of no use now.
    round_acked_ = round_lost_ = growth_ = achieved_ = 0;
    qa_armed_ = trigger_qa_ = false;
  }
  signalled_ = true;
  signal_at_ = now;
}

// Between software ends, while no switch has spoken for long: what is late or lost has to tell.
bool Nscc::is_untold(Time now) const {
  constexpr std::int64_t kSilentRtts = 100;
  return params_->software && (!signalled_ || now - signal_at_ >= base_rtt_ * kSilentRtts);
}

void Nscc::observe_software(Time now, Duration rtt) {
  rtt_min_ = std::min(rtt_min_, rtt);
  if (now >= rtt_interval_end_) {
    if (is_longer_way(now)) rtt_min_ = std::min(rtt_min_now_, rtt);
    rtt_min_before_ = rtt_min_now_;
    rtt_min_now_ = kNoRtt;
    rtt_interval_end_ = now + std::max(base_rtt_ * kStandingRtts, kStandingMin);
  }
  base_rtt_ = std::max(params_->base_rtt, rtt_min_);
  rtt_min_now_ = std::min(rtt_min_now_, rtt);
}

// At the end of an interval. With the smallest window our own queue is gone: what stands all the
// same, for some intervals, is what the remaining planes take longer. Not at any time: of many
// flows each would take the others' queue for the way's length, add its own to it, and so on.
bool Nscc::is_longer_way(Time now) {
  if (may_be_longer_ == 0) return false;
  --may_be_longer_;
  const bool so = queue_stands(now) && window_ <= kPacketsMin * params_->window_min;
  stood_at_floor_ = so ? static_cast<std::uint8_t>(stood_at_floor_ + 1) : 0;
  if (stood_at_floor_ < kIntervalsAtFloor) return false;
  stood_at_floor_ = 0;
  return true;
}

// Marks that go on are believed more than the smallest RTT ever seen: who came into a queue that
// never emptied takes it for the way's length, finds no delay, and would keep more than its share.
// Up to half of it is doubted: the rest may well be the way.
void Nscc::observe_marks(bool marked) {
  constexpr std::uint8_t kSamples = 32, kMany = 8;
  samples_marked_ = static_cast<std::uint8_t>(samples_marked_ + (marked ? 1 : 0));
  if (++samples_ < kSamples) return;
  if (samples_marked_ < kMany) {
    doubt_ -= doubt_ / 8;
  } else if (window_ > 2 * params_->window_min) {
    doubt_ = std::min(doubt_ + base_rtt_ / 8, base_rtt_ / 2);
  }
  samples_ = samples_marked_ = 0;
}

// Where no switch speaks, much loss is congestion, and a little is not: a few per cent of a round
// shrink the window and make it grow by a packet a round trip, as TCP's; quiet rounds let it grow
// faster again.
void Nscc::end_round(Time now) {
  const std::int64_t total = round_acked_ + round_lost_;
  if (total < std::max(window_, kRoundPackets * params_->mtu)) return;
  if (round_lost_ >= 4 * params_->mtu && round_lost_ * 16 > total) {
    window_ = std::max(window_ * 7 / 10, std::min(window_, kPacketsMin * params_->window_min));
    growth_ = params_->mtu;
    increase_ = 0;
    increasing_ = false;
    fast_count_ = 0;
    last_decrease_ = now;
  } else if (growth_ > 0) {
    growth_ += growth_ / 16;
    if (growth_ > params_->gain) growth_ = 0;
  }
  round_acked_ = round_lost_ = 0;
}

// No switch ever speaks, and even the fastest packets of some time waited.
bool Nscc::queue_stands(Time now) const {
  return is_untold(now) && rtt_min_before_ != kNoRtt &&
         std::min(rtt_min_now_, rtt_min_before_) - base_rtt_ >= params_->standing;
}

void Nscc::observe_delay(Duration delay, bool marked) {
  // An unmarked late packet comes from a queue that is draining.
  if (!marked && delay > params_->target) delay = base_rtt_ / 4;
  delay_average_ += (delay - delay_average_) / 80;
}

bool Nscc::fast_increase(std::int64_t newly, Duration delay) {
  if (delay >= Duration::us(1)) {
    fast_count_ = 0;
    increasing_ = false;
    return false;
  }
  fast_count_ += newly;
  if ((fast_count_ <= window_ && !increasing_) || growth_ > 0) return false;
  window_ = std::min(window_ + (newly * params_->fast_q10 >> 10), window_max_);
  increasing_ = true;
  return true;
}

void Nscc::decrease(Time now, bool stands) {
  increasing_ = false;
  fast_count_ = 0;
  const Duration average = delay_average_;
  const Duration target = stands ? params_->standing : params_->target;
  if (average <= target) return;
  if (now - last_decrease_ <= (stands ? kStandingMin : base_rtt_)) return;
  const std::int64_t over =
      (average - target).ns() * 1024 / std::max<std::int64_t>(average.ns(), 1);
  const std::int64_t keep =
      std::max(1024 - (params_->gamma_q10 * over >> 10), params_->jump_min_q10);
  const std::int64_t least = stands ? kPacketsMin * params_->window_min : params_->window_min;
  window_ = std::max(window_ * keep >> 10, std::min(window_, least));
  last_decrease_ = now;
  if (stands) growth_ = params_->mtu;  // back slowly, or the queue stands again before it is seen
}

void Nscc::fulfil(Time now) {
  std::int64_t more = increase_ / std::max<std::int64_t>(window_, 1);
  if (growth_ > 0) more = std::min(more, growth_ * received_ / std::max<std::int64_t>(window_, 1));
  window_ += more;
  if (now - last_adjust_ >= adjust_period()) {
    if (!limited_ && growth_ == 0) window_ += params_->eta;
    last_adjust_ = now;
  }
  window_ = std::min(window_, window_max_);
  increase_ = 0;
  received_ = 0;
}

bool Nscc::quick_adapt(Time now, Signal signal) {
  if (!params_->quick_adapt || is_untold(now)) return false;
  bool done = false;
  const bool ignoring = ignored_ < ignore_ && signal.marked;
  if (!ignoring && now >= qa_end_) {
    const bool late = params_->qa_threshold > Duration() && signal.delay > params_->qa_threshold;
    if (qa_armed_ && (trigger_qa_ || signal.loss || late) &&
        achieved_ < window_max_ >> params_->qa_gate) {
      window_ = std::max(std::min(achieved_, window_max_), params_->window_min);
      ignore_ = inflight_;
      ignored_ = 0;
      trigger_qa_ = false;
      done = true;
    }
    achieved_ = 0;
    qa_end_ = now + base_rtt_ + params_->target;
    qa_armed_ = true;
  }
  if (done || ignoring) {
    increase_ = 0;
    received_ = 0;
  }
  return done || ignoring;
}

void Nscc::on_trim(Time now, const Trim& trim) {
  inflight_ -= trim.size;
  if (!params_->enabled) return;
  note_signal(now);
  delay_average_ += (params_->base_rtt - delay_average_) / 80;
  ignored_ += trim.size;
  trigger_qa_ = true;
  const bool at_floor = window_ <= params_->window_min;
  if (!quick_adapt(now, {.loss = true, .marked = true, .delay = Duration()})) {
    // At the last hop a window that the flow never filled says nothing: what was in flight is what
    // was too much. In the core another path may take it.
    if (trim.last_hop) window_ = std::min(window_, inflight_ + trim.size);
    window_ = std::max(window_ - trim.size, params_->window_min);
  }
  // Trimmed although there was only this one: many senders share the last hop. Packets that were
  // under way when the gap last grew say nothing new.
  if (at_floor && trim.sent_at >= gap_since_) {
    constexpr std::int64_t kGapRttMax = 8;
    gap_ = std::clamp(gap_ + gap_, base_rtt_, base_rtt_ * kGapRttMax);
    gap_since_ = now;
  }
  if (gap_ > Duration()) pace(now, trim.draw);
}

// The next packet in half to one and a half gaps.
void Nscc::pace(Time now, std::uint32_t draw) {
  paced_until_ = now + gap_ / 2 + Duration::ps(gap_.ps() / 65536 * (draw & 0xffff));
}

// Where switches trim, congestion shows as trims: what is lost without one fell to an error or a
// fault, and sending less would not save the next (docs/decisions/0004).
void Nscc::on_loss(Time now, std::int64_t size) {
  inflight_ -= size;
  if (!params_->enabled || params_->trimming) return;
  if (is_untold(now)) {
    round_lost_ += size;
    return;
  }
  window_ = std::max(window_ - size, params_->window_min);
  ignored_ += size;
}

std::int64_t Nscc::settle() {
  const std::int64_t left = inflight_;
  inflight_ = 0;
  return left;
}

}  // namespace weft::transport
