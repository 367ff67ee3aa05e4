#include "run/capture.h"

#include <vector>

#include "fabric/address.h"
#include "wire/frame.h"

namespace weft::run {
namespace {

void fill_pattern(const world::PayloadRef& payload, std::vector<std::byte>& out) {
  out.resize(payload.size);
  for (std::uint32_t i = 0; i < payload.size; ++i) out[i] = static_cast<std::byte>(payload.at + i);
}

}  // namespace

CaptureFile::CaptureFile(const std::string& path, const scenario::Scenario& scenario)
    : file_(path, std::ios::binary),
      pcap_({}),
      srv6_(scenario.forwarding == fabric::Forwarding::kSrv6) {}

void CaptureFile::write(std::span<const sim::SimWorld::Captured> packets) {
  std::vector<std::byte> payload, frame;
  for (const sim::SimWorld::Captured& packet : packets) {
    wire::Envelope envelope;
    envelope.source = fabric::address_of({.host = packet.route.from, .plane = packet.route.plane});
    envelope.destination =
        fabric::address_of({.host = packet.route.to, .plane = packet.route.plane});
    envelope.dscp = static_cast<std::uint8_t>(packet.dscp);
    envelope.ecn = static_cast<std::uint8_t>(packet.ecn);
    envelope.entropy = packet.route.entropy;
    if (srv6_) envelope.usid_destination = fabric::address_of(packet.route.usids);
    fill_pattern(packet.payload, payload);
    frame.resize(wire::frame_size_max(payload.size()));
    const std::size_t size = wire::emit_frame(
        envelope,
        {.header = ConstBytes(packet.header).first(packet.header_size), .payload = payload}, frame);
    while (!pcap_.append(packet.at, ConstBytes(frame).first(size))) {
      file_.write(pcap_.pending().data(), static_cast<std::streamsize>(pcap_.pending().size()));
      pcap_.clear();
    }
  }
  file_.write(pcap_.pending().data(), static_cast<std::streamsize>(pcap_.pending().size()));
  pcap_.clear();
  file_.flush();
}

}  // namespace weft::run
