#include "conformance/registry.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

namespace weft::conformance {
namespace {

TEST(Registry, IdsAreUniqueAndHaveTheSameForm) {
  std::set<std::string> seen;
  for (const conformance::Test* test : all_tests()) {
    const std::string id = test->id;
    EXPECT_TRUE(seen.insert(id).second) << id << " twice";
    EXPECT_TRUE(id.starts_with("api.") || id.starts_with("wire.")) << id;
    for (const char c : id) {
      EXPECT_TRUE(std::islower(static_cast<unsigned char>(c)) != 0 ||
                  std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ||
                  c == '+')
          << id;
    }
  }
}

TEST(Registry, EveryTestHasAClauseAndALineThatSaysWhatMustBeTrue) {
  for (const conformance::Test* test : all_tests()) {
    EXPECT_GT(std::string(test->clause).size(), 3u) << test->id;
    EXPECT_GT(std::string(test->what).size(), 5u) << test->id;
    EXPECT_NE(test->body, nullptr) << test->id;
  }
}

TEST(Registry, ThereAreTestsOfTheApiAndOfTheWire) {
  EXPECT_GE(all_tests().size(), 120u);
  EXPECT_GE(chosen_tests({.only = {"wire.*"}, .skip = {}}).size(), 40u);
}

TEST(Registry, GlobMatchesAnyCharactersForStarAndOneForQuestionMark) {
  EXPECT_TRUE(matches_glob("wire.sack.mpr", "wire.*"));
  EXPECT_TRUE(matches_glob("wire.sack.mpr", "*"));
  EXPECT_TRUE(matches_glob("wire.sack.mpr", "*sack*"));
  EXPECT_TRUE(matches_glob("wire.sack.mpr", "wire.sac?.mpr"));
  EXPECT_TRUE(matches_glob("aab", "*ab"));
  EXPECT_FALSE(matches_glob("wire.sack.mpr", "wire.sack"));
  EXPECT_FALSE(matches_glob("wire.sack.mpr", "api.*"));
  EXPECT_FALSE(matches_glob("", "?"));
  EXPECT_TRUE(matches_glob("", "*"));
}

TEST(Registry, OnlyAndSkipSelectTests) {
  const auto all = chosen_tests({});
  EXPECT_EQ(all.size(), all_tests().size());
  const auto some = chosen_tests({.only = {"api.cq.*", "api.hint.*"}, .skip = {"*.null"}});
  EXPECT_FALSE(some.empty());
  for (const conformance::Test* test : some) {
    const std::string id = test->id;
    EXPECT_TRUE(id.starts_with("api.cq.") || id.starts_with("api.hint.")) << id;
    EXPECT_FALSE(id.ends_with(".null")) << id;
  }
}

}  // namespace
}  // namespace weft::conformance
