// NodeRdma in the simulator: a ring of ranks that run a program, and two hosts that are held to the
// contract of rdma/rdma.h.
#include "engine/node_rdma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "fabric/address.h"
#include "fabric/sample_topologies.h"
#include "sim/sim_world.h"

namespace weft::engine {
namespace {

using rdma::Completion;
using rdma::Failure;
using rdma::Status;
using rdma::Write;
using sim::ByteMemory;

constexpr std::uint64_t kRegion = 64 * 1024;
constexpr std::uint32_t kSlots = 4;

Time at_us(std::int64_t us) { return Time::from_start(Duration::us(us)); }

sim::SimConfig sim_config(const fabric::Topology& topology) {
  const switching::QueueParams queue{
      .data_bytes_max = 1u << 20, .control_bytes_max = 1u << 20, .ecn = false};
  return {.topology = topology, .fabric_queue = queue, .last_hop_queue = queue};
}

// A program that stores what it polls.
class Recorder final : public rdma::Program {
 public:
  void step(Time, rdma::Rdma& rdma) override {
    ++steps;
    std::array<Completion, 3> batch;
    for (std::size_t count = batch.size(); count == batch.size();) {
      count = rdma.poll(batch);
      for (const Completion& one : std::span(batch).first(count))
        (one.kind == Completion::Kind::kWrite ? writes : receives).push_back(one);
    }
    for (Failure failure; rdma.poll_failure(failure);) failures.push_back(failure);
  }
  Time next_deadline() const override { return kNever; }
  bool is_done() const override { return false; }

  std::vector<Completion> writes, receives;
  std::vector<Failure> failures;
  int steps = 0;
};

// A program that passes a number around a ring: each rank adds its own number to the received one,
// for several rounds.
class Ring final : public rdma::Program {
 public:
  struct Setup {
    std::uint32_t rank = 0, rounds = 0;
    rdma::Group next{}, previous{};
    rdma::Region region{};
    rdma::RemoteRegion next_region{};
    std::uint64_t work_bytes = 0;  // processed by each rank before it sends
  };
  explicit Ring(const Setup& setup) : setup_(setup) {}

  void step(Time now, rdma::Rdma& rdma) override {
    if (!begun_ && setup_.rank == 0) work(now, rdma);
    begun_ = true;
    std::array<Completion, 4> batch;
    const std::size_t count = rdma.poll(batch);
    for (const Completion& one : std::span(batch).first(count)) {
      EXPECT_EQ(one.status, Status::kOk);
      if (one.kind == Completion::Kind::kWrite) continue;
      EXPECT_EQ(one.immediate, round_);
      EXPECT_EQ(one.size, 4u);
      sum_ = setup_.region.bytes == nullptr ? 0 : base::load32(bytes(), 0);
      EXPECT_EQ(rdma.post_receives(now, setup_.previous.first_qp, 1), 1u);
      if (++round_ < setup_.rounds || setup_.rank != 0) work(now, rdma);
    }
    if (now >= sends_at_) send(now, rdma);
  }
  Time next_deadline() const override { return begun_ ? sends_at_ : Time(); }
  bool is_done() const override { return round_ == setup_.rounds && sends_at_ == kNever; }
  std::uint32_t sum() const { return sum_; }

 private:
  Bytes bytes() const { return {setup_.region.bytes, kRegion}; }
  void work(Time now, rdma::Rdma& rdma) { sends_at_ = rdma.spend(now, setup_.work_bytes); }
  void send(Time now, rdma::Rdma& rdma) {
    sends_at_ = kNever;
    if (setup_.region.bytes != nullptr) base::store32(bytes(), 8, sum_ + setup_.rank + 1);
    const Write write{.with_immediate = true,
                      .immediate = sent_,
                      .from = setup_.region.id,
                      .from_offset = 8,
                      .to = &setup_.next_region,
                      .size = 4};
    ++sent_;
    EXPECT_EQ(rdma.post_writes(now, setup_.next.first_qp, {&write, 1}), 1u);
  }

  Setup setup_;
  std::uint32_t round_ = 0, sent_ = 0, sum_ = 0;
  bool begun_ = false;
  Time sends_at_ = kNever;
};

struct RingRun {
  std::uint32_t ranks = 4, rounds = 3;
  ByteMemory::Kind kind = ByteMemory::Kind::kBytes;
  std::uint64_t work_bytes = 0;
};
struct RingResult {
  bool done = false;
  std::uint32_t sum = 0;  // the number at rank 0
  std::uint64_t hash = 0;
  Duration took{};
};

RingResult run_ring(const RingRun& run) {
  const auto topology = fabric::Topology::make(fabric::single_switch(run.ranks, 2)).value();
  ByteMemory memory(run.kind, run.ranks);
  struct Rank {
    std::unique_ptr<NodeRdma> node;
    rdma::Group next, previous;
    rdma::Region region;
    std::unique_ptr<Ring> program;
  };
  std::deque<Rank> ranks;
  for (std::uint32_t r = 0; r < run.ranks; ++r) {
    auto options = node_options(topology, r, {.qps_max = 2});
    options.core = Rate::gbps(80);
    Rank& rank = ranks.emplace_back();
    rank.node = std::make_unique<NodeRdma>(options, memory, nullptr);
    rank.next = rank.node->create_group({.sends_max = 4, .receives_max = 1}).value();
    rank.previous =
        rank.node->create_group({.sends_max = 1, .receives_max = kSlots, .receives_posted = kSlots})
            .value();
    rank.region = rank.node->allocate(kRegion).value();
  }
  sim::SimWorld world(sim_config(topology));
  for (std::uint32_t r = 0; r < run.ranks; ++r) {
    Rank& rank = ranks[r];
    const Rank& next = ranks[(r + 1) % run.ranks];
    const Rank& previous = ranks[(r + run.ranks - 1) % run.ranks];
    EXPECT_TRUE(rank.node->connect(Time(), rank.next.id, next.node->describe(next.previous.id)));
    EXPECT_TRUE(
        rank.node->connect(Time(), rank.previous.id, previous.node->describe(previous.next.id)));
    Ring::Setup setup{
        .rank = r, .rounds = run.rounds, .next = rank.next, .previous = rank.previous};
    setup.region = rank.region;
    setup.next_region =
        rank.node->open_region(rank.next.id, next.node->describe_region(next.region.id)).value();
    setup.work_bytes = run.work_bytes;
    rank.program = std::make_unique<Ring>(setup);
    rank.node->run(*rank.program);
  }
  for (std::uint32_t r = 0; r < run.ranks; ++r) {
    std::array<world::Address, 2> ports;
    for (std::uint32_t plane = 0; plane < 2; ++plane)
      ports[plane] = world::Address::of(fabric::address_of({.host = r, .plane = plane}));
    EXPECT_TRUE(world.attach(ports, *ranks[r].node));
  }
  const auto done = [&] {
    return std::all_of(ranks.begin(), ranks.end(),
                       [](const Rank& rank) { return rank.program->is_done(); });
  };
  while (!done() && world.now() < at_us(100'000)) world.step(world.now() + Duration::us(1));
  return {.done = done(),
          .sum = ranks[0].program->sum(),
          .hash = world.trace_hash(),
          .took = world.now().since_start()};
}

TEST(NodeRdma, RanksOfARingRunTheirProgramsInOneWorld) {
  const RingResult result = run_ring({.ranks = 5, .rounds = 3});
  ASSERT_TRUE(result.done);
  EXPECT_EQ(result.sum, 3 * (1 + 2 + 3 + 4 + 5));
}

TEST(NodeRdma, PacketsDoNotDependOnWhetherMemoryHoldsBytes) {
  const RingResult with = run_ring({}), again = run_ring({});
  const RingResult without = run_ring({.kind = ByteMemory::Kind::kBoundsOnly});
  EXPECT_TRUE(with.done && without.done);
  EXPECT_EQ(with.hash, again.hash);
  EXPECT_EQ(with.hash, without.hash);
}

TEST(NodeRdma, SpendingCoreTimeTakesVirtualTime) {
  const RingResult idle = run_ring({.ranks = 4, .rounds = 2});
  // 100,000 bytes at 80 Gb/s take 10 us, before each of 8 sends.
  const RingResult busy = run_ring({.ranks = 4, .rounds = 2, .work_bytes = 100'000});
  EXPECT_TRUE(busy.done);
  EXPECT_GE(busy.took, idle.took + Duration::us(79));
  EXPECT_LE(busy.took, idle.took + Duration::us(82));
}

// Two hosts in two planes; each has a group to the other and a region.
class NodePair : public ::testing::Test {
 protected:
  struct End {
    std::unique_ptr<NodeRdma> rdma;
    Recorder program;
    rdma::Group group{};
    rdma::Region region{};
    rdma::RemoteRegion peer{};
  };

  void open(const rdma::GroupRequest& request, std::uint32_t machine_hosts = 1) {
    for (std::uint32_t host = 0; host < 2; ++host) {
      auto options = node_options(topology_, host, {.qps_max = 4});
      options.machine_hosts = machine_hosts;
      End& end = ends_[host];
      end.rdma = std::make_unique<NodeRdma>(options, memory_, nullptr);
      end.group = end.rdma->create_group(request).value();
      end.region = end.rdma->allocate(kRegion).value();
      end.rdma->run(end.program);
    }
    for (std::uint32_t host = 0; host < 2; ++host) {
      End& end = ends_[host];
      const End& other = ends_[1 - host];
      ASSERT_TRUE(end.rdma->connect(Time(), end.group.id, other.rdma->describe(other.group.id)));
      end.peer =
          end.rdma->open_region(end.group.id, other.rdma->describe_region(other.region.id)).value();
    }
    for (std::uint32_t host = 0; host < 2; ++host) {
      std::array<world::Address, 2> ports;
      for (std::uint32_t plane = 0; plane < 2; ++plane)
        ports[plane] = world::Address::of(fabric::address_of({.host = host, .plane = plane}));
      ASSERT_TRUE(world_.attach(ports, *ends_[host].rdma));
    }
    world_.step(at_us(1));
  }
  std::size_t post(std::uint32_t from, const Write& write) {
    End& end = ends_[from];
    Write one = write;
    one.from = end.region.id;
    one.to = &end.peer;
    const std::size_t taken =
        end.rdma->post_writes(world_.now(), end.group.first_qp, std::span(&one, 1));
    world_.poll_node(from);
    return taken;
  }
  void run_for(Duration time) { world_.step(world_.now() + time); }
  void set_link(fabric::LinkId link, fabric::FaultAction action) {
    fabric::FaultEvent fault;
    fault.at = world_.now() + Duration::ns(1);
    fault.action = action;
    fault.link = link;
    world_.schedule({&fault, 1});
  }

  fabric::Topology topology_ = fabric::Topology::make(fabric::single_switch(2, 2)).value();
  ByteMemory memory_{ByteMemory::Kind::kBytes, 2};
  std::array<End, 2> ends_;
  sim::SimWorld world_{sim_config(topology_)};
};

TEST_F(NodePair, WritesCompleteInPostOrderAndTheirBytesArriveBeforeTheirImmediates) {
  open({.receives_max = 8, .receives_posted = 8});
  for (std::uint64_t i = 0; i < kRegion; ++i) ends_[0].region.bytes[i] = std::byte(i * 7);
  constexpr std::array<std::uint32_t, 6> kSizes{0, 1, 8, 4096, 4097, 40'000};
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < kSizes.size(); ++i) {
    ASSERT_EQ(post(0, {.id = 100 + i,
                       .with_immediate = true,
                       .immediate = 7 * i,
                       .from_offset = at,
                       .to_offset = at,
                       .size = kSizes[i]}),
              1u);
    at += kSizes[i];
  }
  run_for(Duration::us(100));
  ASSERT_EQ(ends_[0].program.writes.size(), kSizes.size());
  ASSERT_EQ(ends_[1].program.receives.size(), kSizes.size());
  for (std::uint32_t i = 0; i < kSizes.size(); ++i) {
    EXPECT_EQ(ends_[0].program.writes[i].id, 100 + i);
    EXPECT_EQ(ends_[0].program.writes[i].status, Status::kOk);
    EXPECT_EQ(ends_[1].program.receives[i].immediate, 7 * i);
    EXPECT_EQ(ends_[1].program.receives[i].size, kSizes[i]);
  }
  EXPECT_TRUE(std::equal(ends_[0].region.bytes, ends_[0].region.bytes + at, ends_[1].region.bytes));
  EXPECT_EQ(ends_[1].region.bytes[at], std::byte{0});
}

TEST_F(NodePair, ProgramIsSteppedOnlyWhenThereIsNews) {
  open({});
  const int before = ends_[1].program.steps;
  ASSERT_EQ(post(0, {.size = 50'000}), 1u);
  run_for(Duration::us(100));
  EXPECT_EQ(ends_[0].program.writes.size(), 1u);
  EXPECT_EQ(ends_[1].program.steps, before) << "packets without an immediate are no news";
}

TEST_F(NodePair, AnImmediateWithoutAReceiveFailsTheQpAtBothEnds) {
  open({.receives_max = 4});
  ASSERT_EQ(post(0, {.with_immediate = true}), 1u);
  ASSERT_EQ(post(0, {.size = 10}), 1u);
  run_for(Duration::us(200));
  ASSERT_EQ(ends_[0].program.failures.size(), 1u);
  EXPECT_EQ(ends_[0].program.failures[0].reason, Status::kRemoteOperation);
  ASSERT_EQ(ends_[1].program.failures.size(), 1u);
  EXPECT_EQ(ends_[1].program.failures[0].reason, Status::kLocalAccess);
  ASSERT_EQ(ends_[0].program.writes.size(), 2u);
  EXPECT_EQ(post(0, {.size = 10}), 0u);
}

TEST_F(NodePair, LostPlaneIsReportedAsLeftOutAndWritesContinue) {
  open({});
  const std::uint64_t before = ends_[0].rdma->health_changes();
  EXPECT_EQ(ends_[0].rdma->health(ends_[0].group.id).planes, 2u);
  EXPECT_EQ(ends_[0].rdma->health(ends_[0].group.id).planes_left_out, 0u);
  set_link(topology_.host_down(1, 0), fabric::FaultAction::kLinkDown);
  run_for(Duration::us(50));
  EXPECT_GT(ends_[0].rdma->health_changes(), before);
  EXPECT_EQ(ends_[0].rdma->health(ends_[0].group.id).planes_left_out, 2u);
  EXPECT_EQ(ends_[1].rdma->health(ends_[1].group.id).planes_left_out, 2u) << "the peer is told";
  ASSERT_EQ(post(0, {.size = 60'000}), 1u);
  run_for(Duration::us(100));
  ASSERT_EQ(ends_[0].program.writes.size(), 1u);
  EXPECT_EQ(ends_[0].program.writes[0].status, Status::kOk);
  set_link(topology_.host_down(1, 0), fabric::FaultAction::kLinkUp);
  run_for(Duration::ms(2));
  EXPECT_EQ(ends_[0].rdma->health(ends_[0].group.id).planes_left_out, 0u);
}

TEST_F(NodePair, DeniedPlaneCarriesNoPackets) {
  open({});
  EXPECT_TRUE(ends_[0].rdma->change_plane(world_.now(), {.plane = 0, .denied = true}));
  EXPECT_FALSE(ends_[0].rdma->change_plane(world_.now(), {.plane = 2, .denied = true}));
  EXPECT_EQ(ends_[0].rdma->health(ends_[0].group.id).planes_left_out, 1u);
  world_.poll_node(0);
  run_for(Duration::us(50));
  world_.count_links();
  ASSERT_EQ(post(0, {.size = 60'000}), 1u);
  run_for(Duration::us(100));
  EXPECT_EQ(ends_[0].program.writes.size(), 1u);
  EXPECT_EQ(world_.link_packets()[topology_.host_up(0, 0)], 0u);
  EXPECT_GT(world_.link_packets()[topology_.host_up(1, 0)], 0u);
}

TEST_F(NodePair, HostsOfOneMachineMapEachOthersMemory) {
  open({}, 2);
  ASSERT_NE(ends_[0].peer.mapped, nullptr);
  ends_[1].region.bytes[5] = std::byte{77};
  EXPECT_EQ(ends_[0].peer.mapped[5], std::byte{77});
  ASSERT_TRUE(ends_[1].rdma->remove_region(ends_[1].region.id));
  EXPECT_EQ(ends_[0].peer.mapped[5], std::byte{77}) << "the reader keeps it";
}

TEST_F(NodePair, RegionMayBeRemovedWhilePacketsFromItAreInFlight) {
  open({});
  ASSERT_EQ(post(0, {.size = 60'000}), 1u);
  run_for(Duration::ns(900));
  ends_[0].rdma->fail_group(world_.now(), ends_[0].group.id);
  ASSERT_TRUE(ends_[0].rdma->remove_region(ends_[0].region.id));
  run_for(Duration::us(100));
  ASSERT_EQ(ends_[0].program.writes.size(), 1u);
  EXPECT_EQ(ends_[0].program.writes[0].status, Status::kFlushed);
  EXPECT_FALSE(ends_[0].rdma->remove_region(ends_[0].region.id)) << "once only";
}

// Fails its group in its first step, and polls one thing in each step.
class GivesUp final : public rdma::Program {
 public:
  explicit GivesUp(const rdma::Group& group) : group_(group) {}
  void step(Time now, rdma::Rdma& rdma) override {
    Completion one;
    if (rdma.poll({&one, 1}) == 1) {
      ++flushed;
    } else if (Failure failure; rdma.poll_failure(failure)) {
      ++told;
    }
    if (!begun_) rdma.fail_group(now, group_.id);
    begun_ = true;
  }
  Time next_deadline() const override { return begun_ ? kNever : Time(); }
  bool is_done() const override { return false; }
  int flushed = 0, told = 0;

 private:
  rdma::Group group_;
  bool begun_ = false;
};

TEST_F(NodePair, WhatAStepCausesOrLeavesIsNewsForTheNextStep) {
  open({.receives_max = 4, .receives_posted = 4});
  GivesUp program(ends_[0].group);
  ends_[0].rdma->run(program);
  world_.poll_node(0);
  run_for(Duration::us(10));
  EXPECT_EQ(program.flushed, 4);
  EXPECT_EQ(program.told, 1);
}

TEST_F(NodePair, DestroyedGroupsAndRemovedRegionsCannotBeUsed) {
  open({});
  ASSERT_TRUE(ends_[1].rdma->remove_region(ends_[1].region.id));
  ASSERT_EQ(post(0, {.size = 10}), 1u);
  run_for(Duration::us(100));
  ASSERT_EQ(ends_[0].program.failures.size(), 1u);
  EXPECT_EQ(ends_[0].program.failures[0].reason, Status::kRemoteAccess);
  ASSERT_TRUE(ends_[0].rdma->destroy_group(world_.now(), ends_[0].group.id));
  EXPECT_FALSE(ends_[0].rdma->destroy_group(world_.now(), ends_[0].group.id));
  // The queue entries of the destroyed group are free again.
  EXPECT_TRUE(ends_[0].rdma->create_group({.sends_max = 64, .receives_max = 64}));
}

TEST_F(NodePair, DescriptionsThatDoNotFitAreRefused) {
  open({});
  NodeRdma& rdma = *ends_[0].rdma;
  const rdma::Group two = rdma.create_group({.qps = 2, .sends_max = 0, .receives_max = 0}).value();
  const auto good = ends_[1].rdma->describe(ends_[1].group.id);
  EXPECT_FALSE(rdma.connect(Time(), two.id, good)) << "one QP for two";
  EXPECT_FALSE(rdma.connect(Time(), ends_[0].group.id, good)) << "connected already";
  EXPECT_FALSE(rdma.connect(Time(), 99, good));
  std::vector<std::byte> own = rdma.describe(two.id);
  EXPECT_FALSE(rdma.connect(Time(), two.id, own)) << "itself";
  base::store32(Bytes(own), 0, 2);
  EXPECT_FALSE(rdma.connect(Time(), two.id, own)) << "a host that is not there";
  EXPECT_FALSE(rdma.open_region(two.id, ends_[1].rdma->describe_region(0))) << "not connected";
  EXPECT_FALSE(rdma.open_region(ends_[0].group.id, std::vector<std::byte>(23)));
  EXPECT_FALSE(rdma.create_group({.sends_max = 65}));
  EXPECT_FALSE(rdma.create_group({.sends_max = 0, .receives_max = 1, .receives_posted = 2}));
}

TEST(NodeRdma, NodeSetUpByItsOwnerRefusesTheSetUpOfRdma) {
  const auto topology = fabric::Topology::make(fabric::single_switch(2, 1)).value();
  ByteMemory memory(ByteMemory::Kind::kBoundsOnly, 2);
  const auto options = node_options(topology, 0, {});
  NodeRdma node(options.endpoint, memory.of(0), nullptr);
  EXPECT_FALSE(node.allocate(10));
  EXPECT_FALSE(node.create_group({}));
  EXPECT_FALSE(node.remove_region(node.declare_source(0, 10)));
}

}  // namespace
}  // namespace weft::engine
