// Prints the measurements of `weft bench write`: as rows of a table, or later as one JSON object.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "cli/bench_write.h"

namespace weft::cli {

struct TableStyle {
  bool json = false;  // rows are returned but not printed
  bool latency = false, bidirectional = false;
};

void show_header(const TableStyle& style);
// Both return the row as JSON. show_latency() REQUIRES that `us` is not empty.
nlohmann::json show_bandwidth(const TableStyle& style, std::uint64_t size, const Bandwidth& b);
nlohmann::json show_latency(const TableStyle& style, std::uint64_t size, std::vector<double> us);

}  // namespace weft::cli
