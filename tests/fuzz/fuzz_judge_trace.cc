// Any text: each line must give a trace record or an error, a record must survive writing and
// reading, and the judge must process all records without a crash.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "judge/judge.h"
#include "judge/trace_text.h"

namespace weft::judge {
namespace {

// Adds the record of this line to `records`. False if the line is no record.
bool read_line(std::string_view line, std::vector<TraceRecord>& records) {
  const auto record = parse_trace_line(line, 1);
  if (!record) {
    WEFT_ASSERT(record.error().message.starts_with("line 1"));
    return false;
  }
  std::string written;
  append_trace_line(*record, written);
  const auto again = parse_trace_line(std::string_view(written).substr(0, written.size() - 1), 1);
  WEFT_ASSERT(again.has_value());
  std::string rewritten;
  append_trace_line(*again, rewritten);
  WEFT_ASSERT(rewritten == written);
  records.push_back(*record);
  return true;
}

void check(std::string_view text) {
  const auto whole = parse_trace_text(text);
  std::vector<TraceRecord> records;
  bool all_good = true;
  while (!text.empty()) {
    const std::size_t size = text.find('\n');
    const std::string_view line = text.substr(0, size);
    text.remove_prefix(size == std::string_view::npos ? text.size() : size + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (!read_line(line, records)) all_good = false;
  }
  WEFT_ASSERT(whole.has_value() == all_good);
  for (const bool lenient : {false, true}) {
    Judge judge({.duplicates = lenient, .errors_expected = lenient, .packets_max = 16});
    judge.read(records);
    WEFT_ASSERT(judge.finish().size() <= judge.complaint_count());
  }
}

}  // namespace
}  // namespace weft::judge

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::judge::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
