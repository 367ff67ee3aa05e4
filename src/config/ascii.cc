#include "config/ascii.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace weft::config {
namespace {

// The part of the TOML grammar that the scan is in. Only some parts allow escapes.
enum class Within { kPlain, kComment, kBasic, kLiteral, kBasicLines, kLiteralLines };

bool is_lines(Within within) {
  return within == Within::kBasicLines || within == Within::kLiteralLines;
}
bool has_escapes(Within within) {
  return within == Within::kBasic || within == Within::kBasicLines;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t size = 0;  // 0: not UTF-8
};

CodePoint decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
  if (size == 0 || lead > 0xf4 || text.size() < size) return {};
  std::uint32_t value = lead & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {};
    value = value << 6 | (byte & 0x3f);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kLeast[size] || value > 0x10ffff || surrogate) return {};
  return {value, size};
}

std::string escaped(std::uint32_t value) {
  std::array<char, 12> text;
  std::snprintf(text.data(), text.size(), "\\U%08x", value);
  return text.data();
}

class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  Result<std::string, TextMistake> run() {
    while (i_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[i_]);
      if (byte >= 0x80) {
        if (const char* mistake = take_other()) return TextMistake{at_, mistake};
      } else if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f) {
        return TextMistake{at_, "a control character; expected text"};
      } else {
        take_ascii();
      }
    }
    return std::move(out_);
  }

 private:
  // Converts a character outside ASCII. Returns the mistake if it is not allowed there, otherwise
  // null.
  const char* take_other() {
    const CodePoint point = decode(text_.substr(i_));
    if (point.size == 0) return "bytes that are not UTF-8; expected text";
    if (within_ == Within::kComment) {
      out_ += '?';
    } else if (has_escapes(within_)) {
      out_ += escaped(point.value);
    } else if (within_ == Within::kPlain) {
      return "a character outside ASCII; expected it only in quoted texts and comments";
    } else {
      return "a character outside ASCII in single quotes; expected it only in double quotes";
    }
    i_ += point.size;
    ++at_.column;
    return nullptr;
  }

  void take_ascii() {
    const char c = text_[i_];
    if (within_ == Within::kPlain) {
      if (c == '#') within_ = Within::kComment;
      if (c == '"') return open(Within::kBasic, Within::kBasicLines);
      if (c == '\'') return open(Within::kLiteral, Within::kLiteralLines);
    } else if (c == '\n') {
      if (!is_lines(within_)) within_ = Within::kPlain;
    } else if (has_escapes(within_) && c == '\\') {
      copy(1);  // skip the escaped character: an escaped quote does not end the string
      if (i_ < text_.size() && (text_[i_] == '"' || text_[i_] == '\\')) copy(1);
      return;
    } else if (within_ != Within::kComment && c == quote()) {
      return close();
    }
    copy(1);
  }

  char quote() const { return has_escapes(within_) ? '"' : '\''; }

  std::size_t run_of(char c) const {
    std::size_t count = 0;
    while (i_ + count < text_.size() && text_[i_ + count] == c) ++count;
    return count;
  }

  void open(Within line, Within lines) {
    const bool three = run_of(text_[i_]) >= 3;
    within_ = three ? lines : line;
    copy(three ? 3 : 1);
  }

  // Handles quotes in a multi-line string. Three quotes close it; up to two quotes before those
  // belong to the string.
  void close() {
    const std::size_t quotes = run_of(quote());
    if (!is_lines(within_)) {
      within_ = Within::kPlain;
      return copy(1);
    }
    if (quotes >= 3) within_ = Within::kPlain;
    copy(std::min<std::size_t>(quotes, 5));
  }

  void copy(std::size_t count) {
    for (; count > 0; --count) {
      const char c = text_[i_++];
      out_ += c;
      ++at_.column;
      if (c == '\n') at_ = {at_.line + 1, 1};
    }
  }

  std::string_view text_;
  std::size_t i_ = 0;
  Position at_;
  Within within_ = Within::kPlain;
  std::string out_;
};

}  // namespace

Result<std::string, TextMistake> to_ascii(std::string_view toml) { return Scan(toml).run(); }

}  // namespace weft::config
