#include "transport/peer_table.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

Address address(std::uint32_t host, std::uint32_t port, std::uint16_t process = 0) {
  return {.high = 7, .low = 100 * host + port + 1, .process = process};
}
PeerInfo info(std::uint32_t host, std::uint16_t process = 0) {
  PeerInfo info;
  for (std::uint32_t port = 0; port < 2; ++port) info.ports[port] = address(host, port, process);
  info.host = host;
  return info;
}

TEST(PeerTable, PeerIsFoundByTheAddressOfAnyOfItsPorts) {
  PeerTable peers({.peer_count_max = 4, .port_count = 2});
  for (std::uint32_t host = 0; host < 4; ++host) {
    const auto added = peers.add(info(host));
    ASSERT_TRUE(added);
    EXPECT_TRUE(added->is_new);
    EXPECT_FALSE(added->is_reused);
    EXPECT_EQ(added->index, host);
  }
  for (std::uint32_t host = 0; host < 4; ++host) {
    EXPECT_EQ(peers.find(address(host, 0)), host);
    EXPECT_EQ(peers.find(address(host, 1)), host);
    EXPECT_EQ(peers[host].host, host);
  }
  EXPECT_EQ(peers.find(address(4, 0)), Peer::kNobody);
  EXPECT_EQ(peers.find(address(0, 0, 1)), Peer::kNobody);  // another process of the same host
}

TEST(PeerTable, KnownPeerIsNotAddedTwice) {
  PeerTable peers({.peer_count_max = 1, .port_count = 2});
  ASSERT_TRUE(peers.add(info(3)));
  const auto again = peers.add(info(3));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(peers.size(), 1u);
}

TEST(PeerTable, FullTableReusesAPeerWithoutQps) {
  PeerTable peers({.peer_count_max = 3, .port_count = 2});
  for (std::uint32_t host = 0; host < 3; ++host) ASSERT_TRUE(peers.add(info(host)));
  peers[0].first_qp = peers[2].first_qp = 5;
  peers[1].heard = 1;
  const auto added = peers.add(info(9));
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->is_new);
  EXPECT_TRUE(added->is_reused);
  EXPECT_EQ(added->index, 1u);
  EXPECT_EQ(peers[1].heard, 0);  // the earlier peer's state is gone
  EXPECT_EQ(peers.find(address(1, 0)), Peer::kNobody);
  EXPECT_EQ(peers.find(address(9, 1)), 1u);
  EXPECT_EQ(peers.find(address(2, 0)), 2u);
  EXPECT_EQ(peers.find({}), Peer::kNobody);
  // Many times: addresses of earlier peers take up no room.
  for (std::uint32_t host = 10; host < 60; ++host) ASSERT_EQ(peers.add(info(host))->index, 1u);
  EXPECT_EQ(peers.find(address(58, 0)), Peer::kNobody);
  EXPECT_EQ(peers.find(address(59, 0)), 1u);
}

TEST(PeerTable, FullTableWhosePeersAllHaveQpsRefuses) {
  PeerTable peers({.peer_count_max = 1, .port_count = 2});
  ASSERT_TRUE(peers.add(info(0)));
  peers[0].first_qp = 5;
  const auto added = peers.add(info(1));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, ErrorKind::kExhausted);
}

}  // namespace
}  // namespace weft::transport
