#include "transport/answer_scheduler.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::transport {
namespace {

// More data packets than that are not left unanswered.
constexpr std::uint32_t kPacketsUnansweredMax = 16;
// Delayed answers in a row that a peer must be blocked on.
constexpr std::uint8_t kTimesBlocked = 2;
constexpr Duration kUndelayedFor = Duration::ms(50);

}  // namespace

AnswerScheduler::AnswerScheduler(const Options& options)
    : delay_(options.delay), quiet_(options.quiet) {
  unanswered_.reserve(options.qp_count_max);
  if (quiet_ > Duration()) watched_ = Ring<std::uint32_t>(options.qp_count_max);
}

bool AnswerScheduler::on_data(Time now, std::uint32_t index, OfQp& qp) {
  qp.received_at = now;
  if (is_delaying()) {
    if (now < qp.blocked_if_before) {
      qp.blocked_if_before = Time();
      if (++qp.times_blocked >= kTimesBlocked) qp.undelayed_until = now + kUndelayedFor;
    }
    if (now < qp.undelayed_until) a_peer_is_blocked_ = true;
  }
  ++packets_unanswered_;
  if (qp.is_unanswered) return false;
  WEFT_ASSERT(unanswered_.size() < unanswered_.capacity());  // each QP is in it once
  qp.is_unanswered = true;
  unanswered_.push_back(index);
  return true;
}

bool AnswerScheduler::is_due(Time now) const {
  if (unanswered_.empty()) return false;
  return answer_at_ == kNever || answer_at_ <= now || a_peer_is_blocked_ ||
         packets_unanswered_ >= kPacketsUnansweredMax;
}

void AnswerScheduler::on_answered(Time now, OfQp& qp) const {
  WEFT_ASSERT(qp.is_unanswered);
  qp.is_unanswered = false;
  if (!is_delaying()) return;
  if (answer_at_ > now) {
    qp.times_blocked = 0;
  } else if (now - qp.received_at >= delay_ / 2) {
    // Half of the delay: another QP's data may have begun it.
    const bool went_on_last_time = qp.blocked_if_before == Time();
    if (!went_on_last_time) qp.times_blocked = 0;
    qp.blocked_if_before = now + delay_;
  }
}

void AnswerScheduler::on_all_answered() {
  unanswered_.clear();
  packets_unanswered_ = 0;
  a_peer_is_blocked_ = false;
  answer_at_ = kNever;
}

void AnswerScheduler::watch(Time now, std::uint32_t index, OfQp& qp) {
  if (quiet_ == Duration() || qp.is_watched) return;
  qp.is_watched = true;
  watched_.push(index);
  quiet_at_ = std::min(quiet_at_, now + quiet_);
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

bool AnswerScheduler::is_quiet(Time now, std::uint32_t index, OfQp& qp, bool owes_sack) {
  WEFT_ASSERT(qp.is_watched);
  qp.is_watched = false;
  if (!owes_sack) return false;
  const Time due = qp.received_at + quiet_;
  if (due <= now) return true;
  qp.is_watched = true;
  watched_.push(index);
  quiet_at_ = std::min(quiet_at_, due);
  return false;
}

void AnswerScheduler::forget(std::uint32_t index) {
  std::erase(unanswered_, index);
  for (std::size_t left = watched_.size(); left > 0; --left) {
    const std::uint32_t other = take_watched();
    if (other != index) watched_.push(other);
  }
}

}  // namespace weft::transport
