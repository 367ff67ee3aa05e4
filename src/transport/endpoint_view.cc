// Endpoint, inspection: QPs and memory. Counters are in endpoint_counters.cc.
#include "transport/endpoint.h"

namespace weft::transport {

QpState Endpoint::qp_state(Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  return qp == nullptr ? QpState::kReset : qp->state;
}

Endpoint::QpView Endpoint::view(Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return {};
  const Requestor& r = qp->requestor;
  const PortMask usable = static_cast<PortMask>(
      ports_.up() & (qp->peer == Qp::kNoPeer ? PortMask{0xff} : peers_[qp->peer].ports.reachable));
  PortMask left_out = r.paths().planes_down();
  for (std::uint32_t port = 0; port < ports_.count(); ++port) {
    const auto one = static_cast<PortMask>(1u << port);
    if ((usable & one) == 0 || !r.paths().any_in_rotation(one))
      left_out = static_cast<PortMask>(left_out | one);
  }
  return {.state = qp->state,
          .cwnd_bytes = r.congestion().window(),
          .inflight_bytes = r.congestion().inflight(),
          .cack = r.window().cack(),
          .next_psn = r.window().next(),
          .ev_active = r.paths().active(),
          .ev_bad = r.paths().bad(),
          .ev_active_min = r.paths().active_min(),
          .incomplete = r.incomplete(),
          .lost_waiting = r.window().lost(),
          .peer_silent = r.is_peer_silent(),
          .ports_left_out = left_out,
          .deadline = r.deadline()};
}

Endpoint::MemoryView Endpoint::memory() const {
  MemoryView view;
  view.endpoint = sizeof(*this) + control_.bytes() + asks_.bytes() + prober_.bytes() +
                  deadlines_.bytes() + ready_.bytes() + completions_.bytes() + peers_.bytes() +
                  answers_.bytes() + config_.batch_max * sizeof(headers_[0]) +
                  params_.size() * sizeof(QpParams);
  view.qps = qps_.bytes();
  qps_.for_each([&](const Qp& qp) {
    view.qps += qp.receives.bytes() + qp.responder.bytes() + qp.requestor.bytes();
    view.evs += qp.requestor.paths().bytes();
  });
  view.psn_records = pool_.bytes();
  return view;
}

}  // namespace weft::transport
