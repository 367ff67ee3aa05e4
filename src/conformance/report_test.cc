#include "conformance/report.h"

#include <gtest/gtest.h>

namespace weft::conformance {
namespace {

constexpr Test kMust{
    .id = "api.cq.sizes", .clause = "mrc.h: mrc_create_cq", .what = "w", .body = nullptr};
constexpr Test kShould{.id = "wire.ip.ect",
                       .clause = "MRC 7.5.5.2",
                       .certainty = Certainty::kReaders,
                       .level = Level::kShould,
                       .what = "data is ECT(0)",
                       .body = nullptr};

std::vector<Outcome> outcomes() {
  return {
      {.test = &kMust, .status = Status::kPass},
      {.test = &kMust, .status = Status::kFail, .expected = "a < b & \"c\"", .got = "\x01\xff>"},
      {.test = &kShould, .status = Status::kFail, .expected = "2", .got = "0"},
      {.test = &kShould, .status = Status::kSkip, .got = "one port"},
      {.test = &kMust, .status = Status::kError, .got = "no address"}};
}

TEST(Report, OutcomesAreCountedByStatusAndLevel) {
  const Count sum = count(outcomes());
  EXPECT_EQ(sum.pass, 1u);
  EXPECT_EQ(sum.fail_must, 1u);
  EXPECT_EQ(sum.fail_should, 1u);
  EXPECT_EQ(sum.skip, 1u);
  EXPECT_EQ(sum.error, 1u);
  EXPECT_FALSE(sum.is_good());
  EXPECT_EQ(summary_of(sum), "1 passed, 1 MUST and 1 SHOULD failed, 1 skipped, 1 error\n");
}

TEST(Report, RunWithOnlyFailedShouldsAndSkipsIsGood) {
  const auto all = outcomes();
  EXPECT_TRUE(count({all[0], all[2], all[3]}).is_good());
  EXPECT_FALSE(count({all[0], all[4]}).is_good());
}

TEST(Report, FailureLineHasClauseExpectedAndGot) {
  EXPECT_EQ(line_of(outcomes()[2], 12),
            "fail   SHOULD  wire.ip.ect   data is ECT(0)\n"
            "               expected 2; got 0 [MRC 7.5.5.2, readers agree]\n");
  EXPECT_EQ(line_of(outcomes()[0], 12), "pass   MUST    api.cq.sizes  w\n");
}

TEST(Report, JunitOfARunThatWasCutShortHasAnError) {
  const Survey survey{.device = "weft0", .gid = ""};
  const std::vector<Outcome> passed{outcomes()[0]};
  EXPECT_EQ(junit("lib.so", survey, passed).find("<error"), std::string::npos);
  const std::string xml = junit("lib.so", survey, passed, "interrupted after 1 of 2 tests");
  EXPECT_NE(xml.find("<error message=\"interrupted after 1 of 2 tests\"/>"), std::string::npos);
  EXPECT_NE(xml.find("<testsuite name=\"run\" tests=\"1\" failures=\"0\" errors=\"1\""),
            std::string::npos);
}

TEST(Report, JunitEscapesTextAndCountsOutcomes) {
  const std::string xml = junit("lib.so", {.device = "weft0", .gid = ""}, outcomes());
  EXPECT_NE(xml.find("expected a &lt; b &amp; &quot;c&quot;; got ??&gt;"), std::string::npos)
      << xml;
  EXPECT_NE(
      xml.find("<testsuite name=\"api.cq\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\""),
      std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<skipped message=\"SHOULD: expected 2; got 0\"/>"), std::string::npos);
}

TEST(Report, VersionNumberIsWrittenWithDots) { EXPECT_EQ(version_text(0x01020003), "1.2.3"); }

}  // namespace
}  // namespace weft::conformance
