#include "config/ascii.h"

#include <gtest/gtest.h>

namespace weft::config {
namespace {

TEST(Ascii, AsciiTextIsUnchanged) {
  const std::string text =
      "a = \"x\\\"y\" # it's\nb = '\\'\nc = \"\"\"l\n\"m\"\"\"\"\nd = '''n\n'''\n\te = \"\"\r\n";
  EXPECT_EQ(*to_ascii(text), text);
}

TEST(Ascii, OtherCharactersAreEscapedInStringsAndReplacedInComments) {
  EXPECT_EQ(*to_ascii("a = \"8\xc3\x97 \xf0\x9f\x98\x80\"  # \xc2\xb5s\n"),
            "a = \"8\\U000000d7 \\U0001f600\"  # ?s\n");
  EXPECT_EQ(*to_ascii("a = \"\"\"\n\xc3\x97\"\"\"\n"), "a = \"\"\"\n\\U000000d7\"\"\"\n");
  EXPECT_EQ(*to_ascii("a = \"\\\\\" # \xc2\xb5\n"), "a = \"\\\\\" # ?\n") << "the string ended";
  EXPECT_EQ(*to_ascii("a = \"\\\"\xc2\xb5\"\n"), "a = \"\\\"\\U000000b5\"\n") << "it did not";
}

TEST(Ascii, MistakesNameLineAndColumn) {
  const auto mistake = [](std::string_view text) {
    const auto result = to_ascii(text);
    EXPECT_FALSE(result);
    return std::to_string(result.error().at.line) + ":" + std::to_string(result.error().at.column) +
           ": " + result.error().what;
  };
  EXPECT_EQ(mistake("a = 1\nb = 5\xc2\xb5s\n"),
            "2:6: a character outside ASCII; expected it only in quoted texts and comments");
  EXPECT_EQ(mistake("a = '\xc3\x97'\n"),
            "1:6: a character outside ASCII in single quotes; expected it only in double quotes");
  EXPECT_EQ(mistake("a = \"\xc3(\"\n"), "1:6: bytes that are not UTF-8; expected text");
  EXPECT_EQ(mistake("# \xed\xa0\x80\n"), "1:3: bytes that are not UTF-8; expected text")
      << "surrogate";
  EXPECT_EQ(mistake("# \xc0\x80\n"), "1:3: bytes that are not UTF-8; expected text") << "overlong";
  EXPECT_EQ(mistake("a = \"\x01\"\n"), "1:6: a control character; expected text");
}

}  // namespace
}  // namespace weft::config
