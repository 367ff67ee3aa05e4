#include "transport/nscc.h"

#include <algorithm>

namespace weft::transport {

NsccParams NsccParams::derive(const NsccConfig& config, std::uint32_t mtu) {
  NsccParams p;
  p.enabled = config.enabled;
  p.quick_adapt = config.quick_adapt;
  p.mtu = mtu;
  p.base_rtt = config.base_rtt;
  p.rate = config.rate;
  p.qa_gate = config.qa_gate;
  const auto bdp = static_cast<std::int64_t>(config.rate.bytes_in(config.base_rtt));
  p.window_max = config.cwnd_bytes_max != 0 ? config.cwnd_bytes_max : bdp * 3 / 2;
  p.window_max = std::max<std::int64_t>(p.window_max, mtu + 128);
  p.window_initial = config.cwnd_bytes_initial != 0 ? config.cwnd_bytes_initial : p.window_max;
  p.target = config.target_delay;
  if (p.target == Duration()) p.target = config.trimming ? config.base_rtt * 3 / 4 : config.base_rtt;
  p.qa_threshold = config.qa_threshold;
  if (p.qa_threshold == Duration() && !config.trimming) p.qa_threshold = p.target * 4;
  // scaling_a = BDP / (100 Gb/s * 12 us), scaling_b = target / 12 us. b grows with long software RTTs until the gain
  // approaches a BDP a round trip: it is held at 1.
  const std::int64_t a_q10 = std::max<std::int64_t>(bdp * 1024 / 150'000, 1);
  const std::int64_t b_q10 = std::clamp<std::int64_t>(p.target.ns() * 1024 / 12'000, 1, 1024);
  p.gain = std::max<std::int64_t>(4 * a_q10 * b_q10 * p.mtu >> 20, 1);
  p.fair_increase = 5 * a_q10 * p.mtu >> 10;
  p.eta = 15 * a_q10 * p.mtu / 100 >> 10;
  p.fast_q10 = std::max<std::int64_t>(a_q10 / 4, 1);
  p.adjust_bytes = 8 * p.mtu;
  return p;
}

Nscc::Nscc(const NsccParams& params, Time now)
    : params_(&params),
      window_(params.window_initial),
      window_max_(params.window_max),
      base_rtt_(params.base_rtt),
      last_adjust_(now),
      last_decrease_(now) {}

void Nscc::on_sack(Time now, const SackSample& sack) {
  inflight_ -= sack.newly;
  if (!params_->enabled) return;
  ignored_ += sack.newly;
  received_ += sack.newly;
  achieved_ += sack.newly;
  if (sack.penalty > 0) {
    if (saved_window_ == 0) saved_window_ = window_;
    window_ = std::min(window_, std::max<std::int64_t>(inflight_, 0));
    window_ = std::max(params_->mtu, window_ - sack.penalty * sack.newly / 128);
    limited_ = true;
  } else if (saved_window_ != 0 && sack.restore) {
    window_ = saved_window_;
    saved_window_ = 0;
    limited_ = false;
  }
  if (!sack.rtt_valid) return;
  if (sack.full_size && sack.rtt < base_rtt_) {
    base_rtt_ = sack.rtt;
    const auto bdp = static_cast<std::int64_t>(params_->rate.bytes_in(base_rtt_));
    window_max_ = std::clamp(bdp * 3 / 2, params_->mtu * 2, params_->window_max);
    window_ = std::min(window_, window_max_);
  }
  const Duration delay = std::max(sack.rtt - base_rtt_, Duration());
  observe_delay(delay, sack.marked);
  if (quick_adapt(now, {.loss = false, .marked = sack.marked, .delay = delay})) return;
  const bool late = delay >= params_->target;
  if (sack.marked) {
    // Marked but early: the path set moves the load, the window stays.
    if (late) decrease(now);
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
  if (now - last_adjust_ >= base_rtt_ || received_ > params_->adjust_bytes) fulfil(now);
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
  if (fast_count_ <= window_ && !increasing_) return false;
  window_ = std::min(window_ + (newly * params_->fast_q10 >> 10), window_max_);
  increasing_ = true;
  return true;
}

void Nscc::decrease(Time now) {
  increasing_ = false;
  fast_count_ = 0;
  const Duration average = delay_average_;
  if (average <= params_->target || now - last_decrease_ <= base_rtt_) return;
  const std::int64_t over = (average - params_->target).ns() * 1024 / std::max<std::int64_t>(average.ns(), 1);
  const std::int64_t keep = std::max(1024 - (params_->gamma_q10 * over >> 10), params_->jump_min_q10);
  window_ = std::max(window_ * keep >> 10, params_->mtu);
  last_decrease_ = now;
}

void Nscc::fulfil(Time now) {
  window_ += increase_ / std::max<std::int64_t>(window_, 1);
  if (now - last_adjust_ >= base_rtt_) {
    if (!limited_) window_ += params_->eta;
    last_adjust_ = now;
  }
  window_ = std::min(window_, window_max_);
  increase_ = 0;
  received_ = 0;
}

bool Nscc::quick_adapt(Time now, Signal signal) {
  if (!params_->quick_adapt) return false;
  bool done = false;
  const bool ignoring = ignored_ < ignore_ && signal.marked;
  if (!ignoring && now >= qa_end_) {
    const bool late = params_->qa_threshold > Duration() && signal.delay > params_->qa_threshold;
    if (qa_armed_ && (trigger_qa_ || signal.loss || late) &&
        achieved_ < window_max_ >> params_->qa_gate) {
      window_ = std::max(std::min(achieved_, window_max_), params_->mtu);
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

void Nscc::on_trim(Time now, std::int64_t size) {
  inflight_ -= size;
  if (!params_->enabled) return;
  delay_average_ += (params_->base_rtt - delay_average_) / 80;
  ignored_ += size;
  trigger_qa_ = true;
  if (!quick_adapt(now, {.loss = true, .marked = true, .delay = Duration()})) {
    window_ = std::max(window_ - size, params_->mtu);
  }
}

void Nscc::on_loss(Time, std::int64_t size) {
  inflight_ -= size;
  if (!params_->enabled) return;
  window_ = std::max(window_ - size, params_->mtu);
  ignored_ += size;
}

std::int64_t Nscc::settle() {
  const std::int64_t left = inflight_;
  inflight_ = 0;
  return left;
}

}  // namespace weft::transport
