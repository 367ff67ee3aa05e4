// For tests: invariants of every counter table.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/counters.h"

namespace weft {

inline void expect_well_formed(const CounterTable& table) {
  EXPECT_FALSE(table.empty());
  std::set<std::string> texts;
  for (const Counter& counter : table) {
    const std::string text = text_of(counter);
    EXPECT_TRUE(texts.insert(text).second) << text << " occurs twice";
    EXPECT_FALSE(counter.unit.empty()) << text;
    EXPECT_NE(counter.name.find('.'), std::string_view::npos) << text << " names no layer";
    const std::string words = std::string(counter.name) + std::string(counter.labels.reason);
    EXPECT_EQ(words.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_."), std::string::npos)
        << text;
    EXPECT_LT(counter.labels.plane.value_or(0), 8) << text;
    for (const Counter& other : table) {
      if (other.name != counter.name) continue;
      EXPECT_EQ(other.kind, counter.kind) << text;
      EXPECT_EQ(other.unit, counter.unit) << text;
      EXPECT_EQ(other.labels.plane.has_value(), counter.labels.plane.has_value()) << text;
      EXPECT_EQ(other.labels.peer.has_value(), counter.labels.peer.has_value()) << text;
      EXPECT_EQ(other.labels.qp.has_value(), counter.labels.qp.has_value()) << text;
      EXPECT_EQ(other.labels.reason.empty(), counter.labels.reason.empty()) << text;
    }
  }
  // No name with its reason equals the name of another counter.
  std::set<std::string> names;
  for (const CounterRow& row : rows_of(table))
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " occurs twice";
}

// `before` and `after` are snapshots of the same table.
inline void expect_no_count_fell(const CounterTable& before, const CounterTable& after) {
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(text_of(before[i]), text_of(after[i]));
    if (before[i].kind == CounterKind::kCount) {
      EXPECT_LE(before[i].value, after[i].value) << text_of(before[i]);
    }
  }
}

}  // namespace weft
