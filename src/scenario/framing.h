// Wire bytes of data packets and SACKs, for the packet sizes of a scenario (see wire/framing.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "scenario/scenario.h"
#include "wire/framing.h"

namespace weft::scenario {

class Framing {
 public:
  explicit Framing(const Scenario& scenario)
      : mtu_(scenario.transport.mtu),
        srv6_(scenario.forwarding == fabric::Forwarding::kSrv6 &&
              scenario.transport.extra_header_srv6) {}

  std::uint32_t mtu() const { return mtu_; }
  bool srv6() const { return srv6_; }
  // Bytes on the wire of one data packet.
  std::uint32_t packet(std::uint32_t payload) const { return sized(kDataHeaderSize, payload); }
  std::uint32_t packet_full() const { return packet(mtu_); }
  std::uint32_t sack() const { return sized(kSackHeaderSize, 0); }
  // Bytes on the wire of a message. An empty message is one packet.
  std::uint64_t message(std::uint64_t bytes) const {
    const std::uint64_t full = bytes / mtu_;
    const auto rest = static_cast<std::uint32_t>(bytes % mtu_);
    return full * packet_full() + (rest > 0 || full == 0 ? packet(rest) : 0);
  }

 private:
  static constexpr std::size_t kDataHeaderSize = 36;  // BTH, METH, TSETH, RETH
  static constexpr std::size_t kSackHeaderSize = 48;  // BTH, SETH, CC_STATE

  std::uint32_t sized(std::size_t header, std::uint32_t payload) const {
    return static_cast<std::uint32_t>(
        wire::wire_size({.header_size = header, .payload_size = payload, .srv6 = srv6_}));
  }
  std::uint32_t mtu_;
  bool srv6_;
};

}  // namespace weft::scenario
