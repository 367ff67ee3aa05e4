#include "cli/lab_run_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/argument_checks.h"
#include "cli/lab_sweep.h"
#include "cli/net_settings.h"
#include "os/interruption.h"
#include "os/say.h"
#include "run/lab_parts.h"
#include "run/lab_run.h"
#include "run/load_scenario.h"

namespace weft::cli {
namespace {

struct LabRunArguments {
  std::string file;
  std::optional<std::uint64_t> seed;
  std::uint32_t processes = 1;
  bool json = false;
};

nlohmann::ordered_json counters_json(const run::LabOutcome& outcome) {
  nlohmann::ordered_json out;
  for (const CounterTable* table : {&outcome.counters, &outcome.world}) {
    for (const CounterRow& row : rows_of(*table)) {
      if (row.value != 0) out[row.name] = row.value;
    }
  }
  return out;
}

void print_json(const run::LabOutcome& outcome) {
  auto out = nlohmann::ordered_json::parse(scenario::to_json(outcome.results));
  for (const char* of_sim : {"trace_hash", "packet_hops", "packet_hops_per_s", "wall_s", "rss_mb"})
    out.erase(of_sim);
  out["bytes_wrong"] = outcome.bytes_wrong;
  out["story"] = outcome.story;
  out["condemned_in_passing"] = outcome.transient_count;
  out["counters"] = counters_json(outcome);
  fmt::print("{}\n", out.dump());
}

int run(const LabRunArguments& arguments) {
  const auto scenario = run::load_scenario(arguments.file);
  if (!scenario) {
    os::say("weft: {}\n", scenario.error().message);
    return 2;
  }
  // The shortest repeat_for: opening the sockets of many hosts already takes tens of milliseconds
  // of it.
  constexpr Duration kShortest = Duration::ms(200);
  if (const Duration all = scenario->workload.repeat_for; all > Duration() && all < kShortest) {
    os::say(
        "weft: {}: repeat_for is {:g} ms, which is over before the hosts of a lab have "
        "started; expected at least {:g} ms, as in scenarios/lab-*.toml\n",
        arguments.file, all.to_us() / 1e3, kShortest.to_us() / 1e3);
    return 2;
  }
  // Show only errors by default: all hosts are on this machine and their planes go down on purpose,
  // so warnings would be noise.
  if (const auto level = set_log_level_or(os::LogLevel::kError); !level) {
    os::say("weft: {}\n", level.error().message);
    return 2;
  }
  run::LabRunOptions options;
  options.seed = arguments.seed.value_or(scenario->run.seed);
  options.name = fmt::format("run-{}", getpid());
  options.processes = arguments.processes;
  if (geteuid() != 0) {
    fmt::print(
        stderr,
        "weft: lab run needs root; `weft lab up {}` and `weft lab exec` do without, in a user "
        "namespace\n",
        arguments.file);
    return 1;
  }
  // If stdout is a closed pipe, the lab must still be removed.
  std::signal(SIGPIPE, SIG_IGN);
  sweep_labs();
  const auto outcome = run::run_in_lab(*scenario, options);
  if (!outcome) {
    const int status = os::fail(outcome.error());
    return os::interrupted() ? os::interrupted_status() : status;
  }
  if (arguments.json) {
    print_json(*outcome);
  } else {
    fmt::print("{}", scenario::to_table(outcome->results));
    for (const std::string& line : outcome->story) fmt::print("  {}\n", line);
  }
  if (outcome->held()) return 0;
  for (const std::string& line : outcome->stuck) os::say("stuck: {}\n", line);
  for (const std::string& line : outcome->broken) os::say("expected: {}\n", line);
  if (outcome->bytes_wrong > 0)
    os::say("{} bytes arrived that were not sent so\n", outcome->bytes_wrong);
  os::say("repeat: weft lab run {} --seed {}\n", os::shell_word(arguments.file), options.seed);
  return 1;
}

}  // namespace

void add_lab_run(CLI::App& lab, int& status) {
  const auto a = std::make_shared<LabRunArguments>();
  CLI::App* command = lab.add_subcommand(
      "run", "build the scenario's fabric, run its workload and faults there, take it down (root)");
  command->add_option("FILE", a->file, "the scenario (TOML)")->required();
  command->add_option("--seed", a->seed, "instead of the scenario's")->check(whole_number(0));
  command->add_option("--processes", a->processes, "divide the hosts among so many processes")
      ->check(whole_number(1, run::LabParts::kProcessesMax));
  command->add_flag("--json", a->json, "one JSON object on stdout");
  command->callback([a, &status] { status = run(*a); });
}

}  // namespace weft::cli
