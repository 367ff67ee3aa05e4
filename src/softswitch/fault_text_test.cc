// Every event survives being written and parsed. Invalid text is refused with the invalid word.
#include "softswitch/fault_text.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace weft::softswitch {
namespace {

using fabric::FaultAction;

void expect_same(const fabric::FaultEvent& a, const fabric::FaultEvent& b) {
  EXPECT_EQ(a.action, b.action);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.place, b.place);
  EXPECT_EQ(a.link, b.link);
  EXPECT_EQ(a.percent, b.percent);
  EXPECT_EQ(a.carrier, b.carrier);
  EXPECT_EQ(a.impairment.kind, b.impairment.kind);
  EXPECT_EQ(a.impairment.share_of_2_32, b.impairment.share_of_2_32);
  EXPECT_EQ(a.impairment.burst, b.impairment.burst);
  EXPECT_EQ(a.impairment.delay_max, b.impairment.delay_max);
  EXPECT_EQ(a.impairment.entropies, b.impairment.entropies);
}

TEST(FaultText, AWrittenEventIsParsedBack) {
  Prng prng(3);
  for (int i = 0; i < 500; ++i) {
    fabric::FaultEvent event;
    event.action = static_cast<FaultAction>(prng.below(5));
    const bool impair = event.action == FaultAction::kImpair;
    if (impair || event.action == FaultAction::kHeal)
      event.id = static_cast<std::uint32_t>(prng.next());
    if (event.action == FaultAction::kLinkRate) event.percent = prng.below(101);
    event.link = prng.below(1000);
    event.carrier = prng.below(2) == 0;
    if (impair) {
      event.place = static_cast<fabric::FaultPlace>(prng.below(3));
      event.impairment.kind = static_cast<fabric::ImpairmentKind>(prng.below(8));
      event.impairment.share_of_2_32 = prng.next() >> 32;
      event.impairment.burst = prng.below(100);
      event.impairment.delay_max = Duration::ns(prng.below(1'000'000));
      for (std::uint32_t n = prng.below(4); n > 0; --n)
        event.impairment.entropies.push_back(static_cast<std::uint32_t>(prng.next()));
    }
    const std::string text = to_text(event);
    const auto read = parse_fault_event(text);
    ASSERT_TRUE(read.has_value()) << text << ": " << read.error().message;
    expect_same(event, *read);
  }
}

TEST(FaultText, MissingKeysHaveTheirDefaults) {
  const auto down = parse_fault_event("link-down link=12");
  ASSERT_TRUE(down.has_value());
  EXPECT_TRUE(down->carrier);
  EXPECT_EQ(down->link, 12u);
  EXPECT_FALSE(parse_fault_event("link-down link=12 carrier=0")->carrier);
}

TEST(FaultText, InvalidTextIsRefusedWithTheReason) {
  for (const char* text :
       {"", "link", "pause host=1", "link-down link=", "link-down link=-1", "link-down link=1x",
        "link-down link=4294967295", "link-down link=1 link=2", "link-down port=1", "link-down 12",
        "link-rate link=1 percent=101", "impair kind=unlucky", "impair place=here",
        "impair share=4294967297", "impair evs=1,,2", "impair delay_ps=9999999999999999999",
        "link-down carrier=2"}) {
    EXPECT_FALSE(parse_fault_event(text).has_value()) << text;
  }
  std::string evs = "impair kind=ev-loss evs=1";
  for (std::size_t i = 0; i < kFaultEvsMax; ++i) evs += ",1";
  EXPECT_FALSE(parse_fault_event(evs).has_value());
  EXPECT_FALSE(parse_fault_event(std::string(kFaultTextMax + 1, 'x')).has_value());
}

}  // namespace
}  // namespace weft::softswitch
