// A whole fleet of hosts, joined by a loopback that delivers every datagram after two microseconds.
#include "run/fleet.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <vector>

#include "fabric/address.h"
#include "scenario/testing.h"

// The number of allocations while counting is on. Not inlined, because g++ would warn that malloc
// and free do not match.
static std::size_t allocations = 0;
static bool counting = false;

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace weft::run {
namespace {

using namespace scenario;

// Counts allocations within a scope.
struct Counting {
  Counting() { counting = true; }
  ~Counting() { counting = false; }
};

// A memory that accepts the regions of a plan, and counts for each flow the bytes placed at correct
// addresses.
class CountingMemory final : public world::Memory {
 public:
  explicit CountingMemory(const Plan& plan) : placed(plan.ops.size(), 0), plan_(&plan) {}
  bool region(const world::RegionQuery& query, world::Region& out) const override {
    if (query.key == kBadKey || query.key > plan_->ops.size()) return false;
    const FlowIndex flow = query.key - 1;
    const std::uint64_t base = flow_base(flow);
    if (query.at < base || query.at - base + query.size > flow_span(plan_->ops[flow])) return false;
    out = {.at = query.at, .size = query.size};
    return true;
  }
  void place(const world::Region& to, world::PayloadRef from) override {
    EXPECT_EQ(to.at, from.at);
    EXPECT_EQ(to.size, from.size);
    placed[(to.at >> 40) - 1] += to.size;
  }
  std::vector<std::uint64_t> placed;  // indexed by flow

 private:
  const Plan* plan_;
};

class Loopback {
 public:
  Loopback(std::string_view scenario_text, Trace* trace)
      : scenario_(small_scenario(scenario_text)), topology_(topology_of(scenario_)) {
    auto made = Fleet::make(scenario_, topology_,
                            {.seed = 1,
                             .memory = [this](HostIndex, const Plan& plan) -> world::Memory& {
                               return memories_.emplace_back(plan);
                             },
                             .trace = trace});
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    fleet_ = std::move(made).value();
  }

  // Runs until every flow is over. False if that takes longer than `limit`.
  bool run(Duration limit) {
    for (; now_ <= Time::from_start(limit) && !fleet_->is_done(); now_ += kStep) {
      deliver();
      for (HostIndex host = 0; host < fleet_->host_count(); ++host) {
        world::Node& node = fleet_->node(host);
        if (node.next_deadline() <= now_) {
          const Counting scope;
          node.on_deadline(now_, Duration());
        }
        transmit(host);
      }
    }
    return fleet_->is_done();
  }

  Fleet& fleet() { return *fleet_; }
  const Plan& plan() const { return fleet_->plan(); }
  const FlowRecord& record(FlowIndex flow) const { return fleet_->scoreboard().flows[flow]; }
  std::uint64_t placed(HostIndex host, FlowIndex flow) { return memories_[host].placed[flow]; }
  HostIndex deaf = 0xffff'ffff;  // this host receives nothing
  std::uint64_t datagrams = 0;

 private:
  static constexpr Duration kStep = Duration::us(1);
  struct Flying {
    Time at;
    HostIndex to;
    world::Datagram datagram;
    std::array<std::byte, 64> header;
  };

  void transmit(HostIndex host) {
    std::array<world::PortRoom, world::kPortsMax> room{};
    for (std::uint32_t p = 0; p < scenario_.topology.planes; ++p) room[p].packets = 16;
    std::array<world::Datagram, 64> out;
    const auto ports = std::span(room).first(scenario_.topology.planes);
    counting = true;
    const std::size_t count = fleet_->node(host).poll_transmit(now_, ports, out);
    counting = false;
    const auto addresses = fleet_->addresses(host);
    for (std::size_t i = 0; i < count; ++i) {
      ++datagrams;
      const auto port = fabric::port_of(out[i].peer.ip());
      ASSERT_TRUE(port);
      Flying& flying = flying_.emplace_back();
      flying.at = now_ + kStep * 2;
      flying.to = port->host;
      flying.datagram = out[i];
      std::memcpy(flying.header.data(), out[i].header.data(), out[i].header.size());
      flying.datagram.peer = addresses[out[i].port];
    }
  }

  void deliver() {
    while (!flying_.empty() && flying_.front().at <= now_) {
      Flying& flying = flying_.front();
      flying.datagram.header = ConstBytes(flying.header).first(flying.datagram.header.size());
      flying.datagram.received_at = now_;
      if (flying.to != deaf) {
        const Counting scope;
        fleet_->node(flying.to).on_datagrams(now_, std::span(&flying.datagram, 1));
      }
      flying_.pop_front();
    }
  }

  Scenario scenario_;
  fabric::Topology topology_;
  std::deque<CountingMemory> memories_;
  std::unique_ptr<Fleet> fleet_;
  std::deque<Flying> flying_;
  Time now_;
};

TEST(Host, FlowIsCutIntoMessagesAndCompletes) {
  Loopback loop("[workload]\nkind = \"pairs\"\nhosts = 2\nbytes = 1000000\nmessage = 30000\n",
                nullptr);
  ASSERT_TRUE(loop.run(Duration::ms(10)));
  const FlowRecord& record = loop.record(0);
  EXPECT_EQ(record.state, FlowState::kCompleted);
  EXPECT_EQ(record.status, rdma::Status::kOk);
  EXPECT_EQ(record.bytes_completed, 1000000u);
  EXPECT_EQ(record.first_post, Time());
  EXPECT_GT(record.last_completion, record.first_post);
  EXPECT_GT(record.longest_pause, Duration());
  EXPECT_LT(record.longest_pause, record.last_completion - record.first_post);
  EXPECT_EQ(loop.placed(1, 0), 1000000u) << "every byte once";
}

TEST(Host, FlowsStartAtTheirTime) {
  Loopback loop(
      "[workload]\nkind = \"flows\"\nbytes = 5000\n"
      "[[workload.flow]]\nfrom = 0\nto = 1\n[[workload.flow]]\nfrom = 0\nto = 2\nstart = "
      "\"50us\"\n",
      nullptr);
  ASSERT_TRUE(loop.run(Duration::ms(10)));
  EXPECT_EQ(loop.record(0).first_post, Time());
  EXPECT_EQ(loop.record(1).first_post, Time::from_start(Duration::us(50)));
}

TEST(Host, RingAndTreeAllReduceCompleteInOrder) {
  for (const char* kind : {"ring-all-reduce", "tree-all-reduce"}) {
    for (const char* keys : {"", "qps_per_peer = 2\nmessage = 3000\n", "group = 2\n"}) {
      Loopback loop("[workload]\nkind = \"" + std::string(kind) + "\"\nbytes = 64000\n" + keys,
                    nullptr);
      ASSERT_TRUE(loop.run(Duration::ms(20)))
          << kind << " " << keys << loop.fleet().stuck(1).front();
      const Plan& plan = loop.plan();
      for (HostIndex host = 0; host < plan.host_count(); ++host) {
        Time last;
        for (FlowIndex flow = plan.ops_from[host]; flow < plan.ops_from[host + 1]; ++flow) {
          EXPECT_LE(last, loop.record(flow).first_post);
          last = loop.record(flow).first_post;
        }
      }
      EXPECT_EQ(loop.fleet().qp_errors().unexpected, 0u);
    }
  }
}

TEST(Host, AllToAllServesOnlyAFewPeersAtATime) {
  Loopback loop("[workload]\nkind = \"all-to-all\"\nbytes = 20000\nparallel = 2\n", nullptr);
  ASSERT_TRUE(loop.run(Duration::ms(20)));
  const Plan& plan = loop.plan();
  for (FlowIndex flow = plan.ops_from[3]; flow < plan.ops_from[4]; ++flow) {
    int under_way = 0;
    for (FlowIndex other = plan.ops_from[3]; other < plan.ops_from[4]; ++other) {
      under_way += loop.record(other).first_post <= loop.record(flow).first_post &&
                           loop.record(flow).first_post < loop.record(other).last_completion
                       ? 1
                       : 0;
    }
    EXPECT_LE(under_way, 2);
  }
}

TEST(Host, RepeatedFlowEndsWhenItsTimeIsOver) {
  Loopback loop(
      "[workload]\nkind = \"pairs\"\nhosts = 2\nmessage = 8000\nrepeat_for = \"300us\"\n"
      "immediate = true\n",
      nullptr);
  ASSERT_TRUE(loop.run(Duration::ms(10)));
  EXPECT_GE(loop.record(0).last_completion, Time::from_start(Duration::us(300)));
  EXPECT_LE(loop.record(0).last_completion, Time::from_start(Duration::us(350)));
  EXPECT_EQ(loop.record(0).bytes_completed % 8000, 0u);
  const Series& series = loop.fleet().scoreboard().series;
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : series.bytes()) sum += bytes;
  EXPECT_EQ(sum, loop.record(0).bytes_completed);
  EXPECT_EQ(series.bytes().size(), 31u);
}

TEST(Host, UnregisteredKeyCompletesWithARemoteAccessError) {
  Loopback loop(
      "[workload]\nkind = \"flows\"\nbytes = 50000\nmessage = 10000\n"
      "[[workload.flow]]\nfrom = 0\nto = 1\nbad_rkey = true\n[[workload.flow]]\nfrom = 2\nto = 3\n",
      nullptr);
  ASSERT_TRUE(loop.run(Duration::ms(50)));
  EXPECT_EQ(loop.record(0).state, FlowState::kFailed);
  EXPECT_EQ(loop.record(0).status, rdma::Status::kRemoteAccess);
  EXPECT_EQ(loop.record(1).state, FlowState::kCompleted);
  EXPECT_EQ(loop.fleet().qp_errors().unexpected, 0u);
  EXPECT_GE(loop.fleet().qp_errors().expected, 1u);
  EXPECT_EQ(loop.placed(1, 0), 0u);
}

TEST(Host, CrashAbandonsTheFlowsOfTheHost) {
  Loopback loop("[workload]\nkind = \"pairs\"\nhosts = 4\nbytes = 100000\n", nullptr);
  loop.deaf = 1;
  EXPECT_FALSE(loop.run(Duration::ms(2)));
  ASSERT_EQ(loop.fleet().stuck(5).size(), 1u);
  EXPECT_EQ(loop.fleet().stuck(5)[0].substr(0, 37), "flow 0 from host 0 to host 1: 0 of 1 ");
  loop.fleet().on_crash(1);
  EXPECT_TRUE(loop.fleet().is_done());
  EXPECT_EQ(loop.record(0).state, FlowState::kAbandoned);
  EXPECT_EQ(loop.record(1).state, FlowState::kCompleted);
  EXPECT_TRUE(loop.fleet().stuck(5).empty());
}

TEST(Host, TraceHoldsWhatTheApplicationSees) {
  Trace trace;
  Loopback loop(
      "[workload]\nkind = \"pairs\"\nhosts = 2\nbytes = 50000\nmessage = 10000\nimmediate = true\n",
      &trace);
  ASSERT_TRUE(loop.run(Duration::ms(10)));
  std::map<TraceKind, int> count;
  std::uint64_t next_write = 0, next_receive = 0;
  for (const TraceRecord& record : trace.records()) {
    ++count[record.kind];
    if (record.kind == TraceKind::kPost) {
      EXPECT_EQ(record.b, 10000u);
      EXPECT_EQ(record.flags, 3u);
    }
    if (record.kind != TraceKind::kComplete) continue;
    EXPECT_EQ(record.a, 0u);
    EXPECT_EQ(record.b, 10000u);
    EXPECT_EQ(record.id & 0xffff'ffff, (record.flags & 1) != 0 ? next_receive++ : next_write++);
  }
  EXPECT_EQ(count[TraceKind::kPost], 5);
  EXPECT_EQ(count[TraceKind::kPostRecv], 5);
  EXPECT_EQ(count[TraceKind::kComplete], 10);
}

TEST(Host, HostTakesLittleMemoryBesidesItsEndpoint) {
  Loopback loop("[workload]\nkind = \"permutation\"\nbytes = 262144\n", nullptr);
  const engine::NodeRdma& node = loop.fleet().node(0);
  EXPECT_LE(sizeof(Host) + loop.fleet().host(0).heap_bytes() + sizeof(node) -
                sizeof(transport::Endpoint) + node.heap_bytes(),
            640u);
}

TEST(Host, RunningHostAllocatesNothing) {
  Loopback loop(
      "[workload]\nkind = \"all-to-all\"\nbytes = 20000\nmessage = 3000\nimmediate = true\n",
      nullptr);
  allocations = 0;
  ASSERT_TRUE(loop.run(Duration::ms(20)));
  EXPECT_EQ(allocations, 0u);
}

}  // namespace
}  // namespace weft::run
