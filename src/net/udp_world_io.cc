// UdpWorld, in and out: from sockets to the node and back, without a copy of its own.
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>

#include "net/udp_world.h"
#include "os/interfaces.h"
#include "os/log.h"
#include "wire/framing.h"
#include "wire/icrc.h"

namespace weft::net {
namespace {

struct Trailer {
  std::array<std::byte, 3 + wire::kIcrcSize> bytes;
};

void* mutable_bytes(std::uint64_t at) { return reinterpret_cast<void*>(at); }

std::size_t datagram_size(const world::Datagram& d) {
  return wire::datagram_size({.header_size = d.header.size(), .payload_size = d.payload.size});
}

}  // namespace

// A run has one traffic class. Retransmitted and new packets may share a run, which has the class
// of its first packet.
bool UdpWorld::is_same_run(const world::Datagram& a, const world::Datagram& b) {
  const auto class_of = [](const world::Datagram& d) {
    return d.dscp == world::Dscp::kTrimmableRetx ? world::Dscp::kTrimmable : d.dscp;
  };
  return a.port == b.port && a.entropy == b.entropy && class_of(a) == class_of(b) &&
         a.ecn == b.ecn && a.peer == b.peer;
}

// --- in ----------------------------------------------------------------------------------------

bool UdpWorld::is_intact(const Arrival& at, const os::UdpSocket::Incoming& run,
                         const wire::DatagramParts& parts) {
  if (parts.icrc.empty()) return true;  // a trimmed packet has none
  const std::size_t size =
      parts.header.size() + parts.payload.size() + parts.padding.size() + parts.icrc.size();
  wire::Icrc icrc = icrc_in_.of({.source = run.from,
                                 .destination = planes_[at.plane].address,
                                 .source_port = run.port,
                                 .destination_port = at.to_port,
                                 .udp_size = static_cast<std::uint16_t>(size + wire::kUdpSize)});
  icrc.add_header(parts.header);
  if (config_.icrc == IcrcCover::kFull) {
    icrc.add(parts.payload);
    icrc.add(parts.padding);
  }
  return icrc.matches(parts.icrc);
}

Result<UdpWorld::Taken, DropReason> UdpWorld::take_apart(const Arrival& at,
                                                         const os::UdpSocket::Incoming& run,
                                                         Bytes datagram) {
  if (sessions_ != nullptr) return open_sealed(run, at.ev, datagram);
  const auto dscp = static_cast<world::Dscp>(run.traffic_class >> 2);
  const auto parts = wire::split_datagram(datagram, {.trimmed = world::is_trimmed(dscp)});
  if (!parts) return parts.error();
  return Taken{
      .header = parts->header, .payload = parts->payload, .intact = is_intact(at, run, *parts)};
}

std::uint16_t UdpWorld::process_of_peer(std::uint16_t source_port) const {
  return config_.peers == Peers::kWeft ? wire::process_of(source_port) : std::uint16_t{0};
}

void UdpWorld::take_run(std::uint32_t plane, const os::UdpSocket::Incoming& run, Bytes bytes,
                        std::uint16_t to_port) {
  const std::uint32_t ev =
      steering_->ev_of({.plane = plane, .source_port = run.port, .flow_label = run.flow_label});
  if (bytes.empty()) ++drops_[static_cast<std::size_t>(DropReason::kTooShort)];
  for (std::size_t at = 0; at < bytes.size(); at += run.segment) {
    const auto taken =
        take_apart({.plane = plane, .to_port = to_port, .ev = ev}, run,
                   bytes.subspan(at, std::min<std::size_t>(run.segment, bytes.size() - at)));
    if (!taken) {
      ++drops_[static_cast<std::size_t>(taken.error())];
      continue;
    }
    if (taken->header.empty()) continue;  // it was handled in this layer
    if (in_.size() == in_.capacity()) {
      ++drops_[static_cast<std::size_t>(DropReason::kNoBuffer)];
      continue;
    }
    in_.push_back({.port = static_cast<world::PortIndex>(plane),
                   .ecn = static_cast<world::Ecn>(run.traffic_class & 3),
                   .dscp = static_cast<world::Dscp>(run.traffic_class >> 2),
                   .intact = taken->intact,
                   .entropy = ev,
                   .received_at = now_,
                   .peer = world::Address::of(run.from, process_of_peer(run.port)),
                   .header = taken->header,
                   .payload = {.at = reinterpret_cast<std::uintptr_t>(taken->payload.data()),
                               .size = static_cast<std::uint32_t>(taken->payload.size())}});
  }
}

void UdpWorld::note_overflow(std::uint32_t plane, std::uint32_t overflow) {
  if (overflow == planes_[plane].overflow) return;
  if (counters_.drops_host == 0) {
    os::log(os::LogLevel::kWarn,
            "plane {} ({}): packets come faster than they are taken and are dropped in a receive "
            "buffer of "
            "{} bytes; `weft doctor` says how to enlarge it (said once)",
            plane, os::text_of(planes_[plane].address), receive_bytes(planes_[plane]));
  }
  counters_.drops_host += overflow - planes_[plane].overflow;
  planes_[plane].overflow = overflow;
  tell_port(plane);
}

// Whether packets arrive joined in runs decides how much the receive buffer holds.
void UdpWorld::note_runs(std::size_t count) {
  runs_seen_ += count;
  packets_seen_ += in_.size();
  if (runs_seen_ < kRunsJudged) return;
  const bool singly = packets_seen_ < 2 * runs_seen_;
  runs_seen_ = packets_seen_ = 0;
  if (singly == comes_singly_) return;
  comes_singly_ = singly;
  for (std::uint32_t plane = 0; plane < planes_.size(); ++plane) tell_port(plane);
}

bool UdpWorld::receive(std::uint32_t plane, std::size_t runs_max) {
  Plane& from = planes_[plane];
  const auto runs = std::span(runs_).first(runs_max);
  std::size_t count = from.tunnel ? from.tunnel->receive(buffer_, runs) : 0;
  const bool tunnelled = count > 0;
  if (!tunnelled) count = from.listen.receive(buffer_, runs);
  if (count == 0) return false;
  const bool answers =
      static_cast<world::Dscp>(runs[0].traffic_class >> 2) == world::Dscp::kControl;
  const std::uint32_t single = answers ? 2 : 1;  // a SACK and its Transport ACK
  busy_runs_ = count == 1 && runs[0].size <= single * runs[0].segment ? 1
               : runs[0].size >= kLongRun                             ? kRunsWhenLong
                                                                      : kRunsMax;
  // More data is likely to follow on the same plane. Answers arrive on all planes in turn, so they
  // predict nothing.
  if (!answers) {
    busy_plane_ = plane;
    plane_busy_until_ = now_ + kBusy;
  }
  is_from_here_ = runs[0].from == planes_[plane].address;
  ++counters_.receives;
  in_.clear();
  if (tunnelled == from.tunnel.has_value()) note_overflow(plane, runs[count - 1].overflow);
  for (std::size_t i = 0; i < count; ++i) {
    take_run(plane, runs[i], Bytes(buffer_).subspan(i * os::UdpSocket::kRunBytes, runs[i].size),
             wire::listen_port(process_));
  }
  counters_.packets_received += in_.size();
  if (!answers) note_runs(count);
  node_->on_datagrams(now_, in_);
  return true;
}

// --- out ---------------------------------------------------------------------------------------

// Sends the longest run at the front of `out` that one system call takes: one EV, one peer, equal
// sizes except that the last may be shorter. Returns the number of packets; those that the kernel
// does not accept now are held.
std::size_t UdpWorld::send_run(std::span<const world::Datagram> out) {
  if (sessions_ != nullptr) return send_sealed_run(out);
  std::array<iovec, 3 * kPollPackets> pieces;
  std::array<Trailer, kPollPackets> trailers;
  const world::Datagram& first = out[0];
  const std::uint16_t to_port = wire::listen_port(first.peer.process);
  const Plane& plane = planes_[first.port];
  const Steering::Way way = steering_->way(process_, first.port, first.entropy, first.peer.ip());
  const std::uint16_t from_port = wire::source_port(process_, way.socket);
  const std::size_t segment = datagram_size(first);
  const auto start = [&](std::size_t size) {
    return icrc_out_.of({.source = plane.address,
                         .destination = first.peer.ip(),
                         .source_port = from_port,
                         .destination_port = to_port,
                         .udp_size = static_cast<std::uint16_t>(size + wire::kUdpSize)});
  };
  const wire::Icrc begin = start(segment);
  std::size_t count = 0, used = 0, bytes = 0;
  for (bool last = false; count < out.size() && count < kPollPackets && !last; ++count) {
    const world::Datagram& d = out[count];
    const std::size_t size = datagram_size(d);
    if (!is_same_run(first, d) || size > segment || bytes + size > os::UdpSocket::kSendBytesMax)
      break;
    last = size < segment;
    bytes += size;
    const std::size_t pad = wire::pad_for(d.payload.size);
    Trailer& trailer = trailers[count];
    std::memset(trailer.bytes.data(), 0, pad);
    wire::Icrc icrc = size == segment ? begin : start(size);
    icrc.add_header(d.header);
    if (config_.icrc == IcrcCover::kFull) {
      icrc.add({static_cast<const std::byte*>(mutable_bytes(d.payload.at)), d.payload.size});
      icrc.add(ConstBytes(trailer.bytes).first(pad));
    }
    icrc.store(Bytes(trailer.bytes).subspan(pad));
    pieces[used++] = {const_cast<std::byte*>(d.header.data()), d.header.size()};
    if (d.payload.size > 0) pieces[used++] = {mutable_bytes(d.payload.at), d.payload.size};
    pieces[used++] = {trailer.bytes.data(), pad + wire::kIcrcSize};
  }
  if (count == 0) {  // too large for a datagram
    ++counters_.drops_send;
    return 1;
  }
  hand_over(out.first(count), way, segment, std::span(pieces).first(used));
  return count;
}

void UdpWorld::hand_over(std::span<const world::Datagram> run, const Steering::Way& way,
                         std::size_t segment, std::span<iovec> pieces) {
  const world::Datagram& first = run[0];
  Plane& plane = planes_[first.port];
  const os::UdpSocket::Outgoing what{
      .to = way.to,
      .port = wire::listen_port(first.peer.process),
      .traffic_class = static_cast<std::uint8_t>(static_cast<unsigned>(first.dscp) << 2 |
                                                 static_cast<unsigned>(first.ecn)),
      .segment = run.size() > 1 ? static_cast<std::uint16_t>(segment) : std::uint16_t{0},
      .flow_label = way.flow_label};
  ++counters_.sends;
  switch (send_by(plane, way, first.peer.ip(), what, pieces)) {
    case os::UdpSocket::Sent::kTaken:
      counters_.packets_sent += run.size();
      return;
    case os::UdpSocket::Sent::kNotNow:
      ++counters_.sends_held;
      return hold(run, plane.tunnel ? plane.tunnel->send_fd() : plane.senders[way.socket].fd());
    case os::UdpSocket::Sent::kNever:
      counters_.drops_send += run.size();
      return;
  }
}

// The plane accepts nothing else until the socket has room. The socket is watched only for that
// time, because the kernel notifies the watcher of a socket of each packet that the socket sends.
void UdpWorld::hold(std::span<const world::Datagram> run, int sender_fd) {
  Plane& plane = planes_[run[0].port];
  for (const world::Datagram& d : run) keep(plane, d);
  if (plane.without_room >= 0) return;
  if (watch(sender_fd, EPOLLOUT, kRoom | run[0].port)) {
    plane.without_room = sender_fd;
  } else {  // epoll cannot watch the socket: drop, as the network may
    counters_.drops_send += plane.held.size();
    plane.held.clear();
  }
}

void UdpWorld::keep(Plane& plane, const world::Datagram& datagram) {
  if (plane.held.size() == plane.held.capacity() || datagram.payload.size > config_.mtu) {
    ++counters_.drops_send;
    return;
  }
  std::byte* const bytes =
      plane.held_bytes[plane.held_side].data() + plane.held.size() * config_.mtu;
  Held& held = plane.held.emplace_back();
  held.datagram = datagram;
  std::copy(datagram.header.begin(), datagram.header.end(), held.header.begin());
  held.datagram.header = ConstBytes(held.header).first(datagram.header.size());
  if (datagram.payload.size > 0)
    std::memcpy(bytes, mutable_bytes(datagram.payload.at), datagram.payload.size);
  held.datagram.payload.at = reinterpret_cast<std::uintptr_t>(bytes);
}

bool UdpWorld::send_held(Plane& plane) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, plane.without_room, nullptr);
  plane.without_room = -1;
  std::array<world::Datagram, kPortRoom> again;
  std::array<Held, kPortRoom> copies;
  const std::size_t count = plane.held.size();
  for (std::size_t i = 0; i < count; ++i) {
    copies[i] = plane.held[i];
    again[i] = copies[i].datagram;
    again[i].header = ConstBytes(copies[i].header).first(copies[i].datagram.header.size());
  }
  plane.held.clear();
  plane.held_side ^= 1;
  for (std::size_t sent = 0; sent < count;) {
    if (plane.held.empty()) {
      sent += send_run(std::span(again).subspan(sent, count - sent));
    } else {
      // Still no room: the rest stays behind the packet that was just held another time.
      keep(plane, again[sent++]);
    }
  }
  return count > plane.held.size();
}

// Puts packets of one path next to each other, so that they leave as one run for the kernel
// (docs/decisions/0029). The order on each path is kept. Packets that already form runs stay as
// they are.
std::span<const world::Datagram> UdpWorld::gather(std::span<const world::Datagram> out) {
  constexpr std::size_t kShort = 4;  // packets a run, in the mean
  std::size_t runs = 1;
  for (std::size_t i = 1; i < out.size(); ++i) runs += is_same_run(out[i - 1], out[i]) ? 0 : 1;
  if (out.size() <= 2 || runs * kShort <= out.size()) return out;
  std::uint64_t taken = 0;
  static_assert(kPollPackets <= 64);
  std::size_t count = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if ((taken >> i & 1) != 0) continue;
    for (std::size_t j = i; j < out.size(); ++j) {
      if ((taken >> j & 1) != 0 || !is_same_run(out[i], out[j])) continue;
      taken |= std::uint64_t{1} << j;
      gathered_[count++] = out[j];
    }
  }
  return std::span(gathered_).first(count);
}

bool UdpWorld::transmit() {
  std::array<world::PortRoom, world::kPortsMax> room{};
  bool any = false;
  // The planes share the cap, rounded up; the excess is a debt that later polls wait for.
  const auto plane_count = static_cast<std::uint32_t>(planes_.size());
  const std::uint32_t plane_room =
      cap_ ? std::min(kPortRoom, (cap_->packets(now_) + plane_count - 1) / plane_count) : kPortRoom;
  for (std::size_t p = 0; p < plane_count; ++p) {
    room[p].packets = planes_[p].held.empty() ? plane_room : 0;
    any |= room[p].packets > 0;
  }
  if (shm_ != nullptr) {
    room[planes_.size()] = shm_->room(now_);
    any |= room[planes_.size()].packets > 0;
  }
  has_sent_ = false;
  if (!any) return false;
  const std::size_t count = node_->poll_transmit(now_, std::span(room).first(port_count()), out_);
  for (std::size_t i = 0; cap_ && i < count; ++i) {
    if (out_[i].port < planes_.size()) cap_->spend(out_[i].payload.size);
  }
  const std::span<const world::Datagram> out = gather(std::span(out_).first(count));
  for (std::size_t sent = 0; sent < count;) {
    if (out[sent].port == planes_.size()) {
      shm_->send(out[sent++]);
    } else {
      sent += send_run(out.subspan(sent));
    }
  }
  if (shm_ != nullptr && count > 0) shm_->flush();
  has_sent_ = count > 0;
  return has_sent_;
}

}  // namespace weft::net
