#include "fabric/fault.h"

#include <gtest/gtest.h>

#include <set>

#include "fabric/fault_words.h"

namespace weft::fabric {
namespace {

TEST(Fault, EveryImpairmentAndPlaceHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (int kind = 0; kind <= static_cast<int>(ImpairmentKind::kFirstNak); ++kind) {
    const std::string_view word = word_of(static_cast<ImpairmentKind>(kind));
    EXPECT_FALSE(word.empty()) << kind;
    EXPECT_TRUE(words.insert(word).second) << word;
  }
  for (int place = 0; place <= static_cast<int>(FaultPlace::kNicReceive); ++place) {
    const std::string_view word = word_of(static_cast<FaultPlace>(place));
    EXPECT_FALSE(word.empty()) << place;
    EXPECT_TRUE(words.insert(word).second) << word;
  }
}

TEST(Fault, EveryActionOnALinkHasAWord) {
  for (int i = 0; i <= static_cast<int>(FaultAction::kCrash); ++i) {
    const auto action = static_cast<FaultAction>(i);
    EXPECT_EQ(word_of(action).empty(), is_of_host(action)) << i;
  }
}

TEST(Fault, OnlyAnImpairmentOfOneLinkNamesALink) {
  EXPECT_TRUE(names_link({.action = FaultAction::kImpair, .place = FaultPlace::kLink}));
  EXPECT_FALSE(names_link({.action = FaultAction::kImpair, .place = FaultPlace::kAllLinks}));
  EXPECT_FALSE(names_link({.action = FaultAction::kImpair, .place = FaultPlace::kNicReceive}));
  EXPECT_FALSE(names_link({.action = FaultAction::kHeal, .place = FaultPlace::kLink}));
  EXPECT_TRUE(names_link({.action = FaultAction::kLinkUp, .place = FaultPlace::kAllLinks}));
}

TEST(Fault, ASlowedRateIsItsShareButAtLeastAMegabit) {
  EXPECT_EQ(slowed(Rate::gbps(100), 25).bits_per_second(), 25'000'000'000u);
  EXPECT_EQ(slowed(Rate::bps(10'000'000), 5).bits_per_second(), 1'000'000u);
}

}  // namespace
}  // namespace weft::fabric
