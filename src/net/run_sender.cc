#include "net/run_sender.h"

#include "base/assert.h"

namespace weft::net {

RunSender::RunSender(const WorldParts& parts, std::uint16_t process, wire::IcrcCover cover)
    : parts_(parts), process_(process), plain_(cover) {
  without_room_.fill(-1);
}

OutgoingRun RunSender::join(Time now, std::span<const world::Datagram> out,
                            const Steering::Fields& fields) {
  const world::Datagram& first = out[0];
  const std::uint16_t from_port = wire::source_port(process_, fields.socket);
  if (parts_.sealed == nullptr) {
    return plain_.join(out, {.from = parts_.planes[first.port].address(),
                             .to = first.peer.ip(),
                             .from_port = from_port,
                             .to_port = wire::listen_port(first.peer.process)});
  }
  // The EV that the receiver computes from the header fields.
  const std::uint32_t ev = parts_.steering.ev_of(
      {.plane = first.port, .source_port = from_port, .flow_label = fields.flow_label});
  const OutgoingRun run = parts_.sealed->join(now, out, ev);
  send_hellos(now);
  return run;
}

std::size_t RunSender::send_run(Time now, std::span<const world::Datagram> out) {
  WEFT_ASSERT(!out.empty());
  const world::Datagram& first = out[0];
  const Steering::Fields fields =
      parts_.steering.fields(process_, first.port, first.entropy, first.peer.ip());
  const OutgoingRun run = join(now, out, fields);
  if (run.count == 0) {
    // join() failed: a plain packet is too large, or a sealed packet has no keys yet.
    ++(parts_.sealed == nullptr ? parts_.counters.drops_send : parts_.counters.waits_for_keys);
    return 1;
  }
  send_pieces(now, out.first(run.count), fields, run);
  return run.count;
}

void RunSender::send_pieces(Time now, std::span<const world::Datagram> datagrams,
                            const Steering::Fields& fields, const OutgoingRun& run) {
  const world::Datagram& first = datagrams[0];
  Plane& plane = parts_.planes[first.port];
  const os::UdpSocket::Outgoing what{
      .to = fields.to,
      .port = wire::listen_port(first.peer.process),
      .traffic_class = static_cast<std::uint8_t>(static_cast<unsigned>(first.dscp) << 2 |
                                                 static_cast<unsigned>(first.ecn)),
      .segment = run.count > 1 ? static_cast<std::uint16_t>(run.segment) : std::uint16_t{0},
      .flow_label = fields.flow_label};
  ++parts_.counters.sends;
  parts_.refusals.note_send(now);
  switch (plane.send(fields, first.peer.ip(), what, run.pieces)) {
    case os::UdpSocket::Sent::kTaken:
      parts_.counters.packets_sent[first.port] += run.count;
      return;
    case os::UdpSocket::Sent::kNotNow:
      ++parts_.counters.sends_held;
      return hold(datagrams, plane.sender_fd(fields));
    case os::UdpSocket::Sent::kNever:
      parts_.counters.drops_send += run.count;
      return;
  }
}

// The socket is watched only while packets are held, because otherwise the kernel would notify the
// watcher of each packet that the socket sends.
void RunSender::hold(std::span<const world::Datagram> datagrams, int sender_fd) {
  const world::PortIndex port = datagrams[0].port;
  Plane& plane = parts_.planes[port];
  for (const world::Datagram& d : datagrams) keep(plane, d);
  if (without_room_[port] >= 0) return;
  if (parts_.watch.add(sender_fd, {.source = SocketWatch::Source::kPlaneHasRoom, .plane = port})) {
    without_room_[port] = sender_fd;
  } else {  // epoll cannot watch the socket: drop the packets, as the network may
    parts_.counters.drops_send += plane.held().count();
    plane.held().clear();
  }
}

void RunSender::keep(Plane& plane, const world::Datagram& datagram) {
  if (!plane.held().add(datagram)) ++parts_.counters.drops_send;
}

bool RunSender::retry_held(Time now, std::uint32_t index) {
  Plane& plane = parts_.planes[index];
  parts_.watch.remove(without_room_[index]);
  without_room_[index] = -1;
  const std::span<const world::Datagram> held = plane.held().release();
  for (std::size_t sent = 0; sent < held.size();) {
    if (plane.held().is_empty()) {
      sent += send_run(now, held.subspan(sent));
    } else {
      // Still no room: the later packets stay behind the packet that was just held again.
      keep(plane, held[sent++]);
    }
  }
  return held.size() > plane.held().count();
}

void RunSender::send_hellos(Time now) {
  while (auto hello = parts_.sealed->poll_hello()) {
    const Steering::Fields fields =
        parts_.steering.fields(process_, hello->ev.port, hello->ev.value, hello->to.ip());
    iovec piece{hello->packet.data(), hello->packet.size()};
    ++parts_.counters.hellos_sent;
    parts_.refusals.note_send(now);
    // A hello that the kernel does not accept is lost, like any packet.
    parts_.planes[hello->ev.port].send(fields, hello->to.ip(),
                                       {.to = fields.to,
                                        .port = wire::listen_port(hello->to.process),
                                        .traffic_class = static_cast<std::uint8_t>(
                                            static_cast<unsigned>(world::Dscp::kControl) << 2),
                                        .flow_label = fields.flow_label},
                                       {&piece, 1});
  }
}

}  // namespace weft::net
