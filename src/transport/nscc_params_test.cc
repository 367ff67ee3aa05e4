// Parameters derived from a rate and an RTT, and the bounds that hold under any input.
#include <gtest/gtest.h>

#include "base/prng.h"
#include "transport/nscc.h"

namespace weft::transport {
namespace {

constexpr std::uint32_t kMtu = 4096;
constexpr std::int64_t kPacket = kMtu + 92;
constexpr Duration kRtt = Duration::us(12);

struct Case {
  std::uint64_t gbps;
  std::int64_t rtt_us;
  bool trimming;
};
NsccParams derive(const Case& c) {
  NsccConfig config;
  config.rate = Rate::gbps(c.gbps);
  config.base_rtt = Duration::us(c.rtt_us);
  config.trimming = c.trimming;
  return NsccParams::derive(config, kMtu, kNicRules);
}
Time at(Duration d) { return Time::from_start(d); }

// The specification's worked values, within 1/1024. Where b is held at 1 the gain is 4 a MTU.
TEST(NsccParams, DerivedValuesMatchTheSpecificationsTable) {
  struct Row {
    Case c;
    std::int64_t window_max, target_ns, gain, fair_increase, eta, gate;
    double fast;
  };
  const Row rows[] = {
      {{800, 12, true}, 1'800'000, 9'000, 98'304, 163'840, 4'915, 225'000, 2.0},
      {{400, 10, true}, 750'000, 7'500, 34'133, 68'267, 2'048, 93'750, 0.833},
      {{100, 12, true}, 225'000, 9'000, 12'288, 20'480, 614, 28'125, 0.25},
      {{100, 20, false},
       375'000,
       20'000,
       27'307,
       34'133,
       1'024,
       46'875,
       0.417},  // b = 1.67: held at 1
      {{10, 100, false},
       187'500,
       100'000,
       13'653,
       17'067,
       512,
       23'437,
       0.208},  // b = 8.33: held at 1
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.c.gbps << " Gb/s, " << row.c.rtt_us << " us");
    const NsccParams p = derive(row.c);
    const auto near = [](std::int64_t value) { return static_cast<double>(value) / 400 + 1; };
    EXPECT_EQ(p.window_max, row.window_max);
    EXPECT_EQ(p.window_initial, row.window_max);
    EXPECT_EQ(p.target.ns(), row.target_ns);
    EXPECT_NEAR(static_cast<double>(p.gain), static_cast<double>(row.gain), near(row.gain));
    EXPECT_NEAR(static_cast<double>(p.fair_increase), static_cast<double>(row.fair_increase),
                near(row.fair_increase));
    EXPECT_NEAR(static_cast<double>(p.eta), static_cast<double>(row.eta), near(row.eta));
    EXPECT_NEAR(static_cast<double>(p.fast_q10) / 1024, row.fast, 0.005);
    EXPECT_EQ(p.window_max >> p.qa_gate, row.gate);
    EXPECT_EQ(p.adjust_bytes, 8 * kMtu);
    EXPECT_EQ(p.qa_threshold.ns(), row.c.trimming ? 0 : 4 * row.target_ns);
    EXPECT_EQ(p.window_min, kPacket);
  }
}

TEST(NsccParams, ConfiguredValuesOverrideDerivedOnes) {
  NsccConfig config;
  config.rate = Rate::gbps(100);
  config.base_rtt = kRtt;
  config.cwnd_bytes_max = 500'000;
  config.cwnd_bytes_initial = 50'000;
  config.target_delay = Duration::us(3);
  config.qa_threshold = Duration::us(40);
  const NsccParams p = NsccParams::derive(config, kMtu, kNicRules);
  EXPECT_EQ(p.window_max, 500'000);
  EXPECT_EQ(p.window_initial, 50'000);
  EXPECT_EQ(p.target, Duration::us(3));
  EXPECT_EQ(p.qa_threshold, Duration::us(40));
  // The window holds two packets, however small the configured maximum.
  config.cwnd_bytes_max = 1;
  EXPECT_EQ(NsccParams::derive(config, kMtu, kNicRules).window_max, 2 * kPacket);
}

TEST(Nscc, WindowNeverChangesWhenDisabled) {
  NsccConfig config;
  config.enabled = false;
  config.rate = Rate::gbps(100);
  config.base_rtt = kRtt;
  const NsccParams params = NsccParams::derive(config, kMtu, kNicRules);
  Nscc nscc(params, Time());
  nscc.on_send(50'000);
  nscc.on_trim(Time(), {.size = kPacket});
  nscc.on_loss(Time(), kPacket);
  nscc.on_sack(
      at(kRtt),
      {.newly = kPacket, .marked = true, .rtt_valid = true, .rtt = kRtt * 9, .penalty = 100});
  EXPECT_EQ(nscc.window(), params.window_max);
  EXPECT_EQ(nscc.inflight(), 50'000 - 3 * kPacket);
}

TEST(Nscc, WindowStaysBetweenItsBoundsUnderAnyInput) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    const NsccParams params = derive({100, 12, prng.below(2) == 0});
    Time now = at(Duration::ms(1));
    Nscc nscc(params, now);
    for (int i = 0; i < 5000; ++i) {
      now += Duration::ns(prng.below(20'000));
      const std::int64_t size = 1 + prng.below(kPacket);
      switch (prng.below(6)) {
        case 0:
          nscc.on_trim(now, {.size = size,
                             .sent_at = now - Duration::us(prng.below(30)),
                             .draw = prng.below(0x1'0000)});
          break;
        case 1:
          nscc.on_loss(now, size);
          break;
        case 2:
          nscc.on_send(size);
          break;
        default:
          nscc.on_sack(
              now, {.newly = static_cast<std::int64_t>(prng.below(1 + prng.below(1'000'000))),
                    .marked = prng.below(2) == 0,
                    .rtt_valid = prng.below(4) != 0,
                    .full_size = prng.below(4) == 0,
                    .rtt = Duration::ns(prng.below(100'000)),
                    .penalty = static_cast<std::uint8_t>(prng.below(8) == 0 ? prng.below(128) : 0),
                    .restore = prng.below(4) == 0});
      }
      ASSERT_GE(nscc.window(), params.window_min);
      ASSERT_LE(nscc.window(), params.window_max);
      ASSERT_LE(nscc.paced_until(), now + kRtt * 12);
      if (prng.below(100) == 0) nscc.settle();
    }
  }
}

}  // namespace
}  // namespace weft::transport
