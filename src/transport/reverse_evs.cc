#include "transport/reverse_evs.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::transport {
namespace {

// An EV of that plane, drawn at random, or PathSet::kNone.
PathSet::Slot draw(const PathSet& paths, PortIndex port, Prng& prng) {
  return paths.any_on(port, static_cast<std::uint32_t>(prng.next() >> 32));
}

PortMask bit_of(PortIndex port) { return static_cast<PortMask>(1u << port); }

}  // namespace

bool ProbeTokens::take(Time now) {
  const std::int64_t whole_us = (now - filled_at_).us();
  token_thousandths_ = std::min(token_thousandths_ + whole_us, kMilliMax);  // 1,000 tokens a second
  filled_at_ += Duration::us(whole_us);
  if (token_thousandths_ < kMilliPerProbe) return false;
  token_thousandths_ -= kMilliPerProbe;
  return true;
}

void ReverseEvs::adopt(Time now, Peer& peer, const PathSet& paths, std::uint32_t port_count,
                       Prng& prng) {
  for (std::uint32_t p = 0; p < port_count; ++p) {
    const auto port = static_cast<PortIndex>(p);
    Peer::Reverse& reverse = peer.planes[port].reverse;
    const PathSet::Slot slot = draw(paths, port, prng);
    if (reverse.present || slot == PathSet::kNone) continue;
    reverse.ev = paths.ev(slot).value;
    reverse.present = true;
    reverse.confirmed_at = now;
    peer.present = static_cast<PortMask>(peer.present | bit_of(port));
  }
}

void ReverseEvs::check(const Check& check, Peer& peer, Prng& prng, RequestIds& ids,
                       ControlQueue& out) {
  const Time now = check.now;
  // One plane at a time, also planes that carry no control packets now.
  const auto port = static_cast<PortIndex>(prng.below(check.port_count));
  Peer::Reverse& reverse = peer.planes[port].reverse;
  if (!reverse.present || (check.ports_up & peer.ports.reachable & bit_of(port)) == 0) return;
  if (reverse.request_id == 0) {
    if (now - std::max(reverse.confirmed_at, reverse.probe_sent_at) < confirm_) return;
  } else {
    if (now - reverse.probe_sent_at < confirm_ / 2) return;
    if (peer.answered_probe_began_at > reverse.probe_began_at) {
      reverse.probe_began_at = now;
      if (reverse.failures < Peer::kFailuresMax) ++reverse.failures;
    }
    const PathSet::Slot slot = draw(check.paths, port, prng);
    if (slot != PathSet::kNone) reverse.ev = check.paths.ev(slot).value;
  }
  if (!tokens_.take(now)) return;
  ControlPacket* const packet = out.add();
  if (packet == nullptr) return;
  ++probes_;
  if (reverse.request_id == 0) {
    reverse.request_id = ids.next();
    reverse.probe_began_at = now;
  }
  reverse.probe_sent_at = now;
  packet->peer = check.index;
  packet->port = PortChoice::only(port);
  packet->fixed_ev = true;
  packet->entropy = reverse.ev;
  packet->data_class = true;
  write_header(*packet,
               {.opcode = wire::Opcode::kEndpointRequest,
                .dest_qpn = wire::kEndpointQpn,
                .psn = Psn(reverse.request_id)},
               wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe});
}

bool ReverseEvs::on_answer(Time now, Peer& peer, std::uint32_t port_count, std::uint16_t id) {
  if (id == 0) return false;
  for (std::uint32_t port = 0; port < port_count; ++port) {
    Peer::Reverse& reverse = peer.planes[port].reverse;
    if (reverse.request_id != id) continue;
    reverse.request_id = 0;
    reverse.failures = 0;
    reverse.confirmed_at = now;
    peer.answered_probe_began_at = std::max(peer.answered_probe_began_at, reverse.probe_began_at);
    return true;
  }
  return false;
}

void ReverseEvs::deny(Peer& peer, const PathSet& paths, fabric::Ev ev) {
  WEFT_ASSERT(ev.port < world::kPortsMax);
  Peer::Reverse& reverse = peer.planes[ev.port].reverse;
  if (!reverse.present || reverse.ev != ev.value) return;
  const auto others = static_cast<PortMask>(peer.present & ~bit_of(ev.port));
  const PathSet::Slot slot = paths.any_on(ev.port, ev.value);
  if (slot != PathSet::kNone) {
    reverse.ev = paths.ev(slot).value;
    reverse.request_id = 0;
  } else if (others != 0) {
    reverse = {};
    peer.present = others;
  }
}

void ReverseEvs::allow(Time now, Peer& peer, fabric::Ev ev) {
  WEFT_ASSERT(ev.port < world::kPortsMax);
  Peer::Reverse& reverse = peer.planes[ev.port].reverse;
  if (reverse.present) return;
  reverse = {};
  reverse.ev = ev.value;
  reverse.present = true;
  reverse.confirmed_at = now;
  peer.present = static_cast<PortMask>(peer.present | bit_of(ev.port));
}

}  // namespace weft::transport
