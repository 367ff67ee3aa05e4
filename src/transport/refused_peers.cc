#include "transport/refused_peers.h"

#include "base/assert.h"

namespace weft::transport {
namespace {

constexpr std::uint8_t kProbeRounds = 3;
// Time in which a live peer must answer. Three of them are below a second.
constexpr Duration kAskEvery = Duration::ms(250);
// Refusals may be forged at any rate; probes must not follow that rate.
constexpr Duration kAskAgain = Duration::ms(20);

}  // namespace

void RefusedPeers::on_refusal(Time now, OfQp& qp, const Seen& seen) {
  if (!seen.may_send) return;
  // A packet that was in flight when the peer died may arrive after the first refusal: the count
  // starts anew.
  if (qp.is_in_question && seen.last_heard <= qp.since) return;
  const Time next_at = std::max(now, qp.next_at - kAskEvery + kAskAgain);
  qp = {.is_in_question = true, .times_asked = 0, .since = now, .next_at = next_at};
  // Probes are sent by deadline, even if that is now, and never in the middle of a batch.
  wake_at(next_at);
}

RefusedPeers::Step RefusedPeers::next_step(Time now, OfQp& qp, const Seen& seen) {
  if (!qp.is_in_question) return Step::kWait;
  if (now < qp.next_at) {
    wake_at(qp.next_at);
    return Step::kWait;
  }
  if (!seen.may_send || seen.last_heard > qp.since) {
    qp.is_in_question = false;  // the QP failed for another reason, or the peer was heard
    return Step::kWait;
  }
  if (qp.times_asked < kProbeRounds) return Step::kAsk;
  qp.is_in_question = false;
  return Step::kFail;
}

void RefusedPeers::on_asked(Time now, OfQp& qp, bool sent) {
  WEFT_ASSERT(qp.is_in_question && qp.times_asked < kProbeRounds);
  if (sent) ++qp.times_asked;
  qp.next_at = now + kAskEvery;
  wake_at(qp.next_at);
}

}  // namespace weft::transport
