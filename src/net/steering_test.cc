#include "net/steering.h"

#include <gtest/gtest.h>

#include <set>

#include "fabric/address.h"

namespace weft::net {
namespace {

fabric::Topology two_plane() {
  return fabric::Topology::make({.shape = fabric::Shape::kTwoTier,
                                 .hosts = 4,
                                 .planes = 2,
                                 .hosts_per_t0 = 2,
                                 .t1_count = 2,
                                 .host_rate = Rate::gbps(1),
                                 .fabric_rate = Rate::gbps(1)})
      .value();
}

TEST(Steering, EveryEvHasItsOwnPortAndLabel) {
  for (const EvCarrier mode : {EvCarrier::kUdpPort, EvCarrier::kPortAndLabel}) {
    const std::uint32_t count = mode == EvCarrier::kUdpPort ? 64 : 1000;
    const Steering steering =
        Steering::make({.carrier = mode, .plane_count = 3, .evs_per_plane = count}).value();
    EXPECT_LE(steering.sockets(), wire::kSourcePortsMax);
    const Ipv6 peer{.high = 1, .low = 2};
    std::set<std::pair<std::uint32_t, std::uint32_t>> values;
    for (const fabric::Ev& ev : steering.evs(7)) {
      const Steering::Fields fields = steering.fields(7, ev.port, ev.value, peer);
      EXPECT_EQ(fields.to, peer);
      ASSERT_LT(fields.socket, steering.sockets());
      EXPECT_EQ(steering.ev_of({.plane = ev.port,
                                .source_port = wire::source_port(7, fields.socket),
                                .flow_label = fields.flow_label}),
                ev.value);
      values.insert({ev.port, ev.value});
    }
    EXPECT_EQ(values.size(), 3u * count);
  }
}

TEST(Steering, AnUnknownEvUsesTheFirstSocket) {
  const Steering steering = Steering::make({.evs_per_plane = 4}).value();
  for (const std::uint32_t ev : {0u, 0xffff'ffffu, 0x1234'0000u})
    EXPECT_EQ(steering.fields(0, 0, ev, {}).socket, 0u);
}

TEST(Steering, TheCarrierAddressNamesThePathOfTheEv) {
  const fabric::Topology topology = two_plane();
  for (fabric::HostIndex from = 0; from < 4; ++from) {
    const Steering steering = Steering::make({.carrier = EvCarrier::kSrv6,
                                              .plane_count = 2,
                                              .evs_per_plane = 6,
                                              .place = FabricPlace{topology, from}})
                                  .value();
    EXPECT_EQ(steering.sockets(), 1u);
    for (fabric::HostIndex to = 0; to < 4; ++to) {
      if (to == from) continue;
      for (const fabric::Ev& ev : steering.evs(0)) {
        const Steering::Fields fields = steering.fields(
            0, ev.port, ev.value, fabric::address_of({.host = to, .plane = ev.port}));
        const auto usids = fabric::usids_of(fields.to);
        ASSERT_TRUE(usids);
        const std::uint32_t path = fabric::path_of_ev(topology, from, to, ev.value);
        EXPECT_EQ(*usids, fabric::usids_for(topology, ev.port, from, to, path));
        EXPECT_EQ(steering.ev_of({.plane = ev.port, .flow_label = fields.flow_label}), ev.value);
      }
    }
  }
}

TEST(Steering, InvalidConfigurationsAreRefused) {
  EXPECT_FALSE(Steering::make({.evs_per_plane = 0}));
  EXPECT_FALSE(Steering::make({.evs_per_plane = 65}));
  EXPECT_FALSE(Steering::make({.carrier = EvCarrier::kPortAndLabel, .evs_per_plane = 5000}));
  EXPECT_FALSE(Steering::make({.carrier = EvCarrier::kSrv6}));
  EXPECT_FALSE(Steering::make({.carrier = EvCarrier::kSrv6, .place = FabricPlace{two_plane(), 4}}));
}

}  // namespace
}  // namespace weft::net
