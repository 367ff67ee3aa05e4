#include "config/reader.h"

#include <algorithm>
#include <cmath>

namespace weft::config {
namespace {

std::string between(Range range) {
  return "a whole number from " + std::to_string(range.min) + " to " + std::to_string(range.max);
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, changed});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string_view best;
  if (word.size() > 64) return best;
  // Candidates at a larger distance are other words.
  std::size_t best_distance = word.size() / 3 + 2;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d < best_distance && d < candidate.size()) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

Reader::Reader(Report& report, const Value* table, std::string name)
    : report_(&report), table_(table), name_(std::move(name)) {
  if (table_ == nullptr) return;
  at_ = table_->at;
  if (table_->kind != ValueKind::kTable) {
    fail(table_->at, name_ + " is not a table; expected a line " + name_ + " and keys below it");
    table_ = nullptr;
  }
}

const Value* Reader::take(std::string_view key) {
  known_.emplace_back(key);
  return table_ == nullptr ? nullptr : table_->find(key);
}

std::string Reader::described(const Value& value) {
  switch (value.kind) {
    case ValueKind::kString:
      return " = \"" + value.text + "\" is not known";
    case ValueKind::kInteger:
      return " = " + std::to_string(value.integer) + " does not fit";
    case ValueKind::kReal:
      return " is a fraction";
    case ValueKind::kBool:
      return value.boolean ? " = true does not fit" : " = false does not fit";
    case ValueKind::kDate:
      return " is a date";
    case ValueKind::kArray:
      return " is a list";
    case ValueKind::kTable:
      return " is a table";
  }
  return {};
}

std::optional<std::uint64_t> Reader::whole(const Value& value, std::string_view key, Range range) {
  if (value.kind == ValueKind::kInteger && value.integer >= 0 &&
      static_cast<std::uint64_t>(value.integer) >= range.min &&
      static_cast<std::uint64_t>(value.integer) <= range.max) {
    return static_cast<std::uint64_t>(value.integer);
  }
  const std::string what =
      value.kind == ValueKind::kInteger ? " = " + std::to_string(value.integer) + " is out of range"
      : value.kind == ValueKind::kString ? " = \"" + value.text + "\" is a text"
                                         : described(value);
  fail(value.at, std::string(key) + what + "; expected " + between(range));
  return std::nullopt;
}

const Value* Reader::take_array(std::string_view key, std::string_view expected) {
  const Value* value = take(key);
  if (value == nullptr) return nullptr;
  if (value->kind == ValueKind::kArray) return value;
  fail(value->at, std::string(key) + " is not a list; expected " + std::string(expected) +
                      " in [ ], separated by commas");
  return nullptr;
}

void Reader::numbers(std::string_view key, std::vector<std::uint32_t>& out) {
  const Value* value = take_array(key, "whole numbers");
  if (value == nullptr) return;
  for (const Value& item : value->children) {
    const auto n = whole(item, key, {});
    if (!n) return;
    out.push_back(static_cast<std::uint32_t>(*n));
  }
}

void Reader::boolean(std::string_view key, bool& out) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind == ValueKind::kBool) {
    out = value->boolean;
  } else {
    fail(value->at, std::string(key) + described(*value) + "; expected true or false");
  }
}

void Reader::text(std::string_view key, std::string& out) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind == ValueKind::kString) {
    out = value->text;
  } else {
    fail(value->at, std::string(key) + described(*value) + "; expected a text in quotes");
  }
}

std::optional<std::uint64_t> Reader::bytes(const Value& value, std::string_view key, Range range) {
  std::optional<std::uint64_t> size;
  if (value.kind == ValueKind::kInteger && value.integer >= 0) {
    size = static_cast<std::uint64_t>(value.integer);
  } else if (value.kind == ValueKind::kString) {
    const auto parsed = size_from(value.text);
    if (!parsed) {
      fail(value.at, std::string(key) + " = " + parsed.error());
      return std::nullopt;
    }
    size = *parsed;
  }
  if (!size) {
    fail(value.at,
         std::string(key) + described(value) + "; expected " + std::string(kSizeExpected));
  } else if (*size < range.min || *size > range.max) {
    fail(value.at, std::string(key) + " = " + std::to_string(*size) +
                       " bytes is out of range; expected from " + std::to_string(range.min) +
                       " to " + std::to_string(range.max) + " bytes");
    size.reset();
  }
  return size;
}

std::optional<Duration> Reader::time(const Value& value, std::string_view key) {
  if (value.kind != ValueKind::kString) {
    fail(value.at,
         std::string(key) + described(value) + "; expected " + std::string(kDurationExpected));
    return std::nullopt;
  }
  const auto parsed = duration_from(value.text);
  if (parsed) return *parsed;
  fail(value.at, std::string(key) + " = " + parsed.error());
  return std::nullopt;
}

void Reader::duration(std::string_view key, Duration& out, Duration min) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const auto parsed = time(*value, key);
  if (!parsed) return;
  if (*parsed < min) {
    fail(value->at, std::string(key) + " = \"" + value->text +
                        "\" is too short; expected at least " + std::to_string(min.ns()) + "ns");
  } else {
    out = *parsed;
  }
}
void Reader::duration(std::string_view key, std::optional<Duration>& out) {
  if (const Value* value = take(key)) {
    if (const auto parsed = time(*value, key)) out = *parsed;
  }
}

void Reader::rate(std::string_view key, Rate& out) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind != ValueKind::kString) {
    return fail(value->at,
                std::string(key) + described(*value) + "; expected " + std::string(kRateExpected));
  }
  const auto parsed = rate_from(value->text);
  if (!parsed) return fail(value->at, std::string(key) + " = " + parsed.error());
  out = *parsed;
}

std::optional<std::uint32_t> Reader::share(const Value& value, std::string_view key) {
  if (value.kind == ValueKind::kString) {
    const auto parsed = ppm_from(value.text);
    if (parsed) return *parsed;
    fail(value.at, std::string(key) + " = " + parsed.error());
    return std::nullopt;
  }
  const bool numeric = value.kind == ValueKind::kReal || value.kind == ValueKind::kInteger;
  const double real =
      value.kind == ValueKind::kReal ? value.real : static_cast<double>(value.integer);
  if (numeric && real >= 0 && real <= 1) {
    return static_cast<std::uint32_t>(std::llround(real * 1e6));
  }
  fail(value.at, std::string(key) + (numeric ? " is not between 0 and 1" : described(value)) +
                     "; expected " + std::string(kShareExpected));
  return std::nullopt;
}

void Reader::ppm(std::string_view key, std::uint32_t& out) {
  if (const Value* value = take(key)) {
    if (const auto n = share(*value, key)) out = *n;
  }
}

void Reader::percent(std::string_view key, std::uint32_t& out, Range range) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const auto n = share(*value, key);
  if (!n) return;
  if (*n % 10'000 != 0 || *n / 10'000 < range.min || *n / 10'000 > range.max) {
    fail(value->at, std::string(key) + " is out of range; expected whole per cent from " +
                        std::to_string(range.min) + "% to " + std::to_string(range.max) + "%");
  } else {
    out = *n / 10'000;
  }
}

void Reader::real(std::string_view key, std::optional<double>& out, double max) {
  const Value* value = take(key);
  if (value == nullptr) return;
  double number = -1;
  if (value->kind == ValueKind::kReal) number = value->real;
  if (value->kind == ValueKind::kInteger) number = static_cast<double>(value->integer);
  if (value->kind == ValueKind::kString) {
    const auto parsed = ppm_from(value->text);
    if (parsed) number = static_cast<double>(*parsed) / 1e6;
  }
  if (number >= 0 && number <= max) {
    out = number;
  } else {
    fail(value->at, std::string(key) + " does not fit; expected a number from 0 to " +
                        std::to_string(static_cast<std::uint64_t>(max)));
  }
}

const Value* Reader::table(std::string_view key) { return take(key); }

std::span<const Value> Reader::tables(std::string_view key) {
  const Value* value = take(key);
  if (value == nullptr) return {};
  if (value->kind == ValueKind::kArray) return value->children;
  fail(value->at, std::string(key) + " is not a list of tables; expected [[" + std::string(key) +
                      "]] with double brackets");
  return {};
}

void Reader::require(std::string_view key, std::string_view expected) {
  if (has(key)) return;
  fail(at_, name_ + " lacks " + std::string(key) + "; expected " + std::string(expected));
}

void Reader::only_if(bool applies, std::string_view key, std::string_view why) {
  if (applies || !has(key)) return;
  fail(table_->find(key)->key_at,
       std::string(key) + " means nothing here; it needs " + std::string(why));
}

void Reader::fail_at(std::string_view key, std::string_view what) {
  fail(has(key) ? table_->find(key)->at : at_, what);
}

void Reader::finish() {
  if (table_ == nullptr) return;
  for (const Value& child : table_->children) {
    if (std::find(known_.begin(), known_.end(), child.key) != known_.end()) continue;
    std::string what = child.kind == ValueKind::kTable ? "unknown table \"" : "unknown key \"";
    what += child.key + "\" in " + name_ + "; ";
    if (const std::string_view near = nearest(child.key, known_); !near.empty()) {
      what += "did you mean \"" + std::string(near) + "\"?";
    } else {
      what += "expected one of ";
      for (std::size_t i = 0; i < known_.size(); ++i) what += (i == 0 ? "" : ", ") + known_[i];
    }
    return fail(child.key_at, what);
  }
}

}  // namespace weft::config
