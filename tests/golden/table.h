// A table of numbers as text: `|` separates columns, `#` begins a comment line.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "../support/run_file.h"

namespace weft::testing {

inline std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The rows of a table file. A row without exactly `columns` cells is a test failure.
inline std::vector<std::vector<std::string>> cells_of(const std::string& path,
                                                      std::size_t columns) {
  std::istringstream text(text_of(path));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(text, line);) {
    if (trimmed(line).empty() || trimmed(line).front() == '#') continue;
    std::vector<std::string> row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '|');) row.push_back(trimmed(cell));
    EXPECT_EQ(row.size(), columns) << path << ": " << line;
    if (row.size() == columns) rows.push_back(row);
  }
  return rows;
}

}  // namespace weft::testing
