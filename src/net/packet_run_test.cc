#include "net/packet_run.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weft::net {
namespace {

world::Datagram on_path(std::uint32_t entropy, std::uint32_t number) {
  return {.dscp = world::Dscp::kTrimmable, .entropy = entropy, .payload = {.size = number}};
}

// EV and number of each datagram after grouping.
using Order = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Order grouped(const std::vector<world::Datagram>& out) {
  std::array<world::Datagram, kPollDatagramsMax> room;
  Order order;
  for (const world::Datagram& d : group_by_path(out, room))
    order.emplace_back(d.entropy, d.payload.size);
  return order;
}

TEST(PacketRun, PacketsOfOnePathBecomeNeighboursInTheirOrder) {
  EXPECT_EQ(grouped({on_path(1, 0), on_path(2, 1), on_path(1, 2), on_path(2, 3), on_path(3, 4)}),
            (Order{{1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 4}}));
}

TEST(PacketRun, LongRunsAreLeftInPlace) {
  std::vector<world::Datagram> out;
  for (std::uint32_t i = 0; i < 8; ++i) out.push_back(on_path(i / 4, i));
  std::array<world::Datagram, kPollDatagramsMax> room;
  EXPECT_EQ(group_by_path(out, room).data(), out.data());
}

TEST(PacketRun, PathIsPortEntropyPeerAndTrafficClass) {
  const world::Datagram one = on_path(1, 0);
  EXPECT_TRUE(have_one_path(one, on_path(1, 9)));
  EXPECT_FALSE(have_one_path(one, on_path(2, 0)));
  world::Datagram other = one;
  other.port = 1;
  EXPECT_FALSE(have_one_path(one, other));
  other = one;
  other.peer.process = 1;
  EXPECT_FALSE(have_one_path(one, other));
  other = one;
  other.ecn = world::Ecn::kEct0;
  EXPECT_FALSE(have_one_path(one, other));
  other = one;
  other.dscp = world::Dscp::kControl;
  EXPECT_FALSE(have_one_path(one, other));
  other.dscp = world::Dscp::kTrimmableRetx;  // a retransmission may share a run with new packets
  EXPECT_TRUE(have_one_path(one, other));
}

}  // namespace
}  // namespace weft::net
