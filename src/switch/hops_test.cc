// The fate of packets at switches, on links and at receiving NICs, with times exact to the
// picosecond. port_queue_test.cc tests the queue of one port, impairments_test.cc the impairments.
#include "switch/hops.h"

#include <gtest/gtest.h>

#include <vector>

#include "fabric/sample_topologies.h"

namespace weft::switching {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;
using fabric::FaultPlace;
using fabric::ImpairmentKind;
using fabric::LinkId;

constexpr std::uint32_t kFull = 1000;     // the size of a full packet on the wire
constexpr std::uint32_t kTrimmed = 100;   // its size after trimming
constexpr std::int64_t kPsPerByte = 800;  // at 10 Gb/s
constexpr Duration kLinkDelay = Duration::ns(500), kSwitchDelay = Duration::ns(300);

constexpr Time us(std::int64_t n) { return Time::from_start(Duration::us(n)); }
constexpr Duration sent_in(std::uint32_t bytes) { return Duration::ps(bytes * kPsPerByte); }

QueueParams queue_of(std::uint64_t packets) {
  return {.data_bytes_max = packets * kFull,
          .control_bytes_max = packets * kFull,
          .ecn_bytes_min = 1u << 29,
          .ecn_bytes_max = 1u << 30,
          .mtu_wire_size = kFull};
}

HopsConfig config_of(std::uint64_t packets) {
  return {.fabric_queue = queue_of(packets),
          .last_hop_queue = queue_of(packets),
          .nic_bytes_max = packets * kFull};
}

fabric::Topology racks(std::uint32_t planes = 1) {
  fabric::TopologySpec spec =
      fabric::two_tier({.hosts = 8, .planes = planes, .hosts_per_t0 = 4, .t1_count = 2});
  spec.host_rate = spec.fabric_rate = Rate::gbps(10);
  spec.link_delay = kLinkDelay;
  spec.switch_delay = kSwitchDelay;
  return fabric::Topology::make(spec).value();
}

constexpr Arriving kData{.wire_size = kFull, .trimmed_wire_size = kTrimmed};
constexpr Arriving kTrimmable{.wire_size = kFull, .trimmed_wire_size = kTrimmed, .trimmable = true};

// One packet from host 0 to host 5 in plane 0, by the first T1.
struct Packet {
  fabric::RouteKey route;
  Transit transit;
};

struct Fabric {
  explicit Fabric(HopsConfig config = config_of(1000), std::uint32_t planes = 1)
      : topology(racks(planes)),
        forwarder(topology, fabric::Forwarding::kSrv6, 0),
        hops(topology, config) {}

  Packet packet() const {
    Packet out{.route = {.from = 0, .to = 5}, .transit = {}};
    out.route.usids = fabric::usids_for(topology, 0, 0, 5, 0);
    return out;
  }
  Departed depart(Packet& packet, LinkId link, Time leaves_at) {
    return hops.depart({.link = link,
                        .leaves_at = leaves_at,
                        .forwarder = forwarder,
                        .route = packet.route,
                        .transit = packet.transit},
                       [] { return Passing(); });
  }
  // Puts a new packet on `link` at `at`.
  Packet on_link(LinkId link, Time at) {
    Packet out = packet();
    EXPECT_EQ(depart(out, link, at).loss, Loss::kNone);
    return out;
  }
  Arrived arrive(Packet& packet) {
    return hops.arrive(packet.transit, 5, [] { return Passing(); });
  }
  bool apply(Time now, const FaultEvent& fault) { return hops.apply(now, fault); }
  LinkId first() const { return topology.host_up(0, 0); }
  LinkId second() const { return topology.t0_up(0, 0, 0); }
  LinkId last() const { return topology.host_down(0, 5); }

  fabric::Topology topology;
  fabric::Forwarder forwarder;
  Hops hops;
};

FaultEvent impair(std::uint32_t id, FaultPlace place, ImpairmentKind kind,
                  LinkId link = fabric::kNoLink) {
  FaultEvent event{.action = FaultAction::kImpair, .id = id, .place = place, .link = link};
  event.impairment.kind = kind;
  event.impairment.share_of_2_32 = 1ull << 32;
  event.impairment.delay_max = Duration::us(1);
  return event;
}

TEST(Hops, APacketPassesItsFourLinksInTheExactTime) {
  Fabric fabric;
  Packet packet = fabric.packet();
  std::vector<LinkId> links{fabric.first()};
  Admitted admitted = fabric.hops.send(us(1), fabric.first(), kData);
  EXPECT_EQ(admitted.leaves_at, us(1) + sent_in(kFull));
  for (;;) {
    const Departed departed = fabric.depart(packet, links.back(), admitted.leaves_at);
    ASSERT_EQ(departed.loss, Loss::kNone);
    EXPECT_EQ(packet.transit.link, links.back());
    const bool is_last = departed.next == fabric::kNoLink;
    EXPECT_EQ(departed.arrives_at,
              admitted.leaves_at + kLinkDelay + (is_last ? Duration() : kSwitchDelay));
    if (is_last) break;
    links.push_back(departed.next);
    admitted = fabric.hops.admit(departed.arrives_at, packet.transit, departed.next, kData);
    EXPECT_EQ(admitted.loss, Loss::kNone);
    EXPECT_EQ(admitted.leaves_at, departed.arrives_at + sent_in(kFull));
  }
  EXPECT_EQ(links.size(), 4u);
  EXPECT_EQ(links.back(), fabric.last());
  EXPECT_EQ(fabric.arrive(packet).loss, Loss::kNone);
}

TEST(Hops, APacketWithoutARouteIsLostAtTheSwitch) {
  Fabric fabric;
  Packet packet = fabric.packet();
  packet.route.usids = {};
  EXPECT_EQ(fabric.depart(packet, fabric.first(), us(1)).loss, Loss::kNoRoute);
}

// --- queues ---

TEST(Hops, AFullQueueTrimsPacketsThatMayBeTrimmedAndDropsOthers) {
  Fabric fabric(config_of(4));
  const Packet from = fabric.on_link(fabric.first(), us(1));
  std::uint32_t queued = 0;
  Admitted admitted;
  while (!(admitted = fabric.hops.admit(us(2), from.transit, fabric.last(), kTrimmable)).trimmed) {
    ASSERT_LT(++queued, 5u);
  }
  EXPECT_EQ(admitted.loss, Loss::kNone);
  // A trimmed header waits only for the packet that is being sent.
  EXPECT_EQ(admitted.leaves_at, us(2) + sent_in(kTrimmed));
  while (fabric.hops.admit(us(2), from.transit, fabric.last(), kData).loss == Loss::kNone) {
    ASSERT_LT(++queued, 5u);
  }
  EXPECT_EQ(fabric.hops.admit(us(2), from.transit, fabric.last(), kData).loss, Loss::kQueueFull);
  EXPECT_EQ(fabric.hops.trimmed_dscp(fabric.last()), world::Dscp::kTrimmedLastHop);
  EXPECT_EQ(fabric.hops.trimmed_dscp(fabric.second()), world::Dscp::kTrimmed);
}

TEST(Hops, ALongQueueMarksPacketsThatAreEcnCapable) {
  HopsConfig config = config_of(100);
  config.fabric_queue.ecn_bytes_min = kFull;
  config.fabric_queue.ecn_bytes_max = kFull + 1;
  Fabric fabric(config);
  const Packet from = fabric.on_link(fabric.first(), us(1));
  Arriving capable = kData;
  capable.ecn_capable = true;
  std::vector<bool> marked;
  for (const Arriving& packet : {capable, capable, capable, kData})
    marked.push_back(fabric.hops.admit(us(2), from.transit, fabric.second(), packet).marked);
  EXPECT_EQ(marked, (std::vector<bool>{false, false, true, false}));
}

TEST(Hops, TheQueueOfANicNeitherMarksNorTrimsAndIsBounded) {
  HopsConfig config = config_of(4);
  config.fabric_queue.ecn_bytes_min = 0;
  config.fabric_queue.ecn_bytes_max = 1;
  Fabric fabric(config);
  Arriving packet = kTrimmable;
  packet.ecn_capable = true;
  for (int i = 1; i <= 4; ++i) {
    const Admitted admitted = fabric.hops.send(us(1), fabric.first(), packet);
    EXPECT_EQ(admitted.loss, Loss::kNone);
    EXPECT_FALSE(admitted.marked || admitted.trimmed);
    EXPECT_EQ(admitted.leaves_at, us(1) + sent_in(kFull) * i);
  }
  EXPECT_EQ(fabric.hops.send(us(1), fabric.first(), packet).loss, Loss::kQueueFull);
}

TEST(Hops, ASharedBufferIsSharedByAllPortsOfOneSwitch) {
  const fabric::Topology topology = fabric::must_make(fabric::fat_tree({.radix = 4, .planes = 2}));
  HopsConfig config = config_of(1000);
  config.shared_buffer_bytes = kFull;
  std::vector<LinkId> ports;
  for (LinkId link = 0; link < topology.link_count(); ++link) {
    if (topology.ends(link).from.tier != fabric::Tier::kHost) ports.push_back(link);
  }
  for (const LinkId full : ports) {
    for (const LinkId other : ports) {
      Hops hops(topology, config);
      const Admitted first = hops.admit(us(1), {}, full, kData);
      ASSERT_EQ(first.loss, Loss::kNone);
      hops.occupy(full, kFull, first.leaves_at);
      const bool same_switch = topology.ends(full).from == topology.ends(other).from;
      ASSERT_EQ(hops.admit(us(1), {}, other, kData).loss,
                same_switch ? Loss::kQueueFull : Loss::kNone)
          << topology.describe(full) << ", " << topology.describe(other);
      ASSERT_EQ(hops.admit(first.leaves_at, {}, full, kData).loss, Loss::kNone) << "it has left";
    }
  }
}

// --- faults ---

TEST(Hops, ALinkThatGoesDownLosesItsPacketsAndItsQueue) {
  Fabric fabric;
  Packet before = fabric.on_link(fabric.first(), us(1));
  for (int i = 0; i < 5; ++i) fabric.hops.send(us(1), fabric.first(), kData);
  const FaultEvent down{.action = FaultAction::kLinkDown, .link = fabric.first()};
  const FaultEvent up{.action = FaultAction::kLinkUp, .link = fabric.first()};
  EXPECT_FALSE(fabric.apply(us(1), up)) << "it is up already";
  EXPECT_TRUE(fabric.apply(us(1), down));
  EXPECT_FALSE(fabric.apply(us(1), down));
  EXPECT_FALSE(fabric.hops.is_up(fabric.first()));
  EXPECT_EQ(fabric.hops.queue(fabric.first()).data_backlog(us(1)), Duration());
  EXPECT_EQ(fabric.hops.admit(us(2), before.transit, fabric.second(), kData).loss,
            Loss::kInTransit);
  // A packet sent on a dead link occupies the port for the time of its transmission.
  EXPECT_EQ(fabric.hops.send(us(2), fabric.first(), kData).loss, Loss::kLinkDown);
  EXPECT_EQ(fabric.hops.queue(fabric.first()).data_backlog(us(2)), sent_in(kFull));
  EXPECT_TRUE(fabric.apply(us(3), up));
  EXPECT_EQ(fabric.hops.admit(us(3), before.transit, fabric.second(), kData).loss, Loss::kInTransit)
      << "the link is up again, but the packet was on it when it failed";
  const Packet after = fabric.on_link(fabric.first(), us(3));
  EXPECT_EQ(fabric.hops.admit(us(4), after.transit, fabric.second(), kData).loss, Loss::kNone);
  fabric.apply(us(5), {.action = FaultAction::kLinkDown, .link = fabric.second()});
  EXPECT_EQ(fabric.hops.admit(us(5), after.transit, fabric.second(), kData).loss, Loss::kLinkDown);
  Packet arriving = fabric.on_link(fabric.last(), us(5));
  fabric.apply(us(5), {.action = FaultAction::kLinkDown, .link = fabric.last()});
  EXPECT_EQ(fabric.arrive(arriving).loss, Loss::kInTransit);
}

TEST(Hops, ASlowLinkHasALowerRateAndAShorterQueueOfAtLeastTwoPackets) {
  for (const std::uint32_t percent : {25u, 1u}) {
    Fabric fabric(config_of(40));
    const Packet from = fabric.on_link(fabric.first(), us(1));
    fabric.apply(us(1),
                 {.action = FaultAction::kLinkRate, .link = fabric.second(), .percent = percent});
    const auto admit = [&] {
      return fabric.hops.admit(us(2), from.transit, fabric.second(), kData);
    };
    EXPECT_EQ(admit().leaves_at, us(2) + sent_in(kFull) * 100 / percent);
    std::uint32_t queued = 1;
    while (admit().loss == Loss::kNone) ASSERT_LE(++queued, 40u);
    EXPECT_EQ(queued, percent == 25 ? 10u : 2u);
    fabric.apply(us(100'000), {.action = FaultAction::kLinkRate, .link = fabric.second()});
    EXPECT_EQ(fabric.hops.admit(us(100'000), from.transit, fabric.second(), kData).leaves_at,
              us(100'000) + sent_in(kFull));
  }
}

TEST(Hops, SetRateScalesTheQueueAsASlowLinkDoes) {
  Fabric fabric(config_of(40));
  const Packet from = fabric.on_link(fabric.first(), us(1));
  fabric.hops.set_rate(fabric.second(), Rate::bps(2'500'000'000));
  std::uint32_t queued = 0;
  while (fabric.hops.admit(us(2), from.transit, fabric.second(), kData).loss == Loss::kNone)
    ASSERT_LE(++queued, 40u);
  EXPECT_EQ(queued, 10u);
}

TEST(Hops, AnImpairmentActsOnItsLinkUntilItEnds) {
  Fabric fabric;
  const LinkId link = fabric.first();
  fabric.apply(us(1), impair(1, FaultPlace::kLink, ImpairmentKind::kCorrupt, link));
  fabric.apply(us(1), impair(1, FaultPlace::kLink, ImpairmentKind::kCorrupt, fabric.last()));
  fabric.apply(us(1), impair(2, FaultPlace::kLink, ImpairmentKind::kDuplicate, link));
  Packet packet = fabric.packet();
  Departed departed = fabric.depart(packet, link, us(1));
  EXPECT_TRUE(departed.corrupted && departed.duplicated);
  // Both directions of a link may share an id: kHeal then ends both impairments.
  fabric.apply(us(2), {.action = FaultAction::kHeal, .id = 1});
  packet = fabric.packet();
  departed = fabric.depart(packet, link, us(2));
  EXPECT_TRUE(!departed.corrupted && departed.duplicated);
  EXPECT_FALSE(fabric.depart(packet, fabric.last(), us(2)).corrupted);
  fabric.apply(us(3), {.action = FaultAction::kHeal, .id = 2});
  packet = fabric.packet();
  EXPECT_FALSE(fabric.depart(packet, link, us(3)).duplicated);
  fabric.apply(us(4), impair(3, FaultPlace::kAllLinks, ImpairmentKind::kLoss));
  EXPECT_EQ(fabric.depart(packet, fabric.last(), us(4)).loss, Loss::kImpairment);
  fabric.apply(us(4), impair(4, FaultPlace::kLink, ImpairmentKind::kLoss, link));
  fabric.apply(us(4), impair(5, FaultPlace::kNicReceive, ImpairmentKind::kLoss));
  fabric.hops.end_impairments();
  packet = fabric.packet();
  EXPECT_EQ(fabric.depart(packet, link, us(5)).loss, Loss::kNone);
  EXPECT_EQ(fabric.arrive(packet).loss, Loss::kNone);
}

TEST(Hops, ImpairmentsOfAReceivingNicApplyToAPacketOnce) {
  Fabric fabric;
  fabric.apply(us(1), impair(1, FaultPlace::kNicReceive, ImpairmentKind::kReorder));
  fabric.apply(us(1), impair(2, FaultPlace::kNicReceive, ImpairmentKind::kDuplicate));
  Packet packet = fabric.on_link(fabric.last(), us(1));
  const Arrived first = fabric.arrive(packet);
  EXPECT_TRUE(first.duplicated && first.delayed > Duration());
  const Arrived again = fabric.arrive(packet);
  EXPECT_FALSE(again.duplicated || again.delayed > Duration());
}

TEST(Hops, ReorderingDelaysTheArrivalAtTheNextNode) {
  Fabric fabric;
  fabric.apply(us(1), impair(1, FaultPlace::kAllLinks, ImpairmentKind::kReorder));
  Packet packet = fabric.packet();
  const Duration late = fabric.depart(packet, fabric.last(), us(1)).arrives_at - us(1) - kLinkDelay;
  EXPECT_GT(late, Duration());
  EXPECT_LT(late, Duration::us(1));
}

TEST(Hops, PassingIsCalledOnlyWhereAnImpairmentMayApply) {
  Fabric fabric;
  Packet packet = fabric.packet();
  const auto asked = [&fabric, &packet] {
    int count = 0;
    const auto passing = [&count] {
      ++count;
      return Passing();
    };
    fabric.hops.depart({.link = fabric.last(),
                        .leaves_at = us(1),
                        .forwarder = fabric.forwarder,
                        .route = packet.route,
                        .transit = packet.transit},
                       passing);
    fabric.hops.arrive(packet.transit, 5, passing);
    return count;
  };
  EXPECT_EQ(asked(), 0);
  fabric.apply(us(1), impair(1, FaultPlace::kLink, ImpairmentKind::kCorrupt, fabric.last()));
  EXPECT_EQ(asked(), 1);
  fabric.apply(us(1), impair(2, FaultPlace::kNicReceive, ImpairmentKind::kCorrupt));
  EXPECT_EQ(asked(), 2);
}

}  // namespace
}  // namespace weft::switching
