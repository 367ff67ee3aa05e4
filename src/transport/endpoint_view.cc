// Endpoint, seen from outside: QPs and counters.
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

CounterTable Endpoint::counters() const {
  const RequestorCounters& q = requestor_counters_;
  const ResponderCounters& p = responder_counters_;
  CounterTable table = {
      {"transport.data_packets", "packets", q.packets},
      {"transport.data_bytes", "bytes", q.bytes},
      {"transport.control_packets", "packets", counters_.control_packets},
      {"transport.retransmits", "packets", q.retransmits},
      {"transport.spurious_losses", "packets", q.spurious},
      {"transport.lost_inferred", "packets", q.lost_inferred},
      {"transport.lost_trimmed", "packets", q.lost_trimmed},
      {"transport.lost_port", "packets", q.lost_port},
      {"transport.lost_timer", "packets", q.lost_timer},
      {"transport.lost_overflow", "packets", q.lost_overflow},
      {"transport.timeouts", "", q.timeouts},
      {"transport.silences", "", q.silences},
      {"transport.completion_resends", "packets", q.completion_resends},
      {"transport.nacks_resource", "packets", q.nacks_resource},
      {"transport.nacks_window", "packets", q.nacks_window},
      {"transport.marks", "packets", q.marks},
      {"transport.stale", "packets", q.stale},
      {"transport.unbalanced", "", q.unbalanced},
      {"transport.reliability_probes", "packets", q.probes},
      {"transport.ev_probes", "packets", prober_.asked() + reverse_evs_.probes()},
      {"transport.quiet_sacks", "packets", counters_.quiet_sacks},
      {"transport.port_status_updates", "packets", ports_.updates_sent()},
      {"transport.evs_condemned", "", q.evs_condemned},
      {"transport.evs_withdrawn", "", q.evs_withdrawn},
      {"transport.evs_revived", "", counters_.evs_revived},
      {"transport.planes_condemned", "", q.planes_condemned},
      {"transport.planes_revived", "", counters_.planes_revived},
      {"transport.refusals", "", counters_.refusals},
      {"transport.qps_refused", "", counters_.qps_refused},
      {"transport.packets_placed", "packets", p.packets_placed},
      {"transport.bytes_placed", "bytes", p.bytes_placed},
      {"transport.duplicates", "packets", p.duplicates},
      {"transport.trimmed_received", "packets", p.trimmed},
      {"transport.out_of_window_received", "packets", p.out_of_window},
      {"transport.sacks_sent", "packets", p.sacks},
      {"transport.nacks_sent", "packets", p.nacks},
      {"transport.transport_acks_sent", "packets", p.transport_acks},
      {"transport.naks_sent", "packets", p.naks},
      {"transport.control_overflow", "packets", control_.dropped()},
  };
  static constexpr std::array<std::string_view, kDropReasonCount> kDropNames = {
      "transport.drop_too_short",    "transport.drop_bad_opcode",   "transport.drop_bad_version",
      "transport.drop_bad_header",   "transport.drop_damaged",      "transport.drop_unknown_qp",
      "transport.drop_unknown_peer", "transport.drop_not_expected", "transport.drop_out_of_window",
      "transport.drop_qp_in_error",  "transport.drop_no_buffer",    "transport.drop_stale",
      "transport.drop_no_session",   "transport.drop_forged",       "transport.drop_replayed",
      "transport.drop_port_disabled"};
  for (std::size_t i = 0; i < kDropReasonCount; ++i)
    table.push_back({kDropNames[i], "packets", counters_.drops[i]});
  return table;
}

}  // namespace weft::transport
