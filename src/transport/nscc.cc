#include "transport/nscc.h"

#include <algorithm>

namespace weft::transport {
namespace {

// Pacing ends when the gap would let this many packets go in a round trip.
constexpr std::int64_t kPacketsAfterPacing = 4;

// Additive increase, expressed by the gap between packets: the rate 1 / gap grows by a fixed step
// each round trip, so that the senders of an incast converge to equal shares. The rate at most
// doubles at once.
Duration shorter_gap(Duration gap, Duration base_rtt) {
  const std::int64_t rtts_q4 = gap.ps() * 16 / std::max<std::int64_t>(base_rtt.ps(), 1);
  // The step is 1/kStep packet per round trip, times the square of the round trips in a gap.
  constexpr std::int64_t kStep = 125;
  const std::int64_t share = std::min(rtts_q4 * rtts_q4 / 256, kStep);
  return std::min(gap - gap / 8, gap * kStep / (kStep + share));
}

}  // namespace

Nscc::Nscc(const NsccParams& params, Time now)
    : params_(&params),
      window_(params.window_initial),
      window_max_(params.window_max),
      base_rtt_(params.base_rtt),
      last_adjust_(now),
      last_decrease_(now),
      unmarked_(params) {}

void Nscc::reconfigure(const NsccParams& params) {
  WEFT_ASSERT(params.mtu == params_->mtu);  // packets in flight were counted with it
  if (params.base_rtt != params_->base_rtt) base_rtt_ = params.base_rtt;
  // With control off the window is always its initial size.
  if (!params.enabled) window_ = params.window_initial;
  window_max_ = params.window_max;
  window_ = std::clamp(window_, params.window_min, window_max_);
  saved_window_ = std::min(saved_window_, window_max_);
  limit_ = std::max(limit_, params.window_min);
  params_ = &params;
  unmarked_.reconfigure(params);
}

void Nscc::on_sack(Time now, const SackSample& sack) {
  WEFT_ASSERT(sack.newly >= 0);
  inflight_ -= sack.newly;
  if (!params_->enabled) return;
  ignored_ += sack.newly;
  received_ += sack.newly;
  achieved_ += sack.newly;
  if (unmarked_.applies(now) && unmarked_.on_acked(sack.newly, window_)) on_much_loss(now);
  apply_penalty(sack);
  if (gap_ > Duration() && sack.newly > 0) return shorten_gap(now, sack);
  if (!sack.rtt_valid) return;
  if (sack.marked) on_signal(now);
  learn_base_rtt(now, sack);
  const Congestion congestion = congestion_of(now, sack);
  average_delay(congestion);
  if (quick_adapt(now, {.loss = false, .marked = sack.marked, .delay = congestion.delay})) return;
  if (!congestion.marked) {
    if (!limited_) increase(sack.newly, congestion.delay);
  } else if (congestion.delay >=
             (congestion.standing ? params_->standing_queue : params_->target)) {
    decrease(now, congestion.standing);
  }  // else marked but early: the path set moves the load, and the window stays
  if (now - last_adjust_ >= adjust_period() || received_ > params_->adjust_bytes)
    apply_increase(now);
}

// A switch marked or trimmed a packet.
void Nscc::on_signal(Time now) {
  if (!unmarked_.on_signal(now)) return;
  achieved_ = 0;
  qa_armed_ = trigger_qa_ = false;
}

// A round ended in which much was lost, and no switch signalled.
void Nscc::on_much_loss(Time now) {
  window_ = std::max(window_ * 7 / 10, std::min(window_, unmarked_window_min()));
  increase_ = 0;
  stop_fast_increase();
  last_decrease_ = now;
}

// The receiver asks for a smaller window, until it says that the penalty has ended.
void Nscc::apply_penalty(const SackSample& sack) {
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
}

// A paced packet was acknowledged: the gap shrinks, by more when the queue was short. Pacing goes
// on.
void Nscc::shorten_gap(Time now, const SackSample& sack) {
  const bool short_queue = sack.rtt_valid && sack.rtt - base_rtt_ < params_->target / 2;
  gap_ = short_queue ? gap_ / 4 : shorter_gap(gap_, base_rtt_);
  if (gap_ < base_rtt_ / kPacketsAfterPacing) {
    // Pacing ends: the window takes over with the rate that the gap had.
    gap_ = Duration();
    window_ = std::max(window_, kPacketsAfterPacing * params_->window_min);
  }
  increase_ = 0;
  paced_until_ = std::min(paced_until_, now + gap_);
}

void Nscc::learn_base_rtt(Time now, const SackSample& sack) {
  if (params_->unmarked_congestion) {
    unmarked_.on_rtt(now, {.rtt = sack.rtt, .marked = sack.marked, .window = window_});
    base_rtt_ = unmarked_.base_rtt();
  } else if (sack.full_size && sack.rtt < base_rtt_) {
    base_rtt_ = sack.rtt;
    const auto bdp = static_cast<std::int64_t>(params_->rate.bytes_in(base_rtt_));
    window_max_ = std::clamp(bdp * 3 / 2, params_->window_min * 2, params_->window_max);
    window_ = std::min(window_, window_max_);
  }
}

Nscc::Congestion Nscc::congestion_of(Time now, const SackSample& sack) const {
  if (unmarked_.has_standing_queue(now))
    return {.delay = unmarked_.standing_delay(), .marked = true, .standing = true};
  const Duration base = params_->unmarked_congestion ? unmarked_.base_rtt_less_doubt() : base_rtt_;
  return {.delay = std::max(sack.rtt - base, Duration()), .marked = sack.marked};
}

void Nscc::average_delay(const Congestion& congestion) {
  // An unmarked but late packet waited in a queue that is draining now.
  const bool draining = !congestion.marked && congestion.delay > params_->target;
  const Duration delay = draining ? base_rtt_ / 4 : congestion.delay;
  delay_average_ += (delay - delay_average_) / 80;
}

// No mark: additive increase where packets are late; else in proportion to the distance from the
// target.
void Nscc::increase(std::int64_t newly, Duration delay) {
  if (delay >= params_->target) {
    increase_ += params_->fair_increase * newly;
    stop_fast_increase();
  } else if (!fast_increase(newly, delay)) {
    const std::int64_t left = (params_->target - delay).ns() * 1024 / params_->target.ns();
    increase_ += (params_->gain * left >> 10) * newly;
  }
}

bool Nscc::fast_increase(std::int64_t newly, Duration delay) {
  if (delay >= Duration::us(1)) {
    stop_fast_increase();
    return false;
  }
  fast_count_ += newly;
  if ((fast_count_ <= window_ && !increasing_) || unmarked_.growth_max() > 0) return false;
  window_ = std::min(window_ + (newly * params_->fast_q10 >> 10), window_max_);
  increasing_ = true;
  return true;
}

void Nscc::stop_fast_increase() {
  increasing_ = false;
  fast_count_ = 0;
}

// Marked and late: once a round trip, by how much the average delay exceeds the target. A standing
// queue without marks shrinks the window once per interval.
void Nscc::decrease(Time now, bool standing) {
  stop_fast_increase();
  const Duration average = delay_average_;
  const Duration target = standing ? params_->standing_queue : params_->target;
  if (average <= target) return;
  if (now - last_decrease_ <= (standing ? UnmarkedCongestion::kIntervalMin : base_rtt_)) return;
  const std::int64_t over =
      (average - target).ns() * 1024 / std::max<std::int64_t>(average.ns(), 1);
  const std::int64_t keep =
      std::max(1024 - (params_->gamma_q10 * over >> 10), params_->jump_min_q10);
  const std::int64_t window_min = standing ? unmarked_window_min() : params_->window_min;
  window_ = std::max(window_ * keep >> 10, std::min(window_, window_min));
  last_decrease_ = now;
  // The window must grow back slowly, or the queue stands again before it is noticed.
  if (standing) unmarked_.limit_growth();
}

// The window grows by the sum that increase() collected.
void Nscc::apply_increase(Time now) {
  const std::int64_t growth_max = unmarked_.growth_max();
  std::int64_t more = increase_ / std::max<std::int64_t>(window_, 1);
  if (growth_max > 0)
    more = std::min(more, growth_max * received_ / std::max<std::int64_t>(window_, 1));
  window_ += more;
  if (now - last_adjust_ >= adjust_period()) {
    if (!limited_ && growth_max == 0) window_ += params_->eta;
    last_adjust_ = now;
  }
  window_ = std::min(window_, window_max_);
  increase_ = 0;
  received_ = 0;
}

bool Nscc::quick_adapt(Time now, Signal signal) {
  if (!params_->quick_adapt || unmarked_.applies(now)) return false;
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
  account(-trim.size);
  if (!params_->enabled) return;
  on_signal(now);
  delay_average_ += (params_->base_rtt - delay_average_) / 80;
  ignored_ += trim.size;
  trigger_qa_ = true;
  const bool at_floor = window_ <= params_->window_min;
  if (!quick_adapt(now, {.loss = true, .marked = true, .delay = Duration()})) {
    // At the last hop all paths meet, and what was in flight was too much: the window is set to
    // that less the trimmed packet. In the core another path may take the packet.
    if (trim.last_hop) window_ = std::min(window_, inflight_ + trim.size);
    window_ = std::max(window_ - trim.size, params_->window_min);
  }
  // Trimmed although this was the only packet in flight: many senders share the last hop. A packet
  // that was in flight when the gap last grew is not counted twice.
  if (at_floor && trim.sent_at >= gap_since_) {
    constexpr std::int64_t kGapRttMax = 8;
    gap_ = std::clamp(gap_ + gap_, base_rtt_, base_rtt_ * kGapRttMax);
    gap_since_ = now;
  }
  if (gap_ > Duration()) pace(now, trim.draw);
}

// The next packet goes after half to one and a half gaps.
void Nscc::pace(Time now, std::uint32_t draw) {
  WEFT_ASSERT(gap_ > Duration());
  paced_until_ = now + gap_ / 2 + Duration::ps(gap_.ps() / 65536 * (draw & 0xffff));
}

// Where switches trim, congestion shows as trims: a loss without a trim comes from an error or a
// fault, and sending less would not prevent the next one (docs/decisions/0004).
void Nscc::on_loss(Time now, std::int64_t size) {
  account(-size);
  if (!params_->enabled || params_->trimming) return;
  if (unmarked_.applies(now)) return unmarked_.on_lost(size);
  window_ = std::max(window_ - size, params_->window_min);
  ignored_ += size;
}

std::int64_t Nscc::settle() {
  const std::int64_t left = inflight_;
  inflight_ = 0;
  return left;
}

}  // namespace weft::transport
