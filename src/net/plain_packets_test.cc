#include "net/plain_packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "os/udp_socket.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

constexpr PlainPackets::Ends kEnds{.from = base::ipv4(127, 0, 1, 1),
                                   .to = base::ipv4(127, 0, 1, 2),
                                   .from_port = 15'104,
                                   .to_port = 4791};

// WRITE packets on one path, with the memory of their headers and payloads.
class Writes {
 public:
  void add(std::uint32_t payload_size, std::uint32_t entropy = 1) {
    wire::Packet packet;
    packet.bth.pad = wire::pad_for(payload_size);
    packet.body = wire::Write{};
    std::vector<std::byte>& header = headers_.emplace_back(wire::kHeaderSizeMax);
    header.resize(wire::emit(packet, header));
    std::vector<std::byte>& payload = payloads_.emplace_back(payload_size, std::byte{0x5a});
    datagrams_.push_back({.entropy = entropy,
                          .header = header,
                          .payload = {.at = reinterpret_cast<std::uintptr_t>(payload.data()),
                                      .size = payload_size}});
  }
  std::span<const world::Datagram> all() const { return datagrams_; }

 private:
  std::deque<std::vector<std::byte>> headers_, payloads_;
  std::vector<world::Datagram> datagrams_;
};

// The packets of a run, each as the bytes that the kernel would send.
std::vector<std::vector<std::byte>> packets_of(const OutgoingRun& run) {
  std::vector<std::byte> all;
  for (const iovec& piece : run.pieces) {
    const auto* const at = static_cast<const std::byte*>(piece.iov_base);
    all.insert(all.end(), at, at + piece.iov_len);
  }
  std::vector<std::vector<std::byte>> out;
  for (std::size_t from = 0; from < all.size(); from += run.segment) {
    const std::size_t size = std::min(run.segment, all.size() - from);
    out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(from),
                     all.begin() + static_cast<std::ptrdiff_t>(from + size));
  }
  return out;
}

TEST(PlainPackets, RunIsTakenApartIntoThePacketsThatItWasBuiltOf) {
  for (const auto cover : {wire::IcrcCover::kFull, wire::IcrcCover::kHeaders}) {
    PlainPackets out(cover), in(cover);
    Writes writes;
    writes.add(1000);
    writes.add(1000);
    writes.add(7);  // shorter than the others, and padded
    const OutgoingRun run = out.join(writes.all(), kEnds);
    ASSERT_EQ(run.count, 3u);
    const auto packets = packets_of(run);
    ASSERT_EQ(packets.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto packet = in.take_apart(packets[i], world::Dscp::kTrimmable, kEnds);
      ASSERT_TRUE(packet);
      EXPECT_TRUE(packet->intact);
      EXPECT_EQ(packet->payload.size(), writes.all()[i].payload.size);
      EXPECT_TRUE(std::ranges::equal(packet->header, writes.all()[i].header));
    }
  }
}

TEST(PlainPackets, RunEndsAtAnotherPathALongerPacketOrAfterAShorterOne) {
  PlainPackets packets(wire::IcrcCover::kHeaders);
  Writes another_path, longer, shorter;
  another_path.add(1000);
  another_path.add(1000, 2);
  EXPECT_EQ(packets.join(another_path.all(), kEnds).count, 1u);
  longer.add(1000);
  longer.add(2000);
  EXPECT_EQ(packets.join(longer.all(), kEnds).count, 1u);
  shorter.add(1000);
  shorter.add(8);
  shorter.add(8);
  EXPECT_EQ(packets.join(shorter.all(), kEnds).count, 2u);
}

TEST(PlainPackets, RunHasNoMoreBytesThanASocketTakes) {
  PlainPackets packets(wire::IcrcCover::kHeaders);
  Writes writes;
  for (int i = 0; i < 40; ++i) writes.add(4096);
  EXPECT_EQ(packets.join(writes.all(), kEnds).count, os::UdpSocket::kSendBytesMax / 4160);
  Writes too_large;
  too_large.add(os::UdpSocket::kSendBytesMax);
  EXPECT_EQ(packets.join(too_large.all(), kEnds).count, 0u);
}

TEST(PlainPackets, ChangedByteOrOtherEndsAreNotIntact) {
  PlainPackets packets(wire::IcrcCover::kFull);
  Writes writes;
  writes.add(1000);
  std::vector<std::byte> packet = packets_of(packets.join(writes.all(), kEnds))[0];
  PlainPackets::Ends other = kEnds;
  other.from_port += 1;
  EXPECT_FALSE(packets.take_apart(packet, world::Dscp::kTrimmable, other)->intact);
  packet[packet.size() - 100] ^= std::byte{1};
  EXPECT_FALSE(packets.take_apart(packet, world::Dscp::kTrimmable, kEnds)->intact);
  EXPECT_EQ(packets.take_apart(ConstBytes(packet).first(5), world::Dscp::kTrimmable, kEnds).error(),
            DropReason::kTooShort);
}

}  // namespace
}  // namespace weft::net
