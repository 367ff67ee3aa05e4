#include "base/counters.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

Counter per_plane(std::uint8_t plane, std::uint64_t value) {
  return {.name = "transport.retransmits",
          .unit = "packets",
          .value = value,
          .labels = {.plane = plane}};
}
Counter per_reason(std::string_view reason, std::uint64_t value) {
  return {
      .name = "transport.drop", .unit = "packets", .value = value, .labels = {.reason = reason}};
}

CounterTable sample() {
  return {{"transport.timeouts", "events", 7},
          per_plane(0, 10),
          per_plane(1, 20),
          per_reason("stale", 3),
          per_reason("forged", 4)};
}

TEST(Counters, TheValueOfANameIsTheSumOverItsLabels) {
  const CounterTable table = sample();
  EXPECT_EQ(value_of(table, "transport.timeouts"), 7u);
  EXPECT_EQ(value_of(table, "transport.retransmits"), 30u);
  EXPECT_EQ(value_of(table, "transport.drop"), 7u);
  EXPECT_EQ(value_of(table, "transport.drop_stale"), 3u);
  EXPECT_EQ(value_of(table, "transport.drop_forged"), 4u);
  for (const char* unknown : {"", "transport", "transport.drop_", "transport.drop_sta",
                              "transport.dropstale", "transport.timeouts_", "stale"}) {
    EXPECT_FALSE(has_counter(table, unknown)) << unknown;
    EXPECT_EQ(value_of(table, unknown), 0u) << unknown;
  }
  EXPECT_TRUE(has_counter(table, "transport.drop_stale"));
}

TEST(Counters, ANameIsWrittenWithItsReasonAndThenItsLabels) {
  EXPECT_EQ(text_of(sample()[0]), "transport.timeouts");
  EXPECT_EQ(text_of(sample()[1]), "transport.retransmits{plane=0}");
  EXPECT_EQ(text_of(sample()[3]), "transport.drop_stale");
  Counter all = per_reason("stale", 0);
  all.labels.plane = 3;
  all.labels.peer = PeerLabel{.ip = base::ipv4(10, 0, 0, 1), .process = 2};
  all.labels.qp = 17;
  EXPECT_EQ(text_of(all), "transport.drop_stale{plane=3,peer=10.0.0.1#2,qp=17}");
  all.labels = {.peer = PeerLabel{.ip = {.high = 0xfd00ull << 48, .low = 1}}};
  EXPECT_EQ(text_of(all), "transport.drop{peer=fd00::1}");
  all.labels = {.peer = kOtherPeers};
  EXPECT_EQ(text_of(all), "transport.drop{peer=other}");
}

TEST(Counters, RowsAreSumsFollowedByTheCountersThatAddUpToThem) {
  std::vector<std::pair<std::string, std::uint64_t>> rows;
  for (const CounterRow& row : rows_of(sample())) rows.emplace_back(row.name, row.value);
  EXPECT_EQ(rows, (std::vector<std::pair<std::string, std::uint64_t>>{
                      {"transport.timeouts", 7},
                      {"transport.retransmits", 30},
                      {"transport.retransmits{plane=0}", 10},
                      {"transport.retransmits{plane=1}", 20},
                      {"transport.drop_stale", 3},
                      {"transport.drop_forged", 4},
                  }));
}

TEST(Counters, ASingleCounterGivesOneRow) {
  const auto rows = rows_of({per_plane(0, 5)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "transport.retransmits");
  EXPECT_EQ(rows[0].value, 5u);
}

TEST(Counters, EachExistingPlaneHasOneCounter) {
  PerPlane counts;
  for (std::uint8_t plane = 0; plane < PerPlane::kPlanesMax; ++plane) counts[plane] = plane + 1;
  EXPECT_EQ(counts.sum(), 36u);
  CounterTable table;
  add_per_plane({.name = "net.packets_sent", .unit = "packets"}, counts, 3, table);
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(text_of(table[2]), "net.packets_sent{plane=2}");
  EXPECT_EQ(value_of(table, "net.packets_sent"), 6u);
}

TEST(Counters, TablesOfTheSameLayoutAddUp) {
  CounterTable sum;
  for (int i = 0; i < 3; ++i) add_values(sample(), sum);
  ASSERT_EQ(sum.size(), sample().size());
  EXPECT_EQ(sum[2].labels, sample()[2].labels);
  EXPECT_EQ(sum[2].value, 60u);
  EXPECT_EQ(value_of(sum, "transport.drop"), 21u);
}

TEST(CountersDeathTest, TablesOfDifferentLayoutsDoNotAddUp) {
  CounterTable sum = sample();
  CounterTable other = sample();
  other[1].labels.plane = 5;
  EXPECT_DEATH(add_values(other, sum), "assertion failed");
  other.pop_back();
  EXPECT_DEATH(add_values(other, sum), "assertion failed");
}

}  // namespace
}  // namespace weft
