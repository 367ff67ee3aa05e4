#include "transport/control_router.h"

#include "base/assert.h"

namespace weft::transport {
namespace {

using PortRule = PortChoice::PortRule;

bool has(PortMask ports, PortIndex port) { return (ports >> port & 1) != 0; }

}  // namespace

ControlRouter::Decision ControlRouter::decide(const ControlPacket& packet, Peer* peer,
                                              Ports ports) const {
  WEFT_ASSERT((ports.with_room & ~ports.up) == 0);
  const PortRule rule = packet.port.rule;
  if (rule == PortRule::kOnly) {
    if (!has(ports.up, packet.port.port)) return {Verdict::kDrop};
    if (!has(ports.with_room, packet.port.port)) return {Verdict::kWait};
    return {Verdict::kSend, packet.port.port};
  }
  WEFT_ASSERT(peer != nullptr);
  // No port of ours reaches that peer: its packet must not hold up packets to other peers.
  if (peer->usable(ports.up) == 0) return {Verdict::kDrop};
  if (rule == PortRule::kCopy) {
    const PortIndex taken = copied_on_.value_or(peer->heard);
    const auto others = static_cast<PortMask>(ports.with_room & ~(1u << taken));
    const auto port = next_good(*peer, others);
    return port ? Decision{Verdict::kSend, *port} : Decision{Verdict::kDrop};
  }
  const auto wanted = preferred(packet, *peer);
  if (wanted && peer->can_carry_control(*wanted, ports.with_room)) return {Verdict::kSend, *wanted};
  if (rule == PortRule::kInTurn && shared_ && shared_->peer == packet.peer &&
      has(ports.with_room, shared_->port)) {
    return {Verdict::kSend, shared_->port};
  }
  auto port = next_good(*peer, ports.with_room);
  if (!port) port = next_in_doubt(*peer, ports);
  return port ? Decision{Verdict::kSend, *port} : Decision{Verdict::kWait};
}

void ControlRouter::on_sent(const ControlPacket& packet, PortIndex port) {
  if (options_.shares_port && packet.port.rule == PortRule::kInTurn) {
    shared_ = Shared{.peer = packet.peer, .port = port};
  }
  copied_on_.reset();
  if (packet.port.rule == PortRule::kPreferHeard) copied_on_ = port;
}

std::optional<PortIndex> ControlRouter::preferred(const ControlPacket& packet,
                                                  const Peer& peer) const {
  if (packet.port.rule == PortRule::kPrefer) return packet.port.port;
  if (packet.port.rule == PortRule::kPreferHeard) return peer.heard;
  return std::nullopt;
}

// The next port in turn whose reverse EV is not in doubt.
std::optional<PortIndex> ControlRouter::next_good(Peer& peer, PortMask with_room) const {
  PortIndex port = peer.turn;
  for (std::uint32_t tried = 0; tried < options_.port_count; ++tried, port = after(port)) {
    if (!peer.can_carry_control(port, with_room)) continue;
    peer.turn = after(port);
    return port;
  }
  return std::nullopt;
}

// The next port in turn, also one whose reverse EV is in doubt. Such a port is used only when no
// port without doubt exists; a good port that is full now is waited for.
std::optional<PortIndex> ControlRouter::next_in_doubt(Peer& peer, Ports ports) const {
  for (std::uint32_t port = 0; port < options_.port_count; ++port) {
    if (peer.can_carry_control(static_cast<PortIndex>(port), ports.up)) return std::nullopt;
  }
  const PortMask possible = peer.usable(ports.with_room);
  PortIndex port = peer.turn;
  for (std::uint32_t tried = 0; tried < options_.port_count; ++tried, port = after(port)) {
    if (!has(possible, port)) continue;
    peer.turn = after(port);
    return port;
  }
  return std::nullopt;
}

}  // namespace weft::transport
