// The peer's addresses in all planes follow from one GID.
#include "device/peer_planes.h"

#include <gtest/gtest.h>

#include <vector>

#include "os/address.h"

namespace weft::device {
namespace {

std::vector<world::Address> addresses(const std::vector<std::string>& texts) {
  std::vector<world::Address> out;
  for (const std::string& text : texts)
    out.push_back(world::Address::of(*os::parse_address(text), 4));
  return out;
}

TEST(PeerPlanesTest, PeerLoopbackPlanesFollowFromOneGid) {
  const auto ours = addresses({"127.0.1.1", "127.0.2.1", "127.0.3.1", "127.0.4.1"});
  const auto peer = peer_planes(ours, {.gid = base::ipv4(127, 0, 1, 1), .qpn = 0x07'1234});
  ASSERT_TRUE(peer);
  for (std::uint8_t p = 0; p < 4; ++p) {
    EXPECT_EQ(peer->ports[p].ip(), base::ipv4(127, 0, static_cast<std::uint8_t>(p + 1), 1));
    EXPECT_EQ(peer->ports[p].process, 7);
  }
  EXPECT_EQ(peer->qpn, 0x07'1234u);
}

TEST(PeerPlanesTest, HostPartOfEveryPlaneComesFromThePeersGid) {
  const auto ours = addresses({"fd00:1::7", "fd00:2::7"});
  const auto peer = peer_planes(ours, {.gid = *os::parse_address("fd00:1::9"), .qpn = 0x100});
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->ports[0].ip(), *os::parse_address("fd00:1::9"));
  EXPECT_EQ(peer->ports[1].ip(), *os::parse_address("fd00:2::9"));
}

TEST(PeerPlanesTest, WithOnePlaneAnyGidIsAccepted) {
  const auto ours = addresses({"10.0.0.1"});
  const auto peer = peer_planes(ours, {.gid = base::ipv4(192, 168, 7, 7), .qpn = 0x100});
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->ports[0].ip(), base::ipv4(192, 168, 7, 7));
}

TEST(PeerPlanesTest, GidOfAnyPortGivesTheSamePlanes) {
  const auto ours = addresses({"127.0.1.1", "127.0.2.1", "127.0.3.1"});
  const auto first = peer_planes(ours, {.gid = base::ipv4(127, 0, 1, 9), .qpn = 0x100});
  const auto last = peer_planes(ours, {.gid = base::ipv4(127, 0, 3, 9), .qpn = 0x100});
  ASSERT_TRUE(first && last);
  EXPECT_EQ(first->ports, last->ports);
  EXPECT_EQ(first->ports[1].ip(), base::ipv4(127, 0, 2, 9));
}

TEST(PeerPlanesTest, QpNumberOfANicNamesNoProcess) {
  const auto peer = peer_planes(
      addresses({"fd00:1::7"}),
      {.gid = *os::parse_address("fd00:1::9"), .qpn = 0x07'1234, .kind = wire::PeerKind::kNic});
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->ports[0].process, 0);
  EXPECT_EQ(peer->qpn, 0x07'1234u);
}

TEST(PeerPlanesTest, RefusesGidInNoPlaneAndQpNumberOutOfRange) {
  const auto ours = addresses({"127.0.1.1", "127.0.2.1"});
  EXPECT_FALSE(peer_planes(ours, {.gid = base::ipv4(127, 0, 3, 1), .qpn = 0x100}));
  EXPECT_FALSE(peer_planes(ours, {.gid = base::ipv4(127, 0, 1, 1), .qpn = 2}));
  EXPECT_FALSE(peer_planes(ours, {.gid = base::ipv4(127, 0, 1, 1), .qpn = 0x100'0000}));
}

}  // namespace
}  // namespace weft::device
