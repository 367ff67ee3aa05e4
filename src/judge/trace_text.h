// The text form of a trace, one JSON object per line. With it a run can be stored, read by people
// and judged later.
//
//   {"at":1234,"kind":"send","peer":1,"ev":7,"size":5,"header":"cb30...","packet":"WRITE_ONLY ..."}
//
// The fields are those of TraceRecord: times in picoseconds, numbers decimal, `header` in hex. A
// field with its default value is left out. `packet` is for people and is not read back. A line
// that is read may have its fields in any order.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/trace.h"

namespace weft::judge {

// Longer lines are refused.
inline constexpr std::size_t kTraceLineSizeMax = 4096;

// Appends the line, with its newline. REQUIRES record.header_size <= 48 and a kind of TraceKind.
void append_trace_line(const TraceRecord& record, std::string& out);

// The record of one line (without its newline), or an error such as "line 12, column 7: ...". Never
// asserts.
Result<TraceRecord> parse_trace_line(std::string_view line, std::size_t line_number);

// The records of a whole text. Empty lines are skipped.
Result<std::vector<TraceRecord>> parse_trace_text(std::string_view text);

}  // namespace weft::judge
