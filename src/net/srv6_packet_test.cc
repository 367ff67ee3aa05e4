#include "net/srv6_packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "wire/frame.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

const InnerPacket kPacket{.source = {.high = 0xfd00'0001'0000'0000, .low = 1},
                          .destination = {.high = 0xfd00'0001'0000'0000, .low = 3},
                          .source_port = 15'104,
                          .destination_port = 4791,
                          .traffic_class = 4 << 2 | 2,
                          .flow_label = 0x123};

// The expected bytes are those of the simulator's frames, which are checked with Wireshark.
TEST(Srv6Packet, EmittedHeadersEqualThoseOfASimulatedFrame) {
  std::array<std::byte, wire::kHeaderSizeMax> header;
  const std::vector<std::byte> payload(1024, std::byte{7});
  const std::size_t size = wire::emit({.opcode = wire::Opcode::kWriteOnly, .dest_qpn = 9},
                                      wire::Write{.message_size = 1024}, header);
  std::vector<std::byte> frame(wire::frame_size_max(payload.size()));
  frame.resize(wire::emit_frame(
      {.source = kPacket.source,
       .destination = kPacket.destination,
       .dscp = 4,
       .ecn = 2,
       .hop_limit = kInnerHopLimit,
       .entropy = std::uint32_t{kPacket.source_port} << 16 | kPacket.flow_label,
       .usid_destination = Ipv6{.high = 0xfd00'0001'0001'4002, .low = 0x0002'8001'0000'0000}},
      {.header = ConstBytes(header).first(size), .payload = payload}, frame));
  const ConstBytes inside = ConstBytes(frame).subspan(wire::kEthernetSize + wire::kIpv6Size);
  std::array<std::byte, kInnerHeaderSize> ours;
  emit_inner(kPacket, inside.size() - kInnerHeaderSize, ours);
  EXPECT_TRUE(std::equal(ours.begin(), ours.end(), inside.begin()));
}

TEST(Srv6Packet, EmittedHeadersAreParsedBack) {
  std::array<std::byte, kInnerHeaderSize> bytes;
  emit_inner(kPacket, 100, bytes);
  EXPECT_EQ(look_inside(bytes), kPacket);
  EXPECT_FALSE(look_inside(ConstBytes(bytes).first(kInnerHeaderSize - 1)));
  bytes[6] = std::byte{6};  // TCP
  EXPECT_FALSE(look_inside(bytes));
  emit_inner(kPacket, 100, bytes);
  bytes[0] = std::byte{0x45};
  EXPECT_FALSE(look_inside(bytes));
}

}  // namespace
}  // namespace weft::net
