// The effect of faults on real packets: links that go down, impairments, slow links.
#include <gtest/gtest.h>

#include "softswitch/live_fabric.h"
#include "softswitch/test_live_fabric.h"

namespace weft::softswitch {
namespace {

using fabric::FaultAction;

TEST(LiveFabric, ALinkThatGoesDownLosesThePacketsOnIt) {
  Bench bench(one_switch(2));
  const fabric::LinkId down = bench.fabric.topology().host_down(0, 1);
  for (int i = 0; i < 10; ++i) bench.send(at_us(1), Bench::spec(0, 1));
  const std::size_t before = bench.receive(at_us(200)).size();
  EXPECT_GT(before, 0u);
  bench.fault(at_us(200), {.action = FaultAction::kLinkDown, .link = down});
  EXPECT_FALSE(bench.fabric.is_up(down));
  EXPECT_TRUE(bench.receive(at_us(10'000)).empty());
  EXPECT_EQ(bench.fabric.counters(down).drops_down, 10 - before);
  bench.fault(at_us(10'000), {.action = FaultAction::kLinkUp, .link = down});
  bench.send(at_us(10'001), Bench::spec(0, 1));
  EXPECT_EQ(bench.receive(at_us(20'000)).size(), 1u);
}

TEST(LiveFabric, ImpairmentsActUntilTheyAreHealed) {
  Bench bench(one_switch(2));
  const fabric::LinkId link = bench.fabric.topology().host_up(0, 0);
  fabric::FaultEvent loss{.action = FaultAction::kImpair, .id = 4, .link = link};
  loss.impairment.share_of_2_32 = 1ull << 31;
  bench.fault(at_us(0), loss);
  const auto send_200 = [&](std::int64_t from) {
    for (int i = 0; i < 200; ++i) bench.send(at_us(from + i * 100), Bench::spec(0, 1));
    return bench.receive(at_us(from + 40'000)).size();
  };
  const std::size_t half = send_200(10);
  EXPECT_NEAR(static_cast<double>(half), 100, 30);
  EXPECT_EQ(bench.fabric.counters(link).drops_fault, 200 - half);
  bench.fault(at_us(50'000), {.action = FaultAction::kHeal, .id = 4});
  EXPECT_EQ(send_200(100'000), 200u);

  fabric::FaultEvent twice{
      .action = FaultAction::kImpair, .id = 5, .place = fabric::FaultPlace::kNicReceive};
  twice.impairment.kind = fabric::ImpairmentKind::kDuplicate;
  twice.impairment.share_of_2_32 = 1ull << 32;
  bench.fault(at_us(200'000), twice);
  EXPECT_EQ(send_200(200'000), 400u);
  bench.fault(at_us(300'000), {.action = FaultAction::kHeal, .id = 5});

  fabric::FaultEvent damage{
      .action = FaultAction::kImpair, .id = 6, .place = fabric::FaultPlace::kAllLinks};
  damage.impairment.kind = fabric::ImpairmentKind::kCorrupt;
  damage.impairment.share_of_2_32 = 1ull << 32;
  bench.fault(at_us(300'000), damage);
  bench.fault(at_us(300'000), {.action = FaultAction::kImpair, .id = 7, .link = link});
  bench.send(at_us(300'000), Bench::spec(0, 1));
  const auto got = bench.receive(at_us(310'000));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(checksum_holds(got[0].packet));

  bench.fault(at_us(400'000), loss);
  bench.fault(at_us(400'000), twice);
  bench.fabric.end_impairments(at_us(400'000));
  EXPECT_EQ(send_200(400'000), 200u) << "all are over at once";
}

TEST(LiveFabric, ASlowLinkTakesLongerAndExtraDelaysAreAdded) {
  Bench bench(one_switch(2));
  const fabric::LinkId link = bench.fabric.topology().host_down(0, 1);
  bench.fault(at_us(0), {.action = FaultAction::kLinkRate, .link = link, .percent = 25});
  bench.fabric.set_extra_delay(link, Duration::ms(3));
  bench.send(at_us(10), Bench::spec(0, 1));
  const auto got = bench.receive(at_us(10'000));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ((got[0].at - at_us(10)).ps(),
            (time_of(1000) * 5 + Duration::us(4) + Duration::ms(3)).ps());
}

TEST(LiveFabric, FaultsThatTheFabricCannotCarryOutAreRefused) {
  Bench bench(one_switch(2));
  EXPECT_FALSE(bench.fabric.apply(at_us(1), {.action = FaultAction::kLinkDown, .link = 4}));
  EXPECT_FALSE(bench.fabric.apply(at_us(1), {.action = FaultAction::kImpair, .link = 4}));
  EXPECT_FALSE(
      bench.fabric.apply(at_us(1), {.action = FaultAction::kLinkRate, .link = 0, .percent = 0}));
  EXPECT_FALSE(bench.fabric.apply(at_us(1), {.action = FaultAction::kPause, .host = 0}));
  for (std::uint32_t i = 0; i < LiveFabric::kImpairmentsMax; ++i)
    EXPECT_TRUE(bench.fabric.apply(at_us(1), {.action = FaultAction::kImpair, .id = i, .link = 0}));
  EXPECT_FALSE(bench.fabric.apply(at_us(1), {.action = FaultAction::kImpair, .link = 0}));
}

}  // namespace
}  // namespace weft::softswitch
