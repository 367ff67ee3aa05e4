// Endpoint, refusals: a peer's host says that nobody has its port. Is the peer gone?
//
// A process that is killed leaves its host behind, which refuses what comes for it: a better word
// than silence, and anybody can forge it. So the QP asks: three probes on each plane, and only one
// that hears nothing at all meanwhile fails (docs/decisions/0013).
#include <algorithm>

#include "transport/endpoint.h"

namespace weft::transport {
namespace {

constexpr std::uint8_t kAsks = 3;
// What a living peer has to answer in; three of them stay below a second.
constexpr Duration kAskEvery = Duration::ms(250);
// Refusals come as fast as somebody sends them; questions do not.
constexpr Duration kAskAgain = Duration::ms(20);

}  // namespace

void Endpoint::on_refusal(Time now, const Address& address) {
  ++refusals_;
  const std::uint32_t peer = find_peer(address);
  if (peer == Peer::kNobody) return drop(DropReason::kUnknownPeer);
  for (std::uint32_t i = peers_[peer].first_qp; i != Peer::kNobody; i = qps_[i]->next_of_peer) {
    Qp& qp = *qps_[i];
    // What was on its way when the peer died is heard after the first refusal: count anew.
    const bool counts = qp.refused.active && qp.requestor.last_heard() <= qp.refused.since;
    if (!qp.may_send() || counts) continue;
    if (!qp.refused.active) ++refused_count_;
    const Time next = std::max(now, qp.refused.next - kAskEvery + kAskAgain);
    qp.refused = {.active = true, .asked = 0, .since = now, .next = next};
    // Asked by deadline, be it now: not in the middle of a batch.
    port_status_next_ = std::min(port_status_next_, next);
  }
}

void Endpoint::ask_refused(Time now) {
  refused_count_ = 0;
  for (std::uint32_t i = 0; i <= qp_mask_; ++i) {
    if (!qps_[i] || !qps_[i]->refused.active) continue;
    Qp& qp = *qps_[i];
    if (qp.refused.next <= now) ask_or_fail(now, qp);
    if (!qp.refused.active) continue;
    ++refused_count_;
    port_status_next_ = std::min(port_status_next_, qp.refused.next);
  }
}

void Endpoint::ask_or_fail(Time now, Qp& qp) {
  if (!qp.may_send() || qp.requestor.last_heard() > qp.refused.since) {
    qp.refused.active = false;  // it failed otherwise, or the peer lives
    return;
  }
  if (qp.refused.asked == kAsks) {
    qp.refused.active = false;
    ++refused_qps_;
    return fail(now, qp, Status::kRetryExceeded);
  }
  // A question that found no room in the queue was not asked.
  const std::uint64_t dropped = control_.dropped();
  auto c = context(now);
  qp.requestor.probe_planes(c);
  if (control_.dropped() == dropped) ++qp.refused.asked;
  qp.refused.next = now + kAskEvery;
}

}  // namespace weft::transport
