#include "transport/answer_scheduler.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::transport {
namespace {

// The delay ends when this many data packets are unanswered.
constexpr std::uint32_t kPacketsDelayedMax = 16;
// A peer counts as blocked when it waited for this many delayed answers in a row.
constexpr std::uint8_t kTimesBlocked = 2;
constexpr Duration kUndelayedFor = Duration::ms(50);

}  // namespace

AnswerScheduler::AnswerScheduler(const Options& options)
    : delay_(options.delay), watched_(options.qp_count_max) {
  prompt_.reserve(options.qp_count_max);
  if (is_delaying()) delayed_.reserve(options.qp_count_max);
}

bool AnswerScheduler::on_data(Time now, std::uint32_t index, OfQp& qp, bool may_delay) {
  qp.received_at = now;
  const bool is_delayed = may_delay && is_delaying();
  if (is_delayed) {
    ++packets_delayed_;
    if (now < qp.blocked_if_before) {
      qp.blocked_if_before = Time();
      if (++qp.times_blocked >= kTimesBlocked) qp.undelayed_until = now + kUndelayedFor;
    }
    if (now < qp.undelayed_until) a_peer_is_blocked_ = true;
  }
  if (qp.is_unanswered) return false;
  qp.is_unanswered = true;
  std::vector<std::uint32_t>& unanswered = is_delayed ? delayed_ : prompt_;
  WEFT_ASSERT(unanswered.size() < unanswered.capacity());  // each QP is in the list once
  unanswered.push_back(index);
  return true;
}

bool AnswerScheduler::is_due(Time now) const {
  if (delayed_.empty()) return false;
  return answer_at_ == kNever || answer_at_ <= now || a_peer_is_blocked_ ||
         packets_delayed_ >= kPacketsDelayedMax;
}

void AnswerScheduler::on_delayed_answered(Time now, OfQp& qp) const {
  WEFT_ASSERT(qp.is_unanswered);
  qp.is_unanswered = false;
  if (answer_at_ > now) {
    qp.times_blocked = 0;
  } else if (now - qp.received_at >= delay_ / 2) {
    // Silence for half of the delay is enough, as another QP's data may have begun the delay.
    const bool went_on_last_time = qp.blocked_if_before == Time();
    if (!went_on_last_time) qp.times_blocked = 0;
    qp.blocked_if_before = now + delay_;
  }
}

void AnswerScheduler::on_all_delayed_answered() {
  delayed_.clear();
  packets_delayed_ = 0;
  a_peer_is_blocked_ = false;
  answer_at_ = kNever;
}

void AnswerScheduler::watch(Time now, std::uint32_t index, OfQp& qp, Duration quiet) {
  if (quiet == Duration() || qp.is_watched) return;
  qp.is_watched = true;
  watched_.push(index);
  quiet_at_ = std::min(quiet_at_, now + quiet);
}

std::size_t AnswerScheduler::begin_quiet_round() {
  quiet_at_ = kNever;
  return watched_.size();
}

std::uint32_t AnswerScheduler::take_watched() {
  const std::uint32_t index = watched_.front();
  watched_.pop();
  return index;
}

bool AnswerScheduler::is_quiet(Time now, std::uint32_t index, OfQp& qp, const Watched& watched) {
  WEFT_ASSERT(qp.is_watched);
  qp.is_watched = false;
  if (!watched.owes_sack) return false;
  const Time due = qp.received_at + watched.quiet;
  if (due <= now) return true;
  qp.is_watched = true;
  watched_.push(index);
  quiet_at_ = std::min(quiet_at_, due);
  return false;
}

void AnswerScheduler::forget(std::uint32_t index) {
  std::erase(prompt_, index);
  std::erase(delayed_, index);
  for (std::size_t left = watched_.size(); left > 0; --left) {
    const std::uint32_t other = take_watched();
    if (other != index) watched_.push(other);
  }
}

}  // namespace weft::transport
