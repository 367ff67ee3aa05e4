// Compares results with the expectations in [expect]; one sentence for each that is not met.
#include <fmt/format.h>

#include "scenario/results.h"

namespace weft::scenario {
namespace {

class Findings {
 public:
  // `what` has {} where the value belongs. NaN fails every limit.
  void at_most(const char* what, double value, std::optional<double> limit) {
    if (limit && !(value <= *limit)) bound(what, value, "at most", *limit);
  }
  void at_least(const char* what, double value, std::optional<double> limit) {
    if (limit && !(value >= *limit)) bound(what, value, "at least", *limit);
  }
  void add(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void bound(const char* what, double value, const char* side, double limit) {
    const std::string shown = fmt::format("{:.4g}", value);
    lines_.push_back(fmt::format(fmt::runtime(what), shown) +
                     fmt::format(", expected {} {:.4g}", side, limit));
  }
  std::vector<std::string> lines_;
};

std::optional<double> real(std::optional<std::uint32_t> value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

void check_flows(const ExpectSpec& expect, const Results& results, Findings& out) {
  if (expect.all_completed && results.completed != results.flows) {
    out.add(
        fmt::format("{} of {} flows completed, expected all", results.completed, results.flows));
  }
  if (results.remote_access_errors != expect.remote_access_errors) {
    out.add(fmt::format("{} flows ended with a remote access error, expected {}",
                        results.remote_access_errors, expect.remote_access_errors));
  }
  if (results.facts.qp_errors > expect.qp_errors_max) {
    out.add(fmt::format("{} QPs ended in error, expected at most {}", results.facts.qp_errors,
                        expect.qp_errors_max));
  }
}

void check_rates(const ExpectSpec& expect, const Results& results, Findings& out) {
  const char* slowest = "slowest flow took {} of ideal";
  if (results.completed == 0 && expect.slowest_over_ideal_max)
    out.add("no flow completed, expected a slowest one");
  out.at_most(slowest, results.slowest_over_ideal, expect.slowest_over_ideal_max);
  out.at_least(slowest, results.slowest_over_ideal, expect.slowest_over_ideal_min);
  out.at_least("goodput was {} Gb/s", results.goodput_gbps, expect.goodput_gbps_min);
  out.at_least("goodput was {} of the framing limit", results.goodput_share,
               expect.goodput_share_min);
  if (expect.fault_free_share_min) {
    const double fault_free = results.facts.fault_free_goodput_gbps.value_or(0);
    out.at_least("goodput was {} of that without faults",
                 fault_free > 0 ? results.goodput_gbps / fault_free : 0,
                 expect.fault_free_share_min);
  }
  out.at_least("Jain's index was {}", results.jain, expect.jain_min);
  if (expect.victim_share_min) {
    out.at_least("the victim got {} of what it gets alone", results.victim_share.value_or(0),
                 expect.victim_share_min);
  }
}

void check_windows(const ExpectSpec& expect, const Results& results, Findings& out) {
  const double baseline = results.baseline_gbps.value_or(0);
  const auto share = [&](std::optional<double> value) {
    return baseline > 0 ? value.value_or(0) / baseline : 0;
  };
  const char* settled = "goodput during the fault was {} of that before";
  out.at_least(settled, share(results.settled_gbps), expect.settled_share_min);
  out.at_most(settled, share(results.settled_gbps), expect.settled_share_max);
  out.at_least("goodput after the repair was {} of that before", share(results.recovered_gbps),
               expect.recovered_share_min);
}

// Checks the internal counters, which must balance in every scenario.
void check_books(const Results& results, Findings& out) {
  if (results.facts.inflight_off > 0) {
    out.add(fmt::format("bytes in flight were not 0 when nothing was under way, {} times",
                        results.facts.inflight_off));
  }
}

void check_paths(const ExpectSpec& expect, const Results& results, Findings& out) {
  // A plane taken as bad counts as one EV, although it stands for all EVs of the plane.
  const auto ev_bad = static_cast<double>(results.facts.ev_bad + results.facts.planes_bad);
  out.at_most("{} EVs were condemned", ev_bad, real(expect.ev_bad_max));
  out.at_least("{} EVs were condemned", ev_bad, real(expect.ev_bad_min));
  if (expect.ev_floor_never_reached && results.facts.ev_floor_reached) {
    out.add("a QP was down to its ev_min_active floor, expected never");
  }
  if (expect.longest_pause_max) {
    out.at_most("the longest pause was {} us", results.longest_pause_us,
                expect.longest_pause_max->to_us());
  }
  if (results.hosts > 0) {
    out.at_most("memory was {} kB a host", results.facts.rss_mb * 1e3 / results.hosts,
                expect.kb_per_host_max);
  }
}

}  // namespace

std::vector<std::string> check(const ExpectSpec& expect, const Results& results) {
  Findings findings;
  check_flows(expect, results, findings);
  check_rates(expect, results, findings);
  check_windows(expect, results, findings);
  check_paths(expect, results, findings);
  check_books(results, findings);
  return findings.take();
}

}  // namespace weft::scenario
