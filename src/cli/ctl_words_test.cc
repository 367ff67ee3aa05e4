#include "cli/ctl_words.h"

#include <gtest/gtest.h>

namespace weft::cli {
namespace {

TEST(CtlWords, EvTextHasBytesAndPort) {
  const auto ev = ev_from("f3b04256@1");
  ASSERT_TRUE(ev);
  EXPECT_EQ(fabric::ev_first32(ev->value), 0xf3b0'4256u);
  EXPECT_EQ(ev->port, 1);
  EXPECT_EQ(text_of(*ev), "f3b04256@1");
  EXPECT_EQ(*ev_from("0xF3B0:4256@1"), *ev);
  EXPECT_EQ(text_of(*ev_from("a4@8")), "a4000000@8");
  EXPECT_EQ(text_of(control::CtlEv()), "-");
  const std::string longest(64, 'f');
  EXPECT_EQ(text_of(*ev_from(longest + "@2")), longest + "@2");
  for (const std::string& wrong : {std::string("f3b04256"), std::string("f3b@1"), std::string("@1"),
                                   std::string("00@0"), std::string("00@9"), std::string("0g@1"),
                                   std::string("00@1x"), longest + "00@1", std::string("")}) {
    EXPECT_FALSE(ev_from(wrong)) << wrong;
  }
}

TEST(CtlWords, ValidFieldsAndWidthsAreReadAndInvalidOnesRefused) {
  const fabric::EvField field{.width = 16, .init_val = 0x100, .min = 1, .max = 15, .mask = 0xf};
  ASSERT_TRUE(field_from("16:0x100:1:15:0xf"));
  EXPECT_EQ(*field_from("16:0x100:1:15:0xf"), field);
  EXPECT_EQ(*field_from(text_of(field)), field);
  for (const char* wrong : {"16:0:0:0", "16:0:0:0:0:0", "a:0:0:0:0", "16:-1:0:0:0", ""}) {
    EXPECT_FALSE(field_from(wrong)) << wrong;
  }
  EXPECT_EQ(*widths_from("32,16"), (std::vector<std::uint32_t>{32, 16}));
  EXPECT_FALSE(widths_from("32,"));
}

TEST(CtlWords, EventMaskIsAListOfNames) {
  for (std::uint32_t mask = 0; mask < 4; ++mask) {
    EXPECT_EQ(*event_mask_from(event_mask_text(mask)), mask);
  }
  EXPECT_FALSE(event_mask_from("bad"));
}

TEST(CtlWords, NsccParametersAreReadByName) {
  control::NsccSettings out;
  for (const char* word : {"gamma=0.5", "max_cwnd=100", "qa_gate=4", "disable_qa=1"}) {
    EXPECT_TRUE(set_nscc(word, out)) << word;
  }
  EXPECT_EQ(out, (control::NsccSettings{
                     .disable_qa = true, .gamma = 0.5f, .cwnd_bytes_max = 100, .qa_gate = 4}));
  for (const char* word :
       {"gamma", "gamma=", "gamma=x", "max_cwnd=1.5", "qa_gate=300", "alpha=1"}) {
    EXPECT_FALSE(set_nscc(word, out)) << word;
  }
}

}  // namespace
}  // namespace weft::cli
