#include "engine/process_config.h"

#include <gtest/gtest.h>

namespace weft::engine {
namespace {

TEST(ProcessConfig, WorldConfigFollowsFromTheSettings) {
  settings::NetSettings set;
  set.planes = {"127.0.9.1"};
  set.mtu = 2048;
  set.shared_memory = settings::SharedMemory::kOff;
  auto world = world_config(set);
  ASSERT_TRUE(world) << world.error().message;
  EXPECT_EQ(world->planes.size(), 1u);
  EXPECT_EQ(world->mtu, 2048u);
  EXPECT_FALSE(world->shared_memory);
  EXPECT_EQ(world->icrc, wire::IcrcCover::kHeaders);
  // A NIC also checks the ICRC over the payload; a setting that contradicts this is an error.
  set.peers = wire::PeerKind::kNic;
  ASSERT_TRUE(world_config(set));
  EXPECT_EQ(world_config(set)->peers, wire::PeerKind::kNic) << "which QPs get as the kind of peer";
  set.icrc = wire::IcrcCover::kFull;
  EXPECT_TRUE(world_config(set));
  set.icrc = wire::IcrcCover::kHeaders;
  world = world_config(set);
  ASSERT_FALSE(world);
  EXPECT_NE(world.error().message.find("peers = mrc and icrc = headers"), std::string::npos);
  set.icrc.reset();
  set.secret_file = "/nosuch";
  EXPECT_FALSE(world_config(set));
}

TEST(ProcessConfig, SharedMemoryHasLargePacketsFewSacksAndNoCongestionControl) {
  const fabric::Ev ring{.value = 7, .port = 4};
  const auto config_of = [&](transport::PeerKind peer) {
    transport::QpConfig config = plane_config({}, peer);
    use_shared_memory(ring, config);
    return config;
  };
  const transport::QpConfig config = config_of(transport::PeerKind::kSoftware);
  ASSERT_EQ(config.evs.size(), 1u);
  EXPECT_EQ(&config.evs[0], &ring);
  EXPECT_EQ(config.mtu, net::kShmPayloadMax);
  EXPECT_FALSE(config.nscc.enabled);
  EXPECT_FALSE(config.receive_budget) << "the ring itself holds the sender back";
  EXPECT_GT(config.sack_bytes, transport::kSoftwareRules.sack_bytes);
  EXPECT_GE(config.nscc.cwnd_bytes_max, 8u << 20);
}

TEST(ProcessConfig, QpOverPlanesIsConfiguredForTheKindOfItsPeer) {
  const std::vector<fabric::Ev> evs(12);
  for (const auto kind : {transport::PeerKind::kNic, transport::PeerKind::kSoftware}) {
    const transport::QpConfig config = plane_config(evs, kind);
    EXPECT_EQ(config.peer, kind);
    EXPECT_EQ(config.ev_active, 12u);
    EXPECT_TRUE(config.nscc.enabled);
    EXPECT_EQ(config.nscc, plane_congestion());
  }
}

}  // namespace
}  // namespace weft::engine
