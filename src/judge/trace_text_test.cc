#include "judge/trace_text.h"

#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

std::string text_of(const std::vector<TraceRecord>& records) {
  std::string text;
  for (const TraceRecord& record : records) append_trace_line(record, text);
  return text;
}

std::string error_of(std::string_view line) {
  const auto result = parse_trace_line(line, 12);
  return result ? "" : result.error().message;
}

TEST(TraceText, AParsedTraceEqualsTheWrittenOneAndGivesTheSameComplaints) {
  TraceBuilder run;
  run.post_recv(3);
  run.transfer({.id = 1, .length = 5000});
  run.transfer({.id = 2, .with_immediate = true, .immediate = 7});
  run.window(-255);
  run.end({{.id = 1, .length = 5000}});
  const std::string text = text_of(run.records());
  const auto parsed = parse_trace_text(text);
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->size(), run.records().size());
  EXPECT_EQ(text_of(*parsed), text);

  Judge judge;
  judge.read(*parsed);
  const std::vector<Complaint> again = judge.finish();
  const std::vector<Complaint> before = run.judge();
  ASSERT_FALSE(before.empty());
  ASSERT_EQ(again.size(), before.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(to_string(again[i]), to_string(before[i]));
  }
}

TEST(TraceText, LinesHaveTheExpectedText) {
  TraceBuilder run;
  std::string line;
  append_trace_line(run.records()[0], line);
  EXPECT_EQ(line,
            "{\"at\":1000,\"kind\":\"qp\",\"qpn\":17,\"peer\":1,\"peer_qpn\":34,\"ev\":77,"
            "\"psn\":16777214,\"a\":128,\"b\":2,\"c\":1024}\n");
  run.window(-255);
  line.clear();
  append_trace_line(run.records().back(), line);
  EXPECT_EQ(line, "{\"at\":4000,\"kind\":\"window\",\"qpn\":17,\"a\":1048576,\"b\":-255}\n");
  run.post({.id = 1});
  line.clear();
  append_trace_line(run.send(0), line);
  EXPECT_NE(line.find("\"packet\":\"WRITE_ONLY qp=0x000022 psn=16777214"), std::string::npos)
      << line;
}

TEST(TraceText, FieldsMayComeInAnyOrderWithSpaces) {
  const auto record = parse_trace_line(
      " { \"packet\" : \"a \\\"b\\\\\" , \"kind\":\"ev\", \"a\": 3 , \"at\":-5 }\r", 1);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->kind, TraceKind::kEv);
  EXPECT_EQ(record->a, 3u);
  EXPECT_EQ(record->at.ps(), -5);
  EXPECT_EQ(record->peer, TraceRecord::kUnknownHost);
}

TEST(TraceText, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of(""), "line 12, column 1: expected '{'");
  EXPECT_EQ(error_of("{}"), "line 12, column 2: expected '\"'");
  EXPECT_EQ(error_of("{\"at\":1}"),
            "line 12, column 9: expected a record with \"at\" and \"kind\"");
  EXPECT_EQ(error_of("{\"at\":1,\"kind\":\"end\"} x"),
            "line 12, column 23: expected nothing more after the record");
  EXPECT_EQ(error_of("{\"at\":1,\"at\":1}"), "line 12, column 13: expected each field once");
  EXPECT_EQ(error_of("{\"port\":256}"), "line 12, column 9: expected a whole number from 0 to 255");
  EXPECT_EQ(error_of("{\"qpn\":-1}"),
            "line 12, column 8: expected a whole number from 0 to 4294967295");
  EXPECT_EQ(error_of("{\"kind\":\"nothing\"}"),
            "line 12, column 18: expected the name of a kind of record before this");
  EXPECT_EQ(error_of("{\"colour\":1}"),
            "line 12, column 10: expected the name of a field of a record before this");
  EXPECT_EQ(error_of("{\"header\":\"abc\"}"),
            "line 12, column 16: expected at most 48 bytes of hex before this");
  EXPECT_EQ(error_of("{\"header\":\"" + std::string(98, 'a') + "\"}"),
            "line 12, column 111: expected at most 48 bytes of hex before this");
  EXPECT_EQ(error_of("{\"header\":\"gg\"}"),
            "line 12, column 15: expected hex digits only before this");
  EXPECT_EQ(error_of("{\"packet\":\"\\"), "line 12, column 13: expected the end of a string");
  EXPECT_EQ(error_of(std::string(5000, ' ')), "line 12: longer than 4096 characters");
}

TEST(TraceText, ErrorsCountLinesIncludingEmptyOnes) {
  const auto parsed = parse_trace_text("{\"at\":1,\"kind\":\"end\"}\n\n  \n{\"at\":1}\n");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().message.substr(0, 7), "line 4,");
  EXPECT_TRUE(parse_trace_text("").has_value());
}

}  // namespace
}  // namespace weft::judge
