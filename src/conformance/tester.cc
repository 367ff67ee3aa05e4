#include "conformance/tester.h"

#include <poll.h>

#include <algorithm>

#include "os/address.h"
#include "wire/datagram.h"
#include "wire/framing.h"
#include "wire/icrc.h"

namespace weft::conformance {
namespace {

// The most received packets that wait to be read by the test.
constexpr std::size_t kWaitingMax = 16'384;

}  // namespace

Result<Tester> Tester::open(const Config& config) {
  Tester out(config);
  for (const Ipv6& address : config.addresses) WEFT_CHECK(out.open_plane(address));
  return out;
}

Result<void> Tester::open_plane(const Ipv6& address) {
  Plane plane;
  WEFT_TRY(
      plane.listen,
      os::UdpSocket::open(
          {.address = address, .port = config_.port, .receive_bytes = 4u << 20, .receives = true}));
  for (Sender& sender : plane.senders) {
    WEFT_TRY(sender.socket, os::UdpSocket::open({.address = address}));
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    if (getsockname(sender.socket.fd(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
      return Error{ErrorKind::kSystem, "getsockname"};
    sender.port = os::from_sockaddr(reinterpret_cast<const sockaddr*>(&bound)).port;
  }
  planes_.push_back(std::move(plane));
  return {};
}

void Tester::send(const wire::Packet& packet, ConstBytes payload, const SendOptions& how) {
  std::vector<std::byte> bytes(wire::kHeaderSizeMax);
  const std::size_t header = wire::emit(packet, bytes);
  bytes.resize(header);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.resize(bytes.size() + packet.bth.pad);
  if (how.patch) bytes[how.patch->first] = std::byte{how.patch->second};
  const std::size_t body = bytes.size();
  bytes.resize(body + wire::kIcrcSize);
  wire::Icrc icrc({.source = config_.addresses[how.plane],
                   .destination = device_address(how.plane),
                   .source_port = source_port(how.plane, how.sender),
                   .destination_port = config_.device_port,
                   .udp_size = static_cast<std::uint16_t>(bytes.size() + wire::kUdpSize)});
  icrc.add_header(ConstBytes(bytes).first(header));
  if (config_.cover == IcrcCover::kFull) icrc.add(ConstBytes(bytes).subspan(header, body - header));
  icrc.store(Bytes(bytes).subspan(body));
  if (how.corrupt_icrc) bytes[body] ^= std::byte{1};
  if (how.flip) bytes[how.flip->first] ^= std::byte{how.flip->second};
  if (how.cut) bytes.resize(std::min(bytes.size(), *how.cut));
  SendOptions out = how;
  if (!out.dscp)
    out.dscp = wire::is_write(packet.bth.opcode) ? config_.dscp_data : config_.dscp_control;
  send_raw(bytes, out);
}

void Tester::send_raw(ConstBytes datagram, const SendOptions& how) {
  iovec piece{.iov_base = const_cast<std::byte*>(datagram.data()), .iov_len = datagram.size()};
  const auto traffic_class = static_cast<std::uint8_t>(how.dscp.value_or(0) << 2 | how.ecn);
  const auto sent =
      planes_[how.plane].senders[how.sender].socket.send({.to = device_address(how.plane),
                                                          .port = config_.device_port,
                                                          .traffic_class = traffic_class},
                                                         std::span(&piece, 1));
  if (sent != os::UdpSocket::Sent::kTaken)
    throw SuiteError{
        "the tester's socket did not take a packet; is the device's address reachable?"};
}

std::optional<ReceivedPacket> Tester::next(Clock::time_point until) {
  for (;;) {
    for (std::uint32_t p = 0; waiting_.empty() && p < plane_count(); ++p) drain(p);
    if (!waiting_.empty()) {
      ReceivedPacket out = std::move(waiting_.front());
      waiting_.pop_front();
      return out;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    std::vector<pollfd> all;
    for (const Plane& plane : planes_)
      all.push_back({.fd = plane.listen.fd(), .events = POLLIN, .revents = 0});
    poll(all.data(), all.size(), static_cast<int>(std::min<std::int64_t>(left / 1000 + 1, 100)));
  }
}

void Tester::drain(std::uint32_t plane) {
  os::UdpSocket::Incoming run;
  for (std::size_t runs = 0; runs < kWaitingMax; ++runs) {
    if (planes_[plane].listen.receive(buffer_, std::span(&run, 1)) != 1) return;
    const std::size_t step = run.segment == 0 ? run.size : run.segment;
    for (std::size_t at = 0; at < run.size; at += step)
      take(plane, run, ConstBytes(buffer_).subspan(at, std::min<std::size_t>(step, run.size - at)));
  }
}

void Tester::take(std::uint32_t plane, const os::UdpSocket::Incoming& run, ConstBytes datagram) {
  // If a library floods the tester, packets are dropped, and the test fails at its time limit.
  if (waiting_.size() >= kWaitingMax) return;
  const auto parts = wire::split_datagram(datagram);
  if (!parts) {
    ++unreadable;
    return;
  }
  const auto packet = wire::parse(parts->header);
  if (!packet) {
    ++unreadable;
    return;
  }
  ReceivedPacket seen;
  seen.packet = *packet;
  seen.raw.assign(datagram.begin(), datagram.end());
  seen.header_size = parts->header.size();
  seen.payload.assign(parts->payload.begin(), parts->payload.end());
  seen.padding.assign(parts->padding.begin(), parts->padding.end());
  seen.plane = plane;
  seen.source_port = run.port;
  seen.flow_label = run.flow_label;
  seen.traffic_class = run.traffic_class;
  seen.at = Clock::now();
  wire::Icrc icrc({.source = run.from,
                   .destination = config_.addresses[plane],
                   .source_port = run.port,
                   .destination_port = config_.port,
                   .udp_size = static_cast<std::uint16_t>(datagram.size() + wire::kUdpSize)});
  icrc.add_header(parts->header);
  seen.icrc_headers = icrc.matches(parts->icrc);
  icrc.add(parts->payload);
  icrc.add(parts->padding);
  seen.icrc_full = icrc.matches(parts->icrc);
  const auto* const request = seen.as<wire::EndpointRequest>();
  if (request != nullptr && answers_endpoint_requests) {
    send({.bth = {.opcode = wire::Opcode::kEndpointResponse,
                  .dest_qpn = wire::kEndpointQpn,
                  .psn = seen.bth().psn},
          .body = wire::EndpointResponse{.op = request->op, .echo = request->sent}},
         {}, {.plane = plane});
  }
  waiting_.push_back(std::move(seen));
}

}  // namespace weft::conformance
