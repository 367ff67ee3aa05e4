#include "scenario/results.h"

#include <gtest/gtest.h>

#include "scenario/testing.h"

namespace weft::scenario {
namespace {

Time at_us(std::int64_t us) { return Time::from_start(Duration::us(us)); }

// A run of `workload` in which flow i started at time 0 and completed all bytes at us[i].
struct Ran {
  Scenario scenario;
  Plan plan;
  Scoreboard board;
};

Ran finished(std::string_view workload, const std::vector<std::int64_t>& us) {
  Scenario scenario = small_scenario(workload);
  Plan plan = make_plan(scenario, topology_of(scenario), Prng(1));
  Scoreboard board;
  board.flows.resize(plan.ops.size());
  for (std::size_t i = 0; i < us.size(); ++i) {
    FlowRecord& record = board.flows[i];
    record.first_post = Time();
    record.last_completion = at_us(us[i]);
    record.bytes_completed = plan.ops[i].bytes;
    record.state = FlowState::kCompleted;
  }
  return {std::move(scenario), std::move(plan), std::move(board)};
}

TEST(Results, CompletionTimesAndGoodputAreComputed) {
  Ran run =
      finished("[workload]\nkind = \"pairs\"\nhosts = 8\nbytes = 1000000\n", {100, 200, 300, 400});
  const Results results = summarise(run.scenario, run.plan, run.board, {});
  EXPECT_EQ(results.flows, 4u);
  EXPECT_EQ(results.completed, 4u);
  EXPECT_DOUBLE_EQ(results.fct_us.min, 100);
  EXPECT_DOUBLE_EQ(results.fct_us.mean, 250);
  EXPECT_DOUBLE_EQ(results.fct_us.p50, 200);
  EXPECT_DOUBLE_EQ(results.fct_us.p99, 400);
  EXPECT_DOUBLE_EQ(results.fct_us.max, 400);
  EXPECT_NEAR(results.goodput_gbps, 4 * 8e6 / 400e-6 * 1e-9, 1e-9);
  EXPECT_NEAR(results.slowest_over_ideal, 400 / run.plan.ideal.to_us(), 1e-9);
  // The goodputs are 1, 1/2, 1/3 and 1/4.
  const double sum = 1 + 0.5 + 1.0 / 3 + 0.25, squares = 1 + 0.25 + 1.0 / 9 + 1.0 / 16;
  EXPECT_NEAR(results.jain, sum * sum / (4 * squares), 1e-9);
}

TEST(Results, RunAtTheFramingLimitHasGoodputShareOne) {
  Ran run = finished("[workload]\nkind = \"pairs\"\nhosts = 2\nbytes = \"4MiB\"\n", {0});
  run.board.flows[0].last_completion = Time() + (run.plan.ideal - run.plan.ideal_rtt);
  EXPECT_NEAR(summarise(run.scenario, run.plan, run.board, {}).goodput_share, 1.0, 1e-6);
}

TEST(Results, FlowsThatCrashOrMustFailAreCountedSeparately) {
  Ran run = finished(
      "[workload]\nkind = \"flows\"\nbytes = 1000\n[[workload.flow]]\nfrom = 0\nto = 1\n"
      "[[workload.flow]]\nfrom = 2\nto = 3\n[[workload.flow]]\nfrom = 4\nto = 5\nbad_rkey = true\n",
      {10, 10, 10});
  run.board.flows[1].state = FlowState::kAbandoned;
  run.board.flows[2].state = FlowState::kFailed;
  run.board.flows[2].status = rdma::Status::kRemoteAccess;
  const Results results = summarise(run.scenario, run.plan, run.board, {});
  EXPECT_EQ(results.flows, 1u);
  EXPECT_EQ(results.completed, 1u);
  EXPECT_EQ(results.flows_abandoned, 1u);
  EXPECT_EQ(results.remote_access_errors, 1u);
  EXPECT_EQ(check({}, results),
            std::vector<std::string>{"1 flows ended with a remote access error, expected 0"});
  EXPECT_TRUE(check({.remote_access_errors = 1}, results).empty());
}

TEST(Results, VictimIsJudgedSeparately) {
  Ran run = finished(
      "[workload]\nkind = \"incast\"\nsenders = 2\nvictim = true\nbytes = \"1MiB\"\n", {90, 90, 0});
  // Without other flows, the victim takes the time of its bytes with framing at 200 Gb/s, plus one
  // RTT.
  const Plan alone =
      make_plan(small_scenario("[workload]\nkind = \"pairs\"\nhosts = 2\ncross = true\n"
                               "bytes = \"1MiB\"\n"),
                topology_of(run.scenario), Prng(1));
  run.board.flows[2].last_completion = Time() + alone.ideal * 2;
  const Results results = summarise(run.scenario, run.plan, run.board, {});
  ASSERT_TRUE(results.victim_share);
  EXPECT_NEAR(*results.victim_share, 0.5, 1e-3);
  EXPECT_DOUBLE_EQ(results.jain, 1);
}

TEST(Results, GoodputOfAWindowIsTheAverageOfItsSteps) {
  Scenario scenario = small_scenario(
      "[workload]\nkind = \"pairs\"\nhosts = 2\nmessage = 1000\nrepeat_for = \"1ms\"\n"
      "[expect]\nbaseline_from = \"0us\"\nbaseline_until = \"100us\"\nsettled_from = \"100us\"\n"
      "settled_until = \"200us\"\nsettled_share_min = 0.8\nsettled_share_max = 0.9\n");
  const Plan plan = make_plan(scenario, topology_of(scenario), Prng(1));
  Scoreboard board;
  board.flows.resize(1);
  board.series = Series(Duration::us(10), 101);
  for (int us = 0; us < 200; ++us) board.series.add(at_us(us), us < 100 ? 8000 : 4000);
  board.series.add(at_us(5000), 1);  // after the end: must be added to the last step
  Results results = summarise(scenario, plan, board, {});
  EXPECT_NEAR(*results.baseline_gbps, 64, 1e-9);
  EXPECT_NEAR(*results.settled_gbps, 32, 1e-9);
  EXPECT_FALSE(results.recovered_gbps);
  const auto findings = check(scenario.expect, results);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0], "0 of 1 flows completed, expected all");
  EXPECT_EQ(findings[1], "goodput during the fault was 0.5 of that before, expected at least 0.8");
}

TEST(Results, EachFailedExpectationGivesASentence) {
  Results results;
  results.hosts = 10;
  results.flows = 2, results.completed = 1;
  results.slowest_over_ideal = 1.234;
  results.goodput_gbps = 700, results.goodput_share = 0.9, results.jain = 0.5;
  results.longest_pause_us = 250;
  results.facts.ev_bad = 3, results.facts.qp_errors = 1, results.facts.ev_floor_reached = true;
  results.facts.rss_mb = 2;
  results.facts.fault_free_goodput_gbps = 1000;
  ExpectSpec expect;
  expect.slowest_over_ideal_max = 1.10;
  expect.slowest_over_ideal_min = 2;
  expect.goodput_gbps_min = 738.8;
  expect.goodput_share_min = 0.96;
  expect.fault_free_share_min = 0.93;
  expect.jain_min = 0.98;
  expect.victim_share_min = 0.95;
  expect.longest_pause_max = Duration::us(100);
  expect.ev_bad_max = 0;
  expect.ev_bad_min = 4;
  expect.ev_floor_never_reached = true;
  expect.kb_per_host_max = 100;
  const std::vector<std::string> sentences = {
      "1 of 2 flows completed, expected all",
      "1 QPs ended in error, expected at most 0",
      "slowest flow took 1.234 of ideal, expected at most 1.1",
      "slowest flow took 1.234 of ideal, expected at least 2",
      "goodput was 700 Gb/s, expected at least 738.8",
      "goodput was 0.9 of the framing limit, expected at least 0.96",
      "goodput was 0.7 of that without faults, expected at least 0.93",
      "Jain's index was 0.5, expected at least 0.98",
      "the victim got 0 of what it gets alone, expected at least 0.95",
      "3 EVs were condemned, expected at most 0",
      "3 EVs were condemned, expected at least 4",
      "a QP was down to its ev_min_active floor, expected never",
      "the longest pause was 250 us, expected at most 100",
      "memory was 200 kB a host, expected at most 100"};
  EXPECT_EQ(check(expect, results), sentences);
  EXPECT_TRUE(check({.all_completed = false, .qp_errors_max = 1}, results).empty());
}

TEST(Results, JsonHasTheFieldsInOrder) {
  Ran run = finished("[workload]\nkind = \"pairs\"\nhosts = 2\nbytes = 1000000\n", {100});
  RunFacts facts;
  facts.seed = 7, facts.trace_hash = 0xabc, facts.packet_hops = 1000, facts.wall_s = 0.5;
  const std::string json = to_json(summarise(run.scenario, run.plan, run.board, facts));
  std::size_t at = 0;
  for (const char* field : {"\"scenario\":\"test\"",
                            "\"seed\":7",
                            "\"trace_hash\":\"0000000000000abc\"",
                            "\"flows\":1",
                            "\"completed\":1",
                            "\"flows_abandoned\":0",
                            "\"fct_us\":{\"min\":100.0,\"mean\":100.0,",
                            "\"ideal_us\":",
                            "\"goodput_gbps\":80.0",
                            "\"jain\":1.0",
                            "\"packets_sent\":",
                            "\"retransmits\":",
                            "\"trims\":",
                            "\"drops\":",
                            "\"ecn_marks\":",
                            "\"ev_bad\":",
                            "\"qp_errors\":",
                            "\"qp_errors_expected\":",
                            "\"longest_pause_us\":",
                            "\"packet_hops\":1000",
                            "\"wall_s\":0.5",
                            "\"packet_hops_per_s\":2000.0",
                            "\"rss_mb\":"}) {
    const std::size_t found = json.find(field, at);
    ASSERT_NE(found, std::string::npos) << field << " in " << json;
    at = found;
  }
  EXPECT_EQ(json.find('\n'), std::string::npos);
}

TEST(Results, TableShowsGoodputOverTime) {
  Scenario scenario = small_scenario(
      "[workload]\nkind = \"pairs\"\nhosts = 2\nmessage = 1000\nrepeat_for = \"1ms\"\n");
  const Plan plan = make_plan(scenario, topology_of(scenario), Prng(1));
  Scoreboard board;
  board.flows.resize(1);
  board.series = Series(Duration::us(10), 101);
  for (int us = 0; us < 1000; ++us) board.series.add(at_us(us), us < 500 ? 8000 : 4000);
  const std::string table = to_table(summarise(scenario, plan, board, {}));
  EXPECT_NE(table.find("test, seed 1\n"), std::string::npos);
  EXPECT_NE(table.find("          0         64.0  ########################################\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("        900         32.0  ####################\n"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace weft::scenario
