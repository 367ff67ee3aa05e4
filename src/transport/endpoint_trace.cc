#include "transport/endpoint_trace.h"

#include <algorithm>

namespace weft::transport {

TraceRecord EndpointTrace::record(Time now, TraceKind kind) const {
  TraceRecord record;
  record.at = now;
  record.host = host_;
  record.kind = kind;
  return record;
}

void EndpointTrace::qp_connected(Time now, const Qp& qp, std::uint32_t peer_host) const {
  if (trace_ == nullptr) return;
  TraceRecord r = record(now, TraceKind::kQp);
  r.qpn = qp.qpn;
  r.peer = peer_host;
  r.peer_qpn = qp.peer_qpn;
  r.a = qp.params->config.mpr * 128;
  r.b = qp.params->config.wimm_max;
  r.c = qp.params->mtu;
  r.psn = qp.first_psn.value();
  r.ev = qp.peer_first_psn.value();
  trace_->append(r);
}

void EndpointTrace::qp_failed(Time now, const Qp& qp, Status status) const {
  if (trace_ == nullptr) return;
  TraceRecord r = record(now, TraceKind::kQpError);
  r.qpn = qp.qpn;
  r.a = static_cast<std::uint64_t>(status);
  trace_->append(r);
}

void EndpointTrace::qp_gone(Time now, const Qp& qp) const {
  if (trace_ == nullptr) return;
  TraceRecord r = record(now, TraceKind::kQpGone);
  r.qpn = qp.qpn;
  trace_->append(r);
}

void EndpointTrace::port(Time now, world::PortIndex port, bool up) const {
  if (trace_ == nullptr) return;
  TraceRecord r = record(now, TraceKind::kPort);
  r.port = port;
  r.a = up ? 1 : 0;
  trace_->append(r);
}

void EndpointTrace::sent(Time now, const world::Datagram& datagram, Party party) const {
  if (trace_ != nullptr) this->datagram(now, TraceKind::kSend, datagram, party);
}

void EndpointTrace::received(Time now, const world::Datagram& datagram, Party party) const {
  if (trace_ != nullptr) this->datagram(now, TraceKind::kReceive, datagram, party);
}

void EndpointTrace::datagram(Time now, TraceKind kind, const world::Datagram& d,
                             Party party) const {
  TraceRecord r = record(now, kind);
  r.port = d.port;
  r.flags = static_cast<std::uint8_t>((d.ecn == world::Ecn::kCe ? 1 : 0) |
                                      (world::is_trimmed(d.dscp) ? 2 : 0) | (d.intact ? 0 : 4));
  r.qpn = party.qpn;
  r.peer = party.host;
  r.ev = d.entropy;
  r.size = d.payload.size;
  r.header_size = static_cast<std::uint8_t>(std::min(d.header.size(), r.header.size()));
  std::copy_n(d.header.begin(), r.header_size, r.header.begin());
  trace_->append(r);
}

}  // namespace weft::transport
