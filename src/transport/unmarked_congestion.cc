#include "transport/unmarked_congestion.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::transport {
namespace {

// After this many base RTTs without a signal switches count as unable to signal.
constexpr std::int64_t kSilentRtts = 100;
// An interval is at least this many base RTTs long.
constexpr std::int64_t kIntervalRtts = 8;
// A delay that stays for this many intervals at the smallest window is the length of the path.
constexpr std::uint8_t kIntervalsAtFloor = 4;
// Marks are counted over kMarkSamples samples, of which kManyMarks count as many.
constexpr std::uint8_t kMarkSamples = 32, kManyMarks = 8;
// Loss is counted over one window of packets, but over at least this many.
constexpr std::int64_t kRoundPackets = 64;
// Much loss: at least kLostPacketsMin packets, and at least one in kLostShare.
constexpr std::int64_t kLostPacketsMin = 4, kLostShare = 16;

}  // namespace

void UnmarkedCongestion::reconfigure(const NsccParams& params) {
  if (params.base_rtt != params_->base_rtt) base_rtt_ = params.base_rtt;
  params_ = &params;
}

bool UnmarkedCongestion::applies(Time now) const {
  return params_->unmarked_congestion &&
         (!signalled_ || now - last_signal_at_ >= base_rtt_ * kSilentRtts);
}

bool UnmarkedCongestion::on_signal(Time now) {
  const bool first = applies(now);
  if (first) round_acked_ = round_lost_ = growth_max_ = 0;
  signalled_ = true;
  last_signal_at_ = now;
  return first;
}

void UnmarkedCongestion::on_rtt(Time now, const Sample& sample) {
  WEFT_ASSERT(params_->unmarked_congestion);
  rtt_min_ = std::min(rtt_min_, sample.rtt);
  if (now >= interval_end_) end_interval(now, sample);
  base_rtt_ = std::max(params_->base_rtt, rtt_min_);
  rtt_min_now_ = std::min(rtt_min_now_, sample.rtt);
  count_mark(sample.marked, sample.window);
}

void UnmarkedCongestion::end_interval(Time now, const Sample& sample) {
  if (is_longer_path(now, sample.window)) rtt_min_ = std::min(rtt_min_now_, sample.rtt);
  rtt_min_before_ = rtt_min_now_;
  rtt_min_now_ = kNoRtt;
  interval_end_ = now + std::max(base_rtt_ * kIntervalRtts, kIntervalMin);
}

// At the smallest window our own queue is gone. A delay that remains for some intervals after a
// plane was lost is therefore the length of the remaining paths. At other times this must not be
// concluded: each of many flows would take the others' queue for the length of its path, add its
// own queue to it, and so on.
bool UnmarkedCongestion::is_longer_path(Time now, std::int64_t window) {
  if (intervals_after_loss_ == 0) return false;
  --intervals_after_loss_;
  const bool at_floor = window <= kPacketsMin * params_->window_min;
  intervals_at_floor_ = has_standing_queue(now) && at_floor
                            ? static_cast<std::uint8_t>(intervals_at_floor_ + 1)
                            : std::uint8_t{0};
  if (intervals_at_floor_ < kIntervalsAtFloor) return false;
  intervals_at_floor_ = 0;
  return true;
}

// Marks that go on outweigh the smallest RTT ever seen. A sender that started when a queue stood
// that never emptied takes that queue for the length of its path, sees no delay, and would keep
// more than its share. So marks make up to half of the base RTT doubtful; the rest may well be the
// path.
void UnmarkedCongestion::count_mark(bool marked, std::int64_t window) {
  samples_marked_ = static_cast<std::uint8_t>(samples_marked_ + (marked ? 1 : 0));
  if (++samples_ < kMarkSamples) return;
  if (samples_marked_ < kManyMarks) {
    base_rtt_doubt_ -= base_rtt_doubt_ / 8;
  } else if (window > 2 * params_->window_min) {
    base_rtt_doubt_ = std::min(base_rtt_doubt_ + base_rtt_ / 8, base_rtt_ / 2);
  }
  samples_ = samples_marked_ = 0;
}

Duration UnmarkedCongestion::base_rtt_less_doubt() const {
  return std::max(base_rtt_ - base_rtt_doubt_, params_->base_rtt);
}

bool UnmarkedCongestion::has_standing_queue(Time now) const {
  return applies(now) && rtt_min_before_ != kNoRtt && standing_delay() >= params_->standing_queue;
}

Duration UnmarkedCongestion::standing_delay() const {
  WEFT_ASSERT(rtt_min_before_ != kNoRtt);
  return std::min(rtt_min_now_, rtt_min_before_) - base_rtt_;
}

// A little loss is not congestion. After much loss the window grows by one packet per round trip,
// as TCP's does, and rounds without much loss let it grow faster again.
bool UnmarkedCongestion::on_acked(std::int64_t bytes, std::int64_t window) {
  WEFT_ASSERT(bytes >= 0);
  round_acked_ += bytes;
  const std::int64_t total = round_acked_ + round_lost_;
  if (total < std::max(window, kRoundPackets * params_->mtu)) return false;
  const bool much_lost =
      round_lost_ >= kLostPacketsMin * params_->mtu && round_lost_ * kLostShare > total;
  if (much_lost) {
    limit_growth();
  } else if (growth_max_ > 0) {
    growth_max_ += growth_max_ / 16;
    if (growth_max_ > params_->gain) growth_max_ = 0;
  }
  round_acked_ = round_lost_ = 0;
  return much_lost;
}

}  // namespace weft::transport
