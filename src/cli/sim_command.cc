#include "cli/sim_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/argument_checks.h"
#include "config/names.h"
#include "judge/trace_text.h"
#include "os/say.h"
#include "run/capture.h"
#include "run/load_scenario.h"
#include "run/run_scenario.h"
#include "scenario/names.h"

namespace weft::cli {
namespace {

struct SimArguments {
  std::string file;
  std::optional<std::uint64_t> seed;
  std::string policy;
  bool json = false, paths = false;
  std::string pcap, trace;
  std::uint64_t count = 100;
  std::uint64_t first = 1;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  return text;
}

int misuse(const std::string& line) {
  os::say("weft: {}\n", line);
  return 2;
}

Result<scenario::Scenario> load(const SimArguments& arguments) {
  WEFT_TRY(auto scenario, run::load_scenario(arguments.file));
  if (!arguments.policy.empty()) {
    const auto policy = config::value_named(scenario::kPolicyNames, arguments.policy);
    if (!policy) {
      return Error{ErrorKind::kInvalid,
                   fmt::format("--policy {}: unknown; expected mrc, oblivious, reps or flow-hash",
                               arguments.policy)};
    }
    scenario.transport.policy = *policy;
  }
  return scenario;
}

std::string repeat_command(const SimArguments& arguments, std::uint64_t seed) {
  std::string command =
      fmt::format("weft sim run {} --seed {}", os::shell_word(arguments.file), seed);
  if (!arguments.policy.empty()) command += " --policy " + arguments.policy;
  return command;
}

// Prints what failed, and a command that repeats the run.
void report(const run::Outcome& outcome, const SimArguments& arguments, std::uint64_t seed) {
  for (const std::string& line : outcome.stuck) os::say("stuck: {}\n", line);
  for (const judge::Complaint& c : outcome.complaints) os::say("judge: {}\n", judge::to_string(c));
  for (const std::string& line : outcome.broken) os::say("expected: {}\n", line);
  os::say("repeat: {}\n", repeat_command(arguments, seed));
}

// Prints the scenario's description and the faults of the run, before the results.
void print_story(const scenario::Scenario& scenario, const run::Outcome& outcome) {
  if (!scenario.description.empty()) fmt::print("{}\n", trimmed(scenario.description));
  constexpr std::size_t kFaultsMax = 12;
  for (std::size_t i = 0; i < outcome.faults.size() && i < kFaultsMax; ++i) {
    fmt::print("  fault             {}\n", outcome.faults[i]);
  }
  if (outcome.faults.size() > kFaultsMax)
    fmt::print("  and {} faults more\n", outcome.faults.size() - kFaultsMax);
}

void print_details(const run::Outcome& outcome) {
  fmt::print("\nmemory\n");
  for (const sim::MemoryPart& part : outcome.memory.parts) {
    fmt::print("  {:<24} {:>10.1f} MB\n", part.name, static_cast<double>(part.bytes) / 1e6);
  }
  fmt::print("  {:<24} {:>10.1f} MB\n", "process, at most", outcome.results.facts.rss_mb);
  fmt::print("  built in {:.2f} s\n", outcome.memory.build_s);
  fmt::print("\ncounters\n");
  for (const CounterTable& table : {outcome.counters, sim::table_of(outcome.world)}) {
    for (const CounterRow& row : rows_of(table)) {
      if (row.value != 0) fmt::print("  {:<40} {:>14} {}\n", row.name, row.value, row.unit);
    }
  }
}

// True if both name the same existing file, or are equal paths of a file that does not exist.
bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code none;
  return a == b || std::filesystem::equivalent(a, b, none);
}

// The message for a file that cannot be written. REQUIRES that `error` is the errno of opening it.
std::string not_writable(const char* flag, const std::string& file, int error) {
  return fmt::format("{} {}: cannot be written: {}; expected a file in a folder that is there",
                     flag, file, std::strerror(error));
}

int run_one(const SimArguments& arguments, bool details) {
  auto scenario = load(arguments);
  if (!scenario) return misuse(scenario.error().message);
  for (const auto& [flag, file] :
       {std::pair{"--trace", arguments.trace}, {"--pcap", arguments.pcap}}) {
    if (is_same_file(file, arguments.file))
      return misuse(fmt::format("{} {}: is the scenario itself; give another file", flag, file));
  }
  if (is_same_file(arguments.trace, arguments.pcap))
    return misuse(fmt::format("--trace and --pcap are both {}; give two files", arguments.trace));
  run::RunOptions options;
  options.seed = arguments.seed.value_or(scenario->run.seed);
  options.story = arguments.paths;
  std::ofstream trace_file;
  if (!arguments.trace.empty()) {
    trace_file.open(arguments.trace, std::ios::binary);
    if (!trace_file) return misuse(not_writable("--trace", arguments.trace, errno));
    options.on_trace = [&](std::span<const TraceRecord> records) {
      std::string text;
      for (const TraceRecord& r : records) judge::append_trace_line(r, text);
      trace_file << text;
    };
  }
  std::optional<run::CaptureFile> capture;
  if (!arguments.pcap.empty()) {
    capture.emplace(arguments.pcap, *scenario);
    if (!capture->is_open()) return misuse(not_writable("--pcap", arguments.pcap, errno));
    options.on_captured = [&](std::span<const sim::SimWorld::Captured> packets) {
      capture->write(packets);
    };
  }
  const bool terminal = isatty(STDERR_FILENO) != 0 && !arguments.json;
  if (terminal) {
    options.on_progress = [last = 0](Duration at, std::uint64_t left) mutable {
      if (++last % 64 == 0) os::say("\r{:>10.0f} us simulated, {} flows left  ", at.to_us(), left);
    };
  }
  run::prepare_heap(*scenario);
  const auto outcome = run::run_scenario(*scenario, options);
  if (terminal) os::say("\r{:60}\r", "");
  if (!outcome) return misuse(outcome.error().message);
  const bool captured = !capture || capture->is_open();
  const bool traced = !trace_file.is_open() || trace_file.flush();
  if (arguments.json) {
    std::string line = scenario::to_json(outcome->results);
    if (arguments.paths) {
      line.pop_back();
      line += fmt::format(",\"story\":{},\"condemned_in_passing\":{}}}",
                          nlohmann::json(outcome->story).dump(), outcome->transient_count);
    }
    fmt::print("{}\n", line);
  } else {
    print_story(*scenario, *outcome);
    fmt::print("{}", scenario::to_table(outcome->results));
    for (const std::string& line : outcome->story) fmt::print("  {}\n", line);
    if (details) print_details(*outcome);
  }
  std::fflush(stdout);
  if (!captured) os::say("weft: --pcap {}: not everything could be written\n", arguments.pcap);
  if (!traced) os::say("weft: --trace {}: not everything could be written\n", arguments.trace);
  if (outcome->held()) return captured && traced ? 0 : 1;
  report(*outcome, arguments, options.seed);
  return 1;
}

int run_seeds(const SimArguments& arguments) {
  auto scenario = load(arguments);
  if (!scenario) return misuse(scenario.error().message);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::atomic<std::uint64_t> next{0}, done{0}, failed{0};
  std::mutex mutex;
  std::optional<std::pair<std::uint64_t, run::Outcome>> first_failure;
  std::string error;
  const auto work = [&] {
    for (;;) {
      const std::uint64_t index = next.fetch_add(1);
      if (index >= arguments.count) return;
      run::RunOptions options;
      options.seed = arguments.first + index;
      auto outcome = run::run_scenario(*scenario, options);
      const std::lock_guard lock(mutex);
      ++done;
      if (!outcome) {
        error = outcome.error().message;
        next = arguments.count;  // no thread begins another run
        return;
      }
      if (!outcome->held()) {
        ++failed;
        if (!first_failure || options.seed < first_failure->first) {
          first_failure.emplace(options.seed, std::move(*outcome));
        }
      }
      if (terminal) {
        const std::uint64_t filled = done * 40 / arguments.count;
        os::say("\r[{:<40}] {}/{} seeds, {} failed ", std::string(filled, '#'), done.load(),
                arguments.count, failed.load());
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  if (terminal) os::say("\n");
  if (!error.empty()) return misuse(error);
  if (arguments.json) {
    fmt::print("{{\"scenario\":{},\"seeds\":{},\"failed\":{}{}}}\n",
               nlohmann::json(scenario->name).dump(), arguments.count, failed.load(),
               first_failure ? fmt::format(",\"first_failed\":{}", first_failure->first) : "");
  } else {
    fmt::print("{}: {} seeds from {}, {} failed\n", scenario->name, arguments.count,
               arguments.first, failed.load());
  }
  std::fflush(stdout);
  if (!first_failure) return 0;
  os::say("first failing seed: {}\n", first_failure->first);
  report(first_failure->second, arguments, first_failure->first);
  return 1;
}

}  // namespace

void add_sim_command(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<SimArguments>();
  CLI::App* sim = app.add_subcommand("sim", "simulate: a fabric, a workload, faults, from a seed");
  sim->require_subcommand(1);

  CLI::App* run = sim->add_subcommand("run", "one run of a scenario");
  run->add_option("FILE", arguments->file, "the scenario (TOML)")->required();
  run->add_option("--seed", arguments->seed, "everything random follows from it")
      ->check(whole_number(0));
  run->add_option("--policy", arguments->policy,
                  "mrc, oblivious, reps or flow-hash instead of the scenario's")
      ->check(not_empty("mrc, oblivious, reps or flow-hash"));
  run->add_flag("--json", arguments->json, "one JSON object on stdout");
  run->add_option("--pcap", arguments->pcap, "write what hosts sent, for Wireshark")
      ->check(not_empty("a file"));
  run->add_option("--trace", arguments->trace, "write what happened, one JSON object a line")
      ->check(not_empty("a file"));
  const auto details = std::make_shared<bool>(false);
  run->add_flag("--details", *details, "memory by part, and every counter");
  run->add_flag("--paths", arguments->paths, "which ports and EVs went bad and came back");
  run->callback([arguments, details, &status] { status = run_one(*arguments, *details); });

  CLI::App* seeds = sim->add_subcommand("seeds", "many seeds of a scenario, on all cores");
  seeds->add_option("FILE", arguments->file, "the scenario (TOML)")->required();
  seeds->add_option("--count", arguments->count, "how many")->check(whole_number(1));
  seeds->add_option("--first", arguments->first, "the first seed")->check(whole_number(0));
  seeds
      ->add_option("--policy", arguments->policy,
                   "mrc, oblivious, reps or flow-hash instead of the scenario's")
      ->check(not_empty("mrc, oblivious, reps or flow-hash"));
  seeds->add_flag("--json", arguments->json, "one JSON object on stdout");
  seeds->callback([arguments, &status] { status = run_seeds(*arguments); });
}

}  // namespace weft::cli
