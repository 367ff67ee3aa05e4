#include "cli/lab_words.h"

#include <gtest/gtest.h>

#include <sstream>

namespace weft::cli {
namespace {

using fabric::LinkId;
using fabric::Topology;

Topology fabric_of_two_tiers() {
  return Topology::make({.shape = fabric::Shape::kTwoTier,
                         .hosts = 4,
                         .planes = 2,
                         .hosts_per_t0 = 2,
                         .t1_count = 3,
                         .host_rate = Rate::gbps(1),
                         .fabric_rate = Rate::gbps(1)})
      .value();
}

class LabWords : public testing::Test {
 protected:
  Result<std::vector<LinkId>> links(const std::string& text,
                                    LinkDirection way = LinkDirection::kBoth) {
    words_.clear();
    std::istringstream in(text);
    for (std::string word; in >> word;) words_.push_back(word);
    rest_ = words_;
    return take_links(topology_, rest_, way);
  }
  Topology topology_ = fabric_of_two_tiers();
  std::vector<std::string> words_;
  std::span<const std::string> rest_;
};

TEST_F(LabWords, EachSelectorGivesItsLinks) {
  using Links = std::vector<LinkId>;
  const Topology& t = topology_;
  EXPECT_EQ(*links("link host 1 plane 1 down"), (Links{t.host_up(1, 1), t.host_down(1, 1)}));
  EXPECT_EQ(rest_.size(), 1u);
  EXPECT_EQ(*links("link host 3", LinkDirection::kUp), (Links{t.host_up(0, 3), t.host_up(1, 3)}));
  EXPECT_EQ(*links("link t0 1 t1 2 plane 0 silent", LinkDirection::kDown),
            (Links{t.t0_down(0, 1, 2)}));
  EXPECT_EQ(links("plane 1")->size(), 8u);
  const auto nics = links("nics loss 1%");
  ASSERT_EQ(nics->size(), 8u);
  for (const LinkId link : *nics) EXPECT_TRUE(t.is_last_hop(link));
}

TEST_F(LabWords, InvalidSelectorIsRefusedWithWhatWasExpected) {
  for (const char* text :
       {"", "links", "link", "link host", "link host 4", "link host -1", "link host x",
        "link host 1 plane 2", "link host 1 plane", "link t0 2 t1 0", "link t0 0 t1 3", "link t0 0",
        "link t0 0 host 1", "link t1 0 t2 0", "plane", "plane 7"}) {
    const auto got = links(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().kind, ErrorKind::kInvalid);
  }
  EXPECT_FALSE(links("nics", LinkDirection::kUp));
}

TEST_F(LabWords, EachEffectGivesItsEvents) {
  const std::vector<LinkId> on{3, 7};
  const auto effect = [&](std::vector<std::string> words,
                          LinkDirection way = LinkDirection::kBoth) {
    return effect_on(on, words, way);
  };
  auto down = effect({"down"}).value();
  ASSERT_EQ(down.events.size(), 2u);
  EXPECT_TRUE(down.events[1].carrier);
  EXPECT_EQ(down.events[1].link, 7u);
  EXPECT_FALSE(effect({"silent"})->events[0].carrier);
  const auto loss = effect({"loss", "50%"}).value();
  EXPECT_EQ(loss.events.back().impairment.share_of_2_32, 1ull << 31);
  EXPECT_EQ(effect({"loss", "0%"}).value().events.back().action, fabric::FaultAction::kHeal);
  const auto rate = effect({"rate", "100Mbps"}).value();
  EXPECT_EQ(rate.slowed, on);
  EXPECT_EQ(rate.rate, Rate::bps(100'000'000));
  EXPECT_FALSE(effect({"down"}, LinkDirection::kUp));
  EXPECT_TRUE(effect({"silent"}, LinkDirection::kUp));
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"up"},
                                                                 {"loss"},
                                                                 {"loss", "x"},
                                                                 {"loss", "101%"},
                                                                 {"rate", "fast"},
                                                                 {"down", "2"}}) {
    EXPECT_FALSE(effect(words)) << (words.empty() ? "" : words[0]);
  }
}

}  // namespace
}  // namespace weft::cli
