#include "judge/qp.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::judge {

bool Qp::waits_for_completion() const {
  return std::any_of(posts.begin(), posts.end(), [](const Post& post) { return post.signalled; });
}

Post* Qp::post_of(PsnIndex index) {
  auto after = std::upper_bound(posts.begin(), posts.end(), index,
                                [](PsnIndex i, const Post& post) { return i < post.first; });
  if (after == posts.begin()) return nullptr;
  Post& post = *--after;
  return index <= post.last() ? &post : nullptr;
}

Qp& QpTable::add(const TraceRecord& record) {
  WEFT_ASSERT(record.c > 0);
  Qp& qp = all_.emplace_back();
  qp.host = record.host;
  qp.qpn = record.qpn;
  qp.peer_host = record.peer;
  qp.peer_qpn = record.peer_qpn;
  qp.tx_first = Psn(record.psn);
  qp.rx_first = Psn(record.ev);
  qp.mtu = record.c;
  qp.wimm_max = record.b;
  qp.psn_window.size = static_cast<PsnIndex>(std::min<std::uint64_t>(record.a, Psn::kMask / 2));
  qp.psn_window.end = qp.psn_window.size;
  qp.host_down = is_down(qp.host);
  qp.peer_down = is_down(qp.peer_host);
  index(qp);
  link(qp);
  return qp;
}

void QpTable::index(Qp& qp) {
  by_number_[{qp.host, qp.qpn, 0}] = &qp;
  by_peer_[{qp.host, qp.peer_host, qp.peer_qpn}] = &qp;
  // For packets whose destination host is unknown: the QPN alone, if only one peer uses it.
  const auto [at, is_new] =
      by_peer_.try_emplace({qp.host, TraceRecord::kUnknownHost, qp.peer_qpn}, &qp);
  if (is_new) return;
  const Qp* other = at->second;
  const bool replaces = other != nullptr && other->peer_host == qp.peer_host;
  at->second = replaces ? &qp : nullptr;
}

void QpTable::link(Qp& qp) {
  Qp* other = find(qp.peer_host, qp.peer_qpn);
  if (other == nullptr || other->gone) return;
  if (other->peer_host != qp.host || other->peer_qpn != qp.qpn) return;
  qp.peer = other;
  other->peer = &qp;
}

Qp* QpTable::find(std::uint32_t host, std::uint32_t qpn) {
  const auto at = by_number_.find({host, qpn, 0});
  return at == by_number_.end() ? nullptr : at->second;
}

Qp* QpTable::sender(const Route& route) {
  const auto at = by_peer_.find({route.from, route.to, route.dest_qpn});
  return at == by_peer_.end() ? nullptr : at->second;
}

void QpTable::on_host_down(std::uint32_t host) {
  down_[host] = true;
  for (Qp& qp : all_) {
    if (qp.host == host) qp.host_down = true;
    if (qp.peer_host == host) qp.peer_down = true;
  }
}

}  // namespace weft::judge
