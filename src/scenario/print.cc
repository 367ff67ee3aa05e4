// Prints results as JSON and as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "scenario/results.h"

namespace weft::scenario {
namespace {

constexpr std::size_t kSeriesRowsMax = 24;
constexpr std::size_t kBarWidth = 40;

// Rounds to six significant digits: the others are noise, and the text stays short.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

std::string count(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

// Goodput over time, in at most kSeriesRowsMax rows; each row covers the same time.
std::string series_rows(const Results& results) {
  const std::vector<double>& series = results.series_gbps;
  if (series.empty()) return {};
  const std::size_t group = (series.size() + kSeriesRowsMax - 1) / kSeriesRowsMax;
  std::vector<double> rows;
  for (std::size_t i = 0; i < series.size(); i += group) {
    const std::size_t end = std::min(i + group, series.size());
    double sum = 0;
    for (std::size_t j = i; j < end; ++j) sum += series[j];
    rows.push_back(sum / static_cast<double>(end - i));
  }
  // without the last row: it has only what completed after the end
  if (rows.size() > 1) rows.pop_back();
  const double most = *std::max_element(rows.begin(), rows.end());
  std::string text = "  from (us)   goodput (Gb/s)\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double share = most > 0 ? rows[i] / most : 0;
    const auto width = static_cast<std::size_t>(std::lround(share * kBarWidth));
    text += fmt::format("{:>11.0f} {:>12.1f}  {}\n",
                        static_cast<double>(i * group) * results.series_step_us, rows[i],
                        std::string(width, '#'));
  }
  return text;
}

}  // namespace

std::string to_json(const Results& results) {
  const RunFacts& facts = results.facts;
  nlohmann::ordered_json json;
  json["scenario"] = results.scenario;
  json["seed"] = facts.seed;
  json["trace_hash"] = fmt::format("{:016x}", facts.trace_hash);
  json["flows"] = results.flows;
  json["completed"] = results.completed;
  json["flows_abandoned"] = results.flows_abandoned;
  json["fct_us"] = {{"min", rounded(results.fct_us.min)},
                    {"mean", rounded(results.fct_us.mean)},
                    {"p50", rounded(results.fct_us.p50)},
                    {"p99", rounded(results.fct_us.p99)},
                    {"max", rounded(results.fct_us.max)}};
  json["ideal_us"] = rounded(results.ideal_us);
  json["slowest_over_ideal"] = rounded(results.slowest_over_ideal);
  json["goodput_gbps"] = rounded(results.goodput_gbps);
  json["goodput_share"] = rounded(results.goodput_share);
  json["jain"] = rounded(results.jain);
  if (results.victim_share) json["victim_share"] = rounded(*results.victim_share);
  json["packets_sent"] = facts.packets_sent;
  json["retransmits"] = facts.retransmits;
  const auto told = [&facts](std::uint64_t value) {
    return facts.switches_report ? nlohmann::json(value) : nlohmann::json();
  };
  json["trims"] = told(facts.trims);
  json["drops"] = told(facts.drops);
  json["ecn_marks"] = told(facts.ecn_marks);
  json["ev_bad"] = facts.ev_bad;
  json["planes_bad"] = facts.planes_bad;
  json["qp_errors"] = facts.qp_errors;
  json["qp_errors_expected"] = facts.qp_errors_expected;
  json["remote_access_errors"] = results.remote_access_errors;
  json["longest_pause_us"] = rounded(results.longest_pause_us);
  if (results.baseline_gbps) json["baseline_gbps"] = rounded(*results.baseline_gbps);
  if (results.settled_gbps) json["settled_gbps"] = rounded(*results.settled_gbps);
  if (results.recovered_gbps) json["recovered_gbps"] = rounded(*results.recovered_gbps);
  if (!results.series_gbps.empty()) {
    json["series_step_us"] = rounded(results.series_step_us);
    auto& series = json["series_gbps"] = nlohmann::json::array();
    for (const double gbps : results.series_gbps) series.push_back(rounded(gbps));
  }
  json["simulated_us"] = rounded(facts.simulated.to_us());
  json["packet_hops"] = facts.packet_hops;
  json["wall_s"] = rounded(facts.wall_s);
  json["packet_hops_per_s"] =
      rounded(facts.wall_s > 0 ? static_cast<double>(facts.packet_hops) / facts.wall_s : 0);
  json["rss_mb"] = rounded(facts.rss_mb);
  return json.dump();
}

std::string to_table(const Results& results) {
  const RunFacts& facts = results.facts;
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<18}{}\n", name, value);
  };
  text += fmt::format("{}, seed {}\n", results.scenario, facts.seed);
  row("flows", fmt::format("{} of {} completed{}", count(results.completed), count(results.flows),
                           results.flows_abandoned > 0
                               ? fmt::format(", {} abandoned", count(results.flows_abandoned))
                               : ""));
  row("completion (us)",
      fmt::format("min {:.1f}  mean {:.1f}  p50 {:.1f}  p99 {:.1f}  max {:.1f}", results.fct_us.min,
                  results.fct_us.mean, results.fct_us.p50, results.fct_us.p99, results.fct_us.max));
  if (results.series_gbps.empty()) {
    row("ideal (us)",
        fmt::format("{:.1f}, slowest {:.3f} of it", results.ideal_us, results.slowest_over_ideal));
  }
  row("goodput", fmt::format("{:.1f} Gb/s, {:.3f} of the framing limit", results.goodput_gbps,
                             results.goodput_share));
  row("Jain's index", fmt::format("{:.4f}", results.jain));
  if (results.victim_share) row("victim", fmt::format("{:.3f} of alone", *results.victim_share));
  row("packets",
      fmt::format("{} sent, {} again, {}", count(facts.packets_sent), count(facts.retransmits),
                  facts.switches_report
                      ? fmt::format("{} trimmed, {} dropped, {} marked", count(facts.trims),
                                    count(facts.drops), count(facts.ecn_marks))
                      : "what the kernel's switches dropped is not counted"));
  row("EVs condemned", facts.planes_bad == 0
                           ? count(facts.ev_bad)
                           : fmt::format("{}, and whole planes {} times", count(facts.ev_bad),
                                         count(facts.planes_bad)));
  row("QPs in error", fmt::format("{} ({} more were expected)", count(facts.qp_errors),
                                  count(facts.qp_errors_expected)));
  row("longest pause", fmt::format("{:.1f} us", results.longest_pause_us));
  if (results.baseline_gbps && results.settled_gbps) {
    row("during the fault",
        fmt::format("{:.1f} Gb/s of {:.1f} before", *results.settled_gbps, *results.baseline_gbps));
  }
  if (results.baseline_gbps && results.recovered_gbps) {
    row("after the repair", fmt::format("{:.1f} Gb/s of {:.1f} before", *results.recovered_gbps,
                                        *results.baseline_gbps));
  }
  if (facts.packet_hops == 0) {  // the run was not simulated
    row("lasted", fmt::format("{:.1f} ms", facts.simulated.to_us() / 1e3));
    return text + series_rows(results);
  }
  row("simulated",
      fmt::format(
          "{:.1f} us, {} packet-hops in {:.2f} s ({:.2f} M/s), {:.0f} MB", facts.simulated.to_us(),
          count(facts.packet_hops), facts.wall_s,
          facts.wall_s > 0 ? static_cast<double>(facts.packet_hops) * 1e-6 / facts.wall_s : 0,
          facts.rss_mb));
  row("trace hash", fmt::format("{:016x}", facts.trace_hash));
  return text + series_rows(results);
}

}  // namespace weft::scenario
