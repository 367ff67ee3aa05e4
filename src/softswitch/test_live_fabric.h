// For tests: a LiveFabric to which a test gives packets of hosts, and from which it takes those
// that arrive. All are values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "fabric/address.h"
#include "softswitch/live_fabric.h"
#include "softswitch/test_ip_packets.h"

namespace weft::softswitch {

constexpr Time at_us(std::int64_t n) { return Time::from_start(Duration::us(n)); }

// At the rate of these links a byte takes 40 ns.
inline fabric::TopologySpec one_switch(std::uint32_t hosts, std::uint32_t planes = 1) {
  return {.shape = fabric::Shape::kSingle,
          .hosts = hosts,
          .planes = planes,
          .host_rate = Rate::bps(200'000'000),
          .link_delay = Duration::us(2)};
}

inline fabric::TopologySpec two_racks() {
  return {.shape = fabric::Shape::kTwoTier,
          .hosts = 4,
          .planes = 2,
          .hosts_per_t0 = 2,
          .t1_count = 2,
          .host_rate = Rate::bps(200'000'000),
          .fabric_rate = Rate::bps(200'000'000),
          .link_delay = Duration::us(2),
          .switch_delay = Duration::us(1)};
}

inline LiveFabricConfig config_of(const fabric::TopologySpec& spec) {
  const switching::QueueParams queue{.data_bytes_max = 40'000,
                                     .control_bytes_max = 40'000,
                                     .ecn_bytes_min = 8'000,
                                     .ecn_bytes_max = 24'000};
  return {.topology = *fabric::Topology::make(spec),
          .mtu = 1000 - 40,
          .fabric_queue = queue,
          .last_hop_queue = queue,
          .packets_max = 1024};
}

struct Got {
  fabric::HostIndex host;
  std::uint32_t plane;
  Time at;
  std::vector<std::byte> packet;
};

class Bench {
 public:
  explicit Bench(const LiveFabricConfig& config) : fabric(config) {}
  explicit Bench(const fabric::TopologySpec& spec) : Bench(config_of(spec)) {}

  static PacketSpec spec(fabric::HostIndex from, fabric::HostIndex to, std::uint32_t plane = 0) {
    return {.source = fabric::address_of({.host = from, .plane = plane}),
            .destination = fabric::address_of({.host = to, .plane = plane})};
  }
  void send(Time at, const PacketSpec& spec) {
    const auto from = fabric::port_of(spec.source);
    fabric.on_packet(at, from->host, from->plane, make_packet(spec));
  }
  std::vector<Got> receive(Time until) {
    std::array<LiveFabric::Delivery, 16> out;
    std::vector<Got> got;
    for (;;) {
      const std::size_t count = fabric.poll(until, out);
      if (count == 0) return got;
      for (std::size_t i = 0; i < count; ++i) {
        const auto& d = out[i];
        got.push_back({d.host, d.plane, d.at, {d.packet.begin(), d.packet.end()}});
      }
    }
  }
  void fault(Time at, const fabric::FaultEvent& event) {
    const auto applied = fabric.apply(at, event);
    EXPECT_TRUE(applied.has_value());
  }
  std::uint64_t total(std::uint64_t LinkCounters::*counter) const {
    std::uint64_t sum = 0;
    for (fabric::LinkId id = 0; id < fabric.topology().link_count(); ++id)
      sum += fabric.counters(id).*counter;
    return sum;
  }

  LiveFabric fabric;
};

inline Duration time_of(std::size_t udp_payload) {
  const std::size_t frame = std::max<std::size_t>(udp_payload + 40 + 8 + 14 + 4, 64) + 20;
  return Duration::ns(40) * static_cast<std::int64_t>(frame);
}

}  // namespace weft::softswitch
