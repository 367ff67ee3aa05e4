#include "net/plain_packets.h"

#include <cstring>

#include "os/udp_socket.h"

namespace weft::net {
namespace {

void* mutable_bytes(std::uint64_t at) { return reinterpret_cast<void*>(at); }

std::size_t packet_size(const world::Datagram& d) {
  return wire::datagram_size({.header_size = d.header.size(), .payload_size = d.payload.size});
}

wire::IcrcFlow flow_of(const PlainPackets::Ends& ends, std::size_t size) {
  return {.source = ends.from,
          .destination = ends.to,
          .source_port = ends.from_port,
          .destination_port = ends.to_port,
          .udp_size = static_cast<std::uint16_t>(size + wire::kUdpSize)};
}

}  // namespace

OutgoingRun PlainPackets::join(std::span<const world::Datagram> out, const Ends& ends) {
  const std::size_t segment = packet_size(out[0]);
  const wire::Icrc begin = starts_.of(flow_of(ends, segment));
  std::size_t count = 0, used = 0, bytes = 0;
  for (bool last = false; count < out.size() && count < kPollDatagramsMax && !last; ++count) {
    const world::Datagram& d = out[count];
    const std::size_t size = packet_size(d);
    if (!have_one_path(out[0], d) || size > segment || bytes + size > os::UdpSocket::kSendBytesMax)
      break;
    last = size < segment;
    bytes += size;
    const std::size_t pad = wire::pad_for(d.payload.size);
    Trailer& trailer = trailers_[count];
    std::memset(trailer.bytes.data(), 0, pad);
    wire::Icrc icrc = size == segment ? begin : starts_.of(flow_of(ends, size));
    icrc.add_header(d.header);
    if (cover_ == wire::IcrcCover::kFull) {
      icrc.add({static_cast<const std::byte*>(mutable_bytes(d.payload.at)), d.payload.size});
      icrc.add(ConstBytes(trailer.bytes).first(pad));
    }
    icrc.store(Bytes(trailer.bytes).subspan(pad));
    pieces_[used++] = {const_cast<std::byte*>(d.header.data()), d.header.size()};
    if (d.payload.size > 0) pieces_[used++] = {mutable_bytes(d.payload.at), d.payload.size};
    pieces_[used++] = {trailer.bytes.data(), pad + wire::kIcrcSize};
  }
  return {.count = count, .segment = segment, .pieces = std::span(pieces_).first(used)};
}

bool PlainPackets::is_intact(const wire::DatagramParts& parts, const Ends& ends) {
  if (parts.icrc.empty()) return true;  // a trimmed packet has no ICRC
  wire::Icrc icrc = starts_.of(flow_of(
      ends, parts.header.size() + parts.payload.size() + parts.padding.size() + parts.icrc.size()));
  icrc.add_header(parts.header);
  if (cover_ == wire::IcrcCover::kFull) {
    icrc.add(parts.payload);
    icrc.add(parts.padding);
  }
  return icrc.matches(parts.icrc);
}

Result<IncomingPacket, DropReason> PlainPackets::take_apart(ConstBytes packet, world::Dscp dscp,
                                                            const Ends& ends) {
  const auto parts = wire::split_datagram(packet, {.trimmed = world::is_trimmed(dscp)});
  if (!parts) return parts.error();
  return IncomingPacket{
      .header = parts->header, .payload = parts->payload, .intact = is_intact(*parts, ends)};
}

}  // namespace weft::net
