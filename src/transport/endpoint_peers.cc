// Endpoint, peers: ports and paths that are lost, come back, or are denied.
#include "transport/endpoint.h"

namespace weft::transport {

Result<std::uint32_t> Endpoint::add_peer(const PeerInfo& info) {
  WEFT_TRY(const PeerTable::Added added, peers_.add(info));
  if (added.is_reused) {
    prober_.forget_peer(added.index);
    control_.forget_peer(added.index);
  }
  if (added.is_new) {
    peers_[added.index].turn = static_cast<PortIndex>(prng_.below(ports_.count()));
  }
  return added.index;
}

// --- ports -------------------------------------------------------------------------------------

void Endpoint::on_port(Time now, PortIndex port, world::PortState state) {
  budget_.on_port(now, port, state);
  if (ports_.set_carrier(port, state.up)) on_own_port(now, port);
}

void Endpoint::set_port_admin(Time now, PortIndex port, bool enabled) {
  if (ports_.set_disabled(port, !enabled)) on_own_port(now, port);
}

// A port of ours went down or up: tells the QPs and the peers.
void Endpoint::on_own_port(Time now, PortIndex port) {
  const bool up = ports_.is_up(port);
  ++requestor_counters_.path_changes;
  trace_.port(now, port, up);
  qps_.for_each([&](Qp& qp) {
    if (!qp.may_send()) return;
    if (up) {
      qp.requestor.on_port_back(now, port);
    } else {
      auto c = context(now);
      qp.requestor.on_port_lost(c, port);
    }
    if (qp.requestor.has_work()) mark_ready(qp);
  });
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (peer.first_qp == Peer::kNobody) continue;
    peer.planes[port].reverse.failures = 0;
    ports_.start_update(now, i, peer.ports, request_ids_, control_);
  }
}

// Ports of a peer can no longer be reached, or can be again.
void Endpoint::on_peer_ports(Time now, const Peer& peer, PortStatus::Change change) {
  if ((change.lost | change.back) != 0) ++requestor_counters_.path_changes;
  qps_.for_each_of(peer, [&](Qp& qp) {
    auto c = context(now);
    for (std::uint32_t p = 0; p < ports_.count(); ++p) {
      const auto port = static_cast<PortIndex>(p);
      if (change.lost >> p & 1) qp.requestor.on_port_lost(c, port);
      if (change.back >> p & 1) qp.requestor.on_port_back(now, port);
    }
    if (qp.may_send() && qp.requestor.has_work()) mark_ready(qp);
  });
}

// --- paths -------------------------------------------------------------------------------------

// A condemned EV or plane has answered its probes.
void Endpoint::revive(Time now, const EvProber::Watch& watch) {
  ++(watch.plane ? counters_.planes_revived : counters_.evs_revived)[watch.ev.port];
  ++requestor_counters_.path_changes;
  qps_.for_each_of(peers_[watch.peer], [&](Qp& qp) {
    PathSet& paths = qp.requestor.paths();
    if (watch.plane) qp.requestor.on_port_back(now, watch.ev.port);
    const PathSet::Slot slot = paths.find(watch.ev);
    if (slot != PathSet::kNone && paths.is_condemned(slot)) paths.revive(now, slot);
    if (qp.requestor.has_work()) mark_ready(qp);
  });
}

// Beyond MRC: EVs that one QP condemned are condemned for the other QPs to the same peer.
void Endpoint::share_condemned(Time now, const Qp& from) {
  const PathSet& known = from.requestor.paths();
  qps_.for_each_of(peers_[from.peer], [&](Qp& qp) {
    if (&qp == &from) return;
    PathSet& paths = qp.requestor.paths();
    auto c = context(now);
    for (std::uint32_t p = 0; p < ports_.count(); ++p) {
      const auto port = static_cast<PortIndex>(p);
      if ((known.planes_down() >> p & 1) == 0 || !paths.condemn_plane(now, port)) continue;
      qp.requestor.on_port_lost(c, port);
      mark_ready(qp);
    }
    for (std::uint32_t s = 0; s < known.size(); ++s) {
      const auto slot = static_cast<PathSet::Slot>(s);
      if (known.state(slot) != EvState::kAssumedBad) continue;
      const PathSet::Slot same = paths.find(known.ev(slot));
      if (same != PathSet::kNone) paths.condemn(now, same);
    }
  });
}

void Endpoint::deny_ev(Time now, fabric::Ev ev, bool denied) {
  qps_.for_each([&](const Qp& qp) { deny_ev(now, qp.qpn, ev, denied); });
}

void Endpoint::deny_ev(Time now, Qpn qpn, fabric::Ev ev, bool denied) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr) return;
  PathSet& paths = qp->requestor.paths();
  const PathSet::Slot slot = paths.find(ev);
  if (slot != PathSet::kNone) {
    paths.deny(now, slot, denied);
    ++requestor_counters_.path_changes;
    if (qp->peer != Qp::kNoPeer) {
      Peer& peer = peers_[qp->peer];
      denied ? ReverseEvs::deny(peer, paths, ev) : ReverseEvs::allow(now, peer, ev);
    }
  }
  if (qp->may_send() && qp->requestor.has_work()) mark_ready(*qp);
}

}  // namespace weft::transport
