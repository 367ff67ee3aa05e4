#include "net/held_packets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::net {
namespace {

constexpr std::uint32_t kMtu = 64;

// A packet whose header and payload consist of bytes with the value `value`.
struct Packet {
  explicit Packet(int value, std::size_t payload_size = kMtu)
      : header(20, static_cast<std::byte>(value)),
        payload(payload_size, static_cast<std::byte>(value)) {}
  world::Datagram datagram() const {
    return {.entropy = std::to_integer<std::uint32_t>(header[0]),
            .header = header,
            .payload = {.at = reinterpret_cast<std::uintptr_t>(payload.data()),
                        .size = static_cast<std::uint32_t>(payload.size())}};
  }
  bool is_copied_to(const world::Datagram& copy) const {
    const auto* const bytes = reinterpret_cast<const std::byte*>(copy.payload.at);
    return copy.header.data() != header.data() && bytes != payload.data() &&
           std::equal(header.begin(), header.end(), copy.header.begin(), copy.header.end()) &&
           std::equal(payload.begin(), payload.end(), bytes, bytes + copy.payload.size);
  }
  std::vector<std::byte> header, payload;
};

TEST(HeldPackets, ReleasedPacketsAreCopiesInTheirOrder) {
  HeldPackets held(kMtu);
  EXPECT_TRUE(held.is_empty());
  const Packet first(1), second(2, 3), third(3, 0);
  for (const Packet* const packet : {&first, &second, &third})
    EXPECT_TRUE(held.add(packet->datagram()));
  const auto released = held.release();
  ASSERT_EQ(released.size(), 3u);
  EXPECT_TRUE(first.is_copied_to(released[0]));
  EXPECT_TRUE(second.is_copied_to(released[1]));
  EXPECT_EQ(released[2].entropy, 3u);
  EXPECT_EQ(released[2].payload.size, 0u);
  EXPECT_TRUE(held.is_empty());
}

TEST(HeldPackets, ReleasedPacketMayBeHeldAnotherTime) {
  HeldPackets held(kMtu);
  const Packet first(1), second(2);
  held.add(first.datagram());
  held.add(second.datagram());
  const auto released = held.release();
  EXPECT_TRUE(held.add(released[1]));
  EXPECT_TRUE(first.is_copied_to(released[0]));
  EXPECT_TRUE(second.is_copied_to(released[1]));
  EXPECT_EQ(held.count(), 1u);
  EXPECT_TRUE(second.is_copied_to(held.release()[0]));
}

TEST(HeldPackets, PacketsBeyondTheBoundsAreRefused) {
  HeldPackets held(kMtu);
  EXPECT_FALSE(held.add(Packet(1, kMtu + 1).datagram()));
  const Packet packet(1);
  for (std::size_t i = 0; i < HeldPackets::kMax; ++i) EXPECT_TRUE(held.add(packet.datagram()));
  EXPECT_FALSE(held.add(packet.datagram()));
  EXPECT_EQ(held.release().size(), HeldPackets::kMax);
}

}  // namespace
}  // namespace weft::net
