#include "scenario/results.h"

#include <algorithm>
#include <cmath>

namespace weft::scenario {
namespace {

double seconds(Duration d) { return static_cast<double>(d.ps()) * 1e-12; }
double gbps(std::uint64_t bytes, Duration over) {
  return over > Duration() ? static_cast<double>(bytes) * 8e-9 / seconds(over) : 0;
}

// Percentile by the nearest-rank method. REQUIRES a sorted, non-empty vector.
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

FctUs fct_of(std::vector<double>& us) {
  if (us.empty()) return {};
  std::sort(us.begin(), us.end());
  double sum = 0;
  for (const double t : us) sum += t;
  return {.min = us.front(),
          .mean = sum / static_cast<double>(us.size()),
          .p50 = percentile(us, 0.50),
          .p99 = percentile(us, 0.99),
          .max = us.back()};
}

// Jain's fairness index of n flows: 1 if all values are equal, 1/n if one flow has everything.
class Jain {
 public:
  void add(double x) {
    ++count_;
    sum_ += x;
    squares_ += x * x;
  }
  double value() const { return squares_ > 0 ? sum_ * sum_ / (count_ * squares_) : 0; }

 private:
  double count_ = 0, sum_ = 0, squares_ = 0;
};

// The goodput of a flow if there were no other flow on the fabric.
double alone_gbps(const Plan& plan, const Op& op) {
  const double limit = static_cast<double>(plan.flow_limit_bps) * 1e-9;
  if (op.bytes == 0) return limit;
  const double bits = static_cast<double>(op.bytes) * 8;
  return bits * 1e-9 / (bits / (limit * 1e9) + seconds(plan.ideal_rtt));
}

// Sums over all flows, collected in one pass.
struct Sums {
  std::vector<double> us;
  Jain jain;
  Time first = kNever, last;
  std::uint64_t bytes = 0;
  Duration longest_pause;
};

void take_flow(const Plan& plan, const Op& op, const FlowRecord& record, Results& out, Sums& sums) {
  if (record.state == FlowState::kAbandoned) {
    ++out.flows_abandoned;
    return;
  }
  if (op.bad_rkey) {
    if (record.status == rdma::Status::kRemoteAccess) ++out.remote_access_errors;
    return;
  }
  ++out.flows;
  if (record.first_post == kNever) return;
  const Duration took = record.last_completion - record.first_post;
  sums.longest_pause = std::max(sums.longest_pause, record.longest_pause);
  if (record.state == FlowState::kCompleted) {
    ++out.completed;
    sums.us.push_back(took.to_us());
  }
  const double goodput = gbps(record.bytes_completed, took);
  if (op.victim) {
    out.victim_share = goodput / alone_gbps(plan, op);
    return;
  }
  sums.jain.add(goodput);
  sums.first = std::min(sums.first, record.first_post);
  sums.last = std::max(sums.last, record.last_completion);
  sums.bytes += record.bytes_completed;
}

void take_series(const ExpectSpec& expect, const Series& series, Results& out) {
  if (series.bytes().empty()) return;
  out.series_step_us = series.step().to_us();
  for (const std::uint64_t bytes : series.bytes()) {
    out.series_gbps.push_back(gbps(bytes, series.step()));
  }
  const auto window = [&](Duration from, Duration until) -> std::optional<double> {
    if (until <= from) return std::nullopt;
    return series.gbps(from, until);
  };
  out.baseline_gbps = window(expect.baseline_from, expect.baseline_until);
  out.settled_gbps = window(expect.settled_from, expect.settled_until);
  out.recovered_gbps = window(expect.recovered_from, expect.recovered_until);
}

}  // namespace

double Series::gbps(Duration from, Duration until) const {
  if (bytes_.empty()) return 0;
  const auto step_of = [&](Duration d) {
    const auto index = (d.ps() + step_.ps() - 1) / step_.ps();
    return std::min(static_cast<std::size_t>(index), bytes_.size());
  };
  const std::size_t first = step_of(from), end = step_of(until);
  std::uint64_t sum = 0;
  for (std::size_t i = first; i < end; ++i) sum += bytes_[i];
  if (end <= first) return 0;
  return static_cast<double>(sum) * 8e-9 / (seconds(step_) * static_cast<double>(end - first));
}

Results summarise(const Scenario& scenario, const Plan& plan, const Scoreboard& scoreboard,
                  const RunFacts& facts) {
  Results out;
  out.scenario = scenario.name;
  out.facts = facts;
  out.hosts = plan.host_count();
  Sums sums;
  for (FlowIndex flow = 0; flow < plan.ops.size(); ++flow) {
    take_flow(plan, plan.ops[flow], scoreboard.flows[flow], out, sums);
  }
  out.fct_us = fct_of(sums.us);
  out.jain = sums.jain.value();
  out.longest_pause_us = sums.longest_pause.to_us();
  out.ideal_us = plan.ideal.to_us();
  if (sums.last > sums.first) {
    const Duration whole = sums.last - sums.first;
    out.goodput_gbps = gbps(sums.bytes, whole);
    const double limit = static_cast<double>(plan.goodput_limit_bps) * 1e-9;
    out.goodput_share = limit > 0 ? out.goodput_gbps / limit : 0;
    out.slowest_over_ideal = (plan.ideal_of_whole ? whole.to_us() : out.fct_us.max) / out.ideal_us;
  }
  take_series(scenario.expect, scoreboard.series, out);
  return out;
}

}  // namespace weft::scenario
