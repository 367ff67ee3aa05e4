// Reader: reads one table of a document, key by key, into typed members. A value that does not fit
// is reported with its place. finish() reports keys that no getter asked for. Each parse function
// has one Reader for each table.
//
// A getter leaves `out` at its default if the key is absent. Only the first mistake is reported: a
// person gets one clear line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"
#include "config/names.h"
#include "config/units.h"

namespace weft::config {

// Collects the first mistake that a reader finds.
class Report {
 public:
  explicit Report(std::string_view file_name) : file_name_(file_name) {}
  void fail(Position at, std::string_view what) {
    if (!failed_) message_ = message_at(file_name_, at, what);
    failed_ = true;
  }
  bool failed() const { return failed_; }
  // REQUIRES failed().
  Error error() const { return {ErrorKind::kInvalid, message_}; }

 private:
  std::string file_name_, message_;
  bool failed_ = false;
};

struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint32_t>::max();
};

class Reader {
 public:
  static constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 40;

  // `table` is null if it is absent; then all members keep their defaults. A value of another kind
  // is a mistake. `name` is for messages: "[topology]".
  Reader(Report& report, const Value* table, std::string name);

  bool present() const { return table_ != nullptr; }
  Position at() const { return at_; }
  bool has(std::string_view key) const { return table_ != nullptr && table_->find(key) != nullptr; }

  // Reads a whole number within the range. The range must fit T.
  template <typename T>
  void number(std::string_view key, T& out, Range range = {}) {
    if (const Value* value = take(key)) {
      if (const auto n = whole(*value, key, range)) out = static_cast<T>(*n);
    }
  }
  void number(std::string_view key, std::optional<std::uint32_t>& out) {
    std::uint32_t n = 0;
    number(key, n);
    if (has(key)) out = n;
  }
  void numbers(std::string_view key, std::vector<std::uint32_t>& out);
  void boolean(std::string_view key, bool& out);
  void text(std::string_view key, std::string& out);
  template <typename T>
  void size(std::string_view key, T& out, Range range = {0, kSizeMax}) {
    if (const Value* value = take(key)) {
      if (const auto n = bytes(*value, key, range)) out = static_cast<T>(*n);
    }
  }
  void duration(std::string_view key, Duration& out, Duration min = Duration());
  void duration(std::string_view key, std::optional<Duration>& out);
  void rate(std::string_view key, Rate& out);
  void ppm(std::string_view key, std::uint32_t& out);
  void percent(std::string_view key, std::uint32_t& out, Range range);
  void real(std::string_view key, std::optional<double>& out, double max);

  template <typename E, std::size_t N>
  void choice(std::string_view key, E& out, const config::Name<E> (&names)[N]) {
    const Value* value = take(key);
    if (value == nullptr) return;
    if (const auto found = match(*value, names)) {
      out = *found;
    } else {
      fail(value->at, std::string(key) + described(*value) + one_of(names));
    }
  }
  template <typename E, std::size_t N>
  void choices(std::string_view key, std::vector<E>& out, const config::Name<E> (&names)[N]) {
    const Value* value = take_array(key, "a list of names");
    if (value == nullptr) return;
    for (const Value& item : value->children) {
      if (const auto found = match(item, names)) {
        out.push_back(*found);
      } else {
        fail(item.at, std::string(key) + described(item) + one_of(names));
      }
    }
  }

  // A table, or a list of tables, within this table; null or empty if absent.
  const Value* table(std::string_view key);
  std::span<const Value> tables(std::string_view key);

  // Reports a mistake if the key is absent.
  void require(std::string_view key, std::string_view expected);
  // Reports a mistake if the key is there although `applies` is false: "KEY means nothing here;
  // WHY".
  void only_if(bool applies, std::string_view key, std::string_view why);
  // Reports a mistake that the caller found: at the key if it is there, otherwise at the table.
  void fail_at(std::string_view key, std::string_view what);
  // Reports each key that no getter asked for. To be called last.
  void finish();

 private:
  const Value* take(std::string_view key);
  const Value* take_array(std::string_view key, std::string_view expected);
  std::optional<std::uint64_t> whole(const Value& value, std::string_view key, Range range);
  std::optional<std::uint64_t> bytes(const Value& value, std::string_view key, Range range);
  std::optional<Duration> time(const Value& value, std::string_view key);
  std::optional<std::uint32_t> share(const Value& value, std::string_view key);
  void fail(Position at, std::string_view what) { report_->fail(at, what); }
  // The text by which messages show a wrong value: " = 7" or " is a list".
  static std::string described(const Value& value);

  template <typename E, std::size_t N>
  static std::optional<E> match(const Value& value, const config::Name<E> (&names)[N]) {
    if (value.kind != ValueKind::kString) return std::nullopt;
    return value_named(names, value.text);
  }
  template <typename E, std::size_t N>
  static std::string one_of(const config::Name<E> (&names)[N]) {
    std::string list = "; expected one of ";
    for (std::size_t i = 0; i < N; ++i) {
      list += (i == 0 ? "\"" : ", \"") + std::string(names[i].name) + "\"";
    }
    return list;
  }

  Report* report_;
  const Value* table_;
  Position at_;
  std::string name_;
  std::vector<std::string> known_;
};

// The candidate nearest to `word` by edit distance; empty if none is similar.
std::string_view nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace weft::config
