#include "judge/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>

#include "base/assert.h"
#include "judge/trace_flags.h"
#include "wire/packet.h"

namespace weft::judge {
namespace {

// In the order of TraceKind.
constexpr std::array<std::string_view, 15> kKindNames = {
    "qp",   "send",     "receive", "post",      "post_recv", "complete", "window", "ev",
    "port", "qp_error", "qp_gone", "host_down", "healed",    "memory",   "end",
};
static_assert(kKindNames.size() == static_cast<std::size_t>(TraceKind::kEnd) + 1);

// --- writing ---

std::string_view kind_name(TraceKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  WEFT_ASSERT(index < kKindNames.size());
  return kKindNames[index];
}

template <typename Number>
void append_field(std::string& out, std::string_view name, Number value, Number left_out = 0) {
  if (value != left_out) fmt::format_to(std::back_inserter(out), ",\"{}\":{}", name, value);
}

void append_header(std::string& out, const TraceRecord& record) {
  if (record.header_size == 0) return;
  out += ",\"header\":\"";
  for (const std::byte b : record.header_bytes()) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[std::to_integer<std::size_t>(b) >> 4];
    out += kDigits[std::to_integer<std::size_t>(b) & 15];
  }
  out += '"';
  const auto packet = wire::parse(record.header_bytes(), {.trimmed = is_trimmed(record)});
  if (packet) fmt::format_to(std::back_inserter(out), ",\"packet\":\"{}\"", to_string(*packet));
}

// --- reading ---

// Reads one flat JSON object whose members are only strings and whole numbers.
class LineParser {
 public:
  LineParser(std::string_view line, std::size_t line_number)
      : line_(line), line_number_(line_number) {}

  Result<TraceRecord> parse() {
    WEFT_CHECK(expect('{'));
    do {
      WEFT_CHECK(member());
    } while (take(','));
    WEFT_CHECK(expect('}'));
    skip_space();
    if (at_ != line_.size()) return error("nothing more after the record");
    if ((fields_seen_ & kRequired) != kRequired) return error("a record with \"at\" and \"kind\"");
    return record_;
  }

 private:
  enum Member : std::size_t {
    kAt,
    kKind,
    kHost,
    kPort,
    kFlags,
    kQpn,
    kPeer,
    kPeerQpn,
    kEv,
    kSize,
    kPsn,
    kId,
    kA,
    kB,
    kC,
    kHeader,
    kPacket,
    kMemberCount,
  };
  static constexpr std::array<std::string_view, kMemberCount> kNames = {
      "at",   "kind", "host", "port", "flags", "qpn", "peer",   "peer_qpn", "ev",
      "size", "psn",  "id",   "a",    "b",     "c",   "header", "packet",
  };
  static constexpr std::uint32_t kRequired = 1u << kAt | 1u << kKind;

  Error error(std::string_view expected) const {
    return {ErrorKind::kInvalid,
            fmt::format("line {}, column {}: expected {}", line_number_, at_ + 1, expected)};
  }

  void skip_space() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip_space();
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  Result<void, Error> expect(char c) {
    if (take(c)) return {};
    return error(fmt::format("'{}'", c));
  }

  // The characters between the quotes; escapes are not decoded.
  Result<std::string_view> string() {
    WEFT_CHECK(expect('"'));
    const std::size_t from = at_;
    while (at_ < line_.size() && line_[at_] != '"') at_ += line_[at_] == '\\' ? 2 : 1;
    if (at_ >= line_.size()) {
      at_ = line_.size();
      return error("the end of a string");
    }
    return line_.substr(from, at_++ - from);
  }

  template <typename Number>
  Result<void, Error> number(Number& out) {
    skip_space();
    const char* const begin = line_.data() + at_;
    const char* const end = line_.data() + line_.size();
    const auto [last, status] = std::from_chars(begin, end, out);
    if (status != std::errc()) {
      const std::string range =
          fmt::format("a whole number from {} to {}", +std::numeric_limits<Number>::min(),
                      +std::numeric_limits<Number>::max());
      return error(range);
    }
    at_ += static_cast<std::size_t>(last - begin);
    return {};
  }

  // `a` and `b` may hold a negative number in two's complement; the text has its sign.
  Result<void, Error> either_sign(std::uint64_t& out) {
    skip_space();
    if (at_ == line_.size() || line_[at_] != '-') return number(out);
    std::int64_t value = 0;
    WEFT_CHECK(number(value));
    out = static_cast<std::uint64_t>(value);
    return {};
  }

  Result<void, Error> time() {
    std::int64_t ps = 0;
    WEFT_CHECK(number(ps));
    record_.at = Time::from_start(Duration::ps(ps));
    return {};
  }

  Result<void, Error> kind() {
    WEFT_TRY(const std::string_view text, string());
    for (std::size_t i = 0; i < kKindNames.size(); ++i) {
      if (text != kKindNames[i]) continue;
      record_.kind = static_cast<TraceKind>(i);
      return {};
    }
    return error("the name of a kind of record before this");
  }

  static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  Result<void, Error> header() {
    WEFT_TRY(const std::string_view hex, string());
    if (hex.size() % 2 != 0 || hex.size() / 2 > record_.header.size()) {
      return error("at most 48 bytes of hex before this");
    }
    for (std::size_t i = 0; i < hex.size() / 2; ++i) {
      const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
      if (high < 0 || low < 0) return error("hex digits only before this");
      record_.header[i] = static_cast<std::byte>(high * 16 + low);
    }
    record_.header_size = static_cast<std::uint8_t>(hex.size() / 2);
    return {};
  }

  Result<void, Error> member() {
    WEFT_TRY(const std::string_view name, string());
    std::size_t which = 0;
    while (which < kMemberCount && kNames[which] != name) ++which;
    if (which == kMemberCount) return error("the name of a field of a record before this");
    if ((fields_seen_ >> which & 1) != 0) return error("each field once");
    fields_seen_ |= 1u << which;
    WEFT_CHECK(expect(':'));
    return value(static_cast<Member>(which));
  }

  Result<void, Error> value(Member which) {
    switch (which) {
      case kAt:
        return time();
      case kKind:
        return kind();
      case kHost:
        return number(record_.host);
      case kPort:
        return number(record_.port);
      case kFlags:
        return number(record_.flags);
      case kQpn:
        return number(record_.qpn);
      case kPeer:
        return number(record_.peer);
      case kPeerQpn:
        return number(record_.peer_qpn);
      case kEv:
        return number(record_.ev);
      case kSize:
        return number(record_.size);
      case kPsn:
        return number(record_.psn);
      case kId:
        return number(record_.id);
      case kA:
        return either_sign(record_.a);
      case kB:
        return either_sign(record_.b);
      case kC:
        return number(record_.c);
      case kHeader:
        return header();
      case kPacket:
        break;
      case kMemberCount:
        break;
    }
    WEFT_CHECK(string());
    return {};
  }

  std::string_view line_;
  std::size_t line_number_;
  std::size_t at_ = 0;
  std::uint32_t fields_seen_ = 0;
  TraceRecord record_;
};

}  // namespace

void append_trace_line(const TraceRecord& record, std::string& out) {
  WEFT_ASSERT(record.header_size <= record.header.size());
  fmt::format_to(std::back_inserter(out), "{{\"at\":{},\"kind\":\"{}\"", record.at.ps(),
                 kind_name(record.kind));
  append_field(out, "host", record.host);
  append_field(out, "port", record.port);
  append_field(out, "flags", record.flags);
  append_field(out, "qpn", record.qpn);
  append_field(out, "peer", record.peer, TraceRecord::kUnknownHost);
  append_field(out, "peer_qpn", record.peer_qpn);
  append_field(out, "ev", record.ev);
  append_field(out, "size", record.size);
  append_field(out, "psn", record.psn);
  append_field(out, "id", record.id);
  append_field(out, "a", record.a);
  if (record.kind == TraceKind::kWindow) {
    append_field(out, "b", static_cast<std::int64_t>(record.b));
  } else {
    append_field(out, "b", record.b);
  }
  append_field(out, "c", record.c);
  append_header(out, record);
  out += "}\n";
}

Result<TraceRecord> parse_trace_line(std::string_view line, std::size_t line_number) {
  if (line.size() > kTraceLineSizeMax) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("line {}: longer than {} characters", line_number, kTraceLineSizeMax)};
  }
  return LineParser(line, line_number).parse();
}

Result<std::vector<TraceRecord>> parse_trace_text(std::string_view text) {
  std::vector<TraceRecord> records;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    WEFT_TRY(const TraceRecord record, parse_trace_line(line, line_number));
    records.push_back(record);
  }
  return records;
}

}  // namespace weft::judge
