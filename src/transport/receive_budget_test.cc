// A responder with little buffer space tells its requestors, and they obey.
#include "transport/receive_budget.h"

#include <gtest/gtest.h>

#include <tuple>

#include "transport/test_requestor.h"

namespace weft::transport {
namespace {

constexpr std::uint32_t kUnit = 16 * 1024;

Time at(Duration d) { return Time::from_start(d); }

TEST(ReceiveBudget, NothingIsReportedWherePortsAreNotBounded) {
  ReceiveBudget budget;
  EXPECT_FALSE(budget.is_bounded());
  budget.on_port({}, 0, {.receive_bytes = 1000});
  EXPECT_TRUE(budget.is_bounded());
  budget.on_port({}, 0, {.receive_bytes = 0});
  EXPECT_FALSE(budget.is_bounded());
}

TEST(ReceiveBudget, BudgetIsSharedAmongTheQpsThatReceive) {
  ReceiveBudget budget;
  for (PortIndex port = 0; port < 4; ++port) budget.on_port({}, port, {.receive_bytes = 425'984});
  const std::uint64_t whole = 4 * 425'984ull / 16 * 9;
  std::array<std::uint32_t, 8> epochs{};
  Time now = at(Duration::ms(1));
  budget.on_receive(now, epochs[0]);
  EXPECT_EQ(budget.limit(now, kUnit).mpr, whole / kUnit);
  for (auto& epoch : epochs) budget.on_receive(now, epoch);
  for (auto& epoch : epochs) budget.on_receive(now, epoch);  // each QP counts once
  EXPECT_EQ(budget.limit(now, kUnit).mpr, whole / 8 / kUnit);
  // QPs that stopped receiving have no share two epochs later.
  for (int i = 0; i < 3; ++i) {
    now += Duration::ms(6);
    budget.on_receive(now, epochs[0]);
  }
  EXPECT_EQ(budget.limit(now, kUnit).mpr, whole / kUnit);
}

TEST(ReceiveBudget, OverflowIsReportedForTwoMilliseconds) {
  ReceiveBudget budget;
  const Time now = at(Duration::ms(1));
  budget.on_port(now, 1, {.receive_bytes = 425'984});
  EXPECT_FALSE(budget.limit(now, kUnit).overflow);
  budget.on_port(now, 1, {.receive_bytes = 425'984, .overflows = 3});
  EXPECT_TRUE(budget.limit(now, kUnit).overflow);
  EXPECT_GT(budget.limit(now, kUnit).cwnd_penalty, 0);
  EXPECT_FALSE(budget.limit(now + Duration::ms(3), kUnit).overflow);
  EXPECT_EQ(budget.limit(now + Duration::ms(3), kUnit).cwnd_penalty, 0);
}

TEST(ReceiveBudget, BudgetIsSmallerWherePacketsArriveOneByOne) {
  ReceiveBudget budget;
  const auto told = [&](bool singly) {
    for (PortIndex port = 0; port < 4; ++port)
      budget.on_port({}, port, {.receive_bytes = 425'984, .singly = singly});
    return budget.limit({}, kUnit).mpr;
  };
  EXPECT_EQ(told(false), 4 * 425'984u * 9 / 16 / kUnit);
  EXPECT_EQ(told(true), 4 * 425'984u * 6 / 16 / kUnit);
  EXPECT_EQ(told(false), 4 * 425'984u * 9 / 16 / kUnit);
}

TEST(ReceiveBudget, BudgetBoundsTheBytesInFlight) {
  for (const auto& [room, least, most] : {std::tuple{4096u, 2u, 3u}, {32 * 1024u, 24u, 31u}}) {
    auto options = test::RequestorBench::defaults();
    options.budget_unit_bytes = room;
    test::RequestorBench bench(options);
    bench.post(64 * 1024);
    const auto first = bench.poll();
    ASSERT_TRUE(first);
    bench.pass(options.config.nscc.base_rtt);
    bench.arrive(*first);
    auto sack = bench.sack(test::RequestorBench::trigger(*first));
    sack.mpr = 1;
    ASSERT_TRUE(bench.take_sack(sack));
    const auto sent = bench.poll_all();
    // Packets of 1,024 bytes and their headers.
    EXPECT_GE(sent.size(), least);
    EXPECT_LE(sent.size(), most);
  }
}

TEST(ReceiveBudget, LossByOverflowAtThePeerCondemnsNoEv) {
  for (const bool overflow : {true, false}) {
    auto options = test::RequestorBench::defaults();
    options.budget_unit_bytes = 16 * 1024;
    options.config.condemn = Condemn::kFirstLoss;
    test::RequestorBench bench(options);
    bench.post(32 * 1024);
    std::vector<test::RequestorBench::Out> packets;
    for (int i = 0; i < 32; ++i) {
      packets.push_back(*bench.poll());
      bench.pass(Duration::us(1));
    }
    for (std::size_t i = 0; i < packets.size(); ++i) {
      if (i % 4 == 3 && i < 20) continue;
      bench.arrive(packets[i]);
    }
    auto sack = bench.sack(test::RequestorBench::trigger(packets.back()));
    sack.cc_flags = overflow ? wire::kCcFlagOverflow : 0;
    ASSERT_TRUE(bench.take_sack(sack));
    EXPECT_GE(bench.requestor.window().lost(), 5u);
    EXPECT_EQ(bench.counters.lost_overflow, overflow ? 5u : 0u);
    EXPECT_EQ(bench.counters.evs_condemned.sum() > 0, !overflow);
  }
}

}  // namespace
}  // namespace weft::transport
