#include "cli/bench_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace weft::cli {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[at];
}

nlohmann::json timeline_json(const base::Timeline& timeline) {
  nlohmann::json gaps = nlohmann::json::array();
  for (const base::Timeline::Gap& gap : timeline.gaps()) {
    gaps.push_back({gap.from.since_start().to_us() * 1e-6, gap.length.to_us() * 1e-3});
  }
  return {{"start_s", timeline.start().since_start().to_us() * 1e-6},
          {"bytes", timeline.bins()},
          {"gaps", gaps}};
}

}  // namespace

void show_header(const TableStyle& style) {
  if (style.json) return;
  if (style.latency) {
    fmt::print("{:>11} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "#bytes", "iterations",
               "min us", "typical", "average", "p99", "p99.9", "max");
  } else {
    fmt::print("{:>11} {:>10} {:>12} {:>12} {:>14}\n", "#bytes", "iterations", "Gb/s", "MB/s",
               "M messages/s");
  }
}

nlohmann::json show_bandwidth(const TableStyle& style, std::uint64_t size, const Bandwidth& b) {
  const double ways = style.bidirectional ? 2 : 1;
  if (!style.json) {
    fmt::print("{:>11} {:>10} {:>12.3f} {:>12.1f} {:>14.4f}\n", size, b.messages, b.gbps() * ways,
               b.gbps() * ways * 125, b.mpps() * ways);
  }
  return {{"bytes", size},
          {"iterations", b.messages},
          {"gbps", b.gbps() * ways},
          {"messages_per_s", b.mpps() * ways * 1e6},
          {"longest_pause_us", b.longest_pause_us},
          {"timeline", b.timeline ? timeline_json(*b.timeline) : nlohmann::json()}};
}

nlohmann::json show_latency(const TableStyle& style, std::uint64_t size, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const double average =
      std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
  const double p50 = percentile(us, 0.5), p99 = percentile(us, 0.99), p999 = percentile(us, 0.999);
  if (!style.json) {
    fmt::print("{:>11} {:>10} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}\n", size,
               us.size(), us.front(), p50, average, p99, p999, us.back());
  }
  return {{"bytes", size},   {"iterations", us.size()}, {"min_us", us.front()},
          {"p50_us", p50},   {"mean_us", average},      {"p99_us", p99},
          {"p999_us", p999}, {"max_us", us.back()}};
}

}  // namespace weft::cli
