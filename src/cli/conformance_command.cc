#include "cli/conformance_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/argument_checks.h"
#include "config/units.h"
#include "conformance/registry.h"
#include "conformance/report.h"
#include "conformance/runner.h"
#include "os/address.h"
#include "os/interfaces.h"
#include "os/interruption.h"
#include "os/say.h"

namespace weft::cli {
namespace {

using conformance::Count;
using conformance::Outcome;
using conformance::Survey;
using conformance::Test;
using nlohmann::json;

struct ConformanceArguments {
  std::string library, device, timeout = "20s", icrc = "auto", junit;
  std::vector<std::string> only, skip, tester, device_address;
  std::uint32_t gid_index = 3, tester_port = 4791, device_port = 0;
  std::uint32_t dscp_data = 4, dscp_control = 46, dscp_trimmed = 12, dscp_trimmed_last_hop = 16;
  bool json = false;
};

Error misuse(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }

// Finds lib_mrc.so in a build tree or an installation, relative to this program.
Result<std::string> library_of(const ConformanceArguments& a) {
  std::error_code error;
  if (!a.library.empty()) {
    if (std::filesystem::is_regular_file(a.library, error)) {
      // The loader would look for a name without a slash in the system's library folders.
      return std::filesystem::absolute(a.library).string();
    }
    const bool is_there = std::filesystem::exists(a.library, error);
    return misuse(fmt::format("{}: {}; expected the path of a lib_mrc.so", a.library,
                              is_there ? "not a file" : "no such file"));
  }
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const place : {"lib_mrc.so", "../lib/lib_mrc.so"}) {
    if (std::filesystem::exists(program / place, error)) return (program / place).string();
  }
  return misuse(
      "no lib_mrc.so beside the program; `cmake --build build --target mrc` makes ours, or give a "
      "path: weft conformance run PATH");
}

Result<std::vector<Ipv6>> addresses_of(const char* flag, const std::vector<std::string>& texts) {
  std::vector<Ipv6> out;
  for (const std::string& text : texts) {
    const auto ip = os::parse_address(text);
    if (!ip) return misuse(fmt::format("{} {}: {}", flag, text, ip.error().message));
    out.push_back(*ip);
  }
  return out;
}

// Checks that these addresses belong to this host, because the tester opens sockets on them.
Result<void> check_local(const std::vector<std::string>& texts, const std::vector<Ipv6>& testers) {
  WEFT_TRY(const auto interfaces, os::list_interfaces());
  for (std::size_t i = 0; i < testers.size(); ++i) {
    if (os::interface_of(testers[i], interfaces) != nullptr) continue;
    return misuse(
        fmt::format("--tester {}: no interface of this host has it; expected addresses of "
                    "this host, `ip -br addr` lists them",
                    texts[i]));
  }
  return {};
}

Result<conformance::Options> options_of(const ConformanceArguments& a) {
  conformance::Options out;
  WEFT_TRY(out.library, library_of(a));
  out.device = a.device;
  out.gid_index = static_cast<int>(a.gid_index);
  const auto timeout = config::duration_from(a.timeout);
  if (!timeout || *timeout < Duration::ms(100) || *timeout > Duration::s(3600))
    return misuse(fmt::format("--timeout {}: expected 100ms to 3600s, as 20s", a.timeout));
  out.timeout = std::chrono::milliseconds(timeout->ns() / 1'000'000);
  WEFT_TRY(out.tester_addresses, addresses_of("--tester", a.tester));
  WEFT_CHECK(check_local(a.tester, out.tester_addresses));
  WEFT_TRY(out.device_addresses, addresses_of("--device-address", a.device_address));
  if (a.tester_port == 0 || a.tester_port > 0xffff || a.device_port > 0xffff)
    return misuse("--tester-port, --device-port: expected a UDP port, 1 to 65535");
  out.tester_port = static_cast<std::uint16_t>(a.tester_port);
  out.device_port = static_cast<std::uint16_t>(a.device_port);
  if (a.icrc == "full") {
    out.icrc = conformance::IcrcCover::kFull;
  } else if (a.icrc == "headers") {
    out.icrc = conformance::IcrcCover::kHeaders;
  } else if (a.icrc != "auto") {
    return misuse(fmt::format("--icrc {}: expected auto, full or headers", a.icrc));
  }
  for (const std::uint32_t dscp :
       {a.dscp_data, a.dscp_control, a.dscp_trimmed, a.dscp_trimmed_last_hop}) {
    if (dscp > 63) return misuse(fmt::format("DSCP {}: expected 0 to 63", dscp));
  }
  out.dscp_data = static_cast<std::uint8_t>(a.dscp_data);
  out.dscp_control = static_cast<std::uint8_t>(a.dscp_control);
  out.dscp_trimmed = static_cast<std::uint8_t>(a.dscp_trimmed);
  out.dscp_trimmed_last_hop = static_cast<std::uint8_t>(a.dscp_trimmed_last_hop);
  return out;
}

Result<std::vector<const Test*>> tests_of(const ConformanceArguments& a) {
  auto tests = conformance::chosen_tests({.only = a.only, .skip = a.skip});
  if (tests.empty()) return misuse("--only and --skip leave no test; see `weft conformance list`");
  return tests;
}

std::size_t id_width(const std::vector<const Test*>& tests) {
  std::size_t width = 0;
  for (const Test* test : tests) width = std::max(width, std::strlen(test->id));
  return width;
}

json json_of(const Test& test) {
  return {{"id", test.id},
          {"clause", test.clause},
          {"certainty", to_string(test.certainty)},
          {"level", to_string(test.level)},
          {"what", test.what}};
}

json json_of(const Outcome& outcome) {
  json out = json_of(*outcome.test);
  out["status"] = to_string(outcome.status);
  out["seconds"] = static_cast<double>(outcome.took.count()) / 1e3;
  if (outcome.status == conformance::Status::kFail) out["expected"] = outcome.expected;
  if (outcome.status != conformance::Status::kPass) out["got"] = outcome.got;
  return out;
}

std::string json_of(const std::string& library, const Survey& survey,
                    const std::vector<Outcome>& outcomes) {
  const Count sum = conformance::count(outcomes);
  json results = json::array();
  for (const Outcome& outcome : outcomes) results.push_back(json_of(outcome));
  const json all = {{"library", library},
                    {"device", survey.device},
                    {"gid", survey.gid},
                    {"ports", survey.ports},
                    {"api_version", conformance::version_text(survey.api_version)},
                    {"ctl_api_version", conformance::version_text(survey.ctl_version)},
                    {"icrc", to_string(survey.icrc)},
                    {"passed", sum.pass},
                    {"failed_must", sum.fail_must},
                    {"failed_should", sum.fail_should},
                    {"skipped", sum.skip},
                    {"errors", sum.error},
                    {"conforms", sum.is_good() && !os::interrupted()},
                    {"interrupted", os::interrupted()},
                    {"results", std::move(results)}};
  // The output of a library may contain bytes that are not UTF-8.
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string not_written(const std::string& path) {
  return fmt::format(
      "--junit {}: it cannot be written: {}; expected a file in a folder that is there", path,
      std::strerror(errno));
}

// Checked before the tests, so that nobody waits for minutes and then gets no report. The file is
// not truncated: an existing report stays until the new one replaces it.
Result<void> check_writable(const std::string& path) {
  if (std::ofstream(path, std::ios::binary | std::ios::app)) return {};
  return misuse(not_written(path));
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return Error{ErrorKind::kSystem, not_written(path)};
}

// Why not all requested tests ran; empty if all did.
std::string why_cut_short(std::size_t ran, std::size_t asked) {
  return os::interrupted() ? fmt::format("interrupted after {} of {} tests", ran, asked) : "";
}

// Returns true if no MUST failed.
Result<bool> run(const ConformanceArguments& a) {
  WEFT_TRY(conformance::Options options, options_of(a));
  WEFT_TRY(const auto tests, tests_of(a));
  os::catch_interruption("weft: ending after this test\n");
  WEFT_TRY(const Survey survey, conformance::survey(options));
  if (!a.junit.empty()) WEFT_CHECK(check_writable(a.junit));
  if (!options.icrc) options.icrc = survey.icrc;
  if (!a.json) fmt::print("{}", conformance::heading(options.library, survey));
  const std::size_t width = id_width(tests);
  std::vector<Outcome> outcomes;
  for (const Test* test : tests) {
    // Check for Ctrl-C only between tests: at its end a test restores the settings of the device.
    if (os::interrupted()) break;
    outcomes.push_back(conformance::run_test(*test, options));
    if (a.json) continue;
    fmt::print("{}", conformance::line_of(outcomes.back(), width));
    std::fflush(stdout);
  }
  const Count sum = conformance::count(outcomes);
  const std::string cut_short = why_cut_short(outcomes.size(), tests.size());
  if (a.json) {
    fmt::print("{}\n", json_of(options.library, survey, outcomes));
  } else {
    if (!cut_short.empty()) fmt::print("{}: ", cut_short);
    fmt::print("{}", conformance::summary_of(sum));
  }
  if (!a.junit.empty()) {
    WEFT_CHECK(
        write_file(a.junit, conformance::junit(options.library, survey, outcomes, cut_short)));
  }
  if (!cut_short.empty()) return os::interruption();
  return sum.is_good();
}

Result<bool> list(const ConformanceArguments& a) {
  WEFT_TRY(const auto tests, tests_of(a));
  if (a.json) {
    json all = json::array();
    for (const Test* test : tests) all.push_back(json_of(*test));
    fmt::print("{}\n", all.dump());
    return true;
  }
  for (const Test* test : tests) fmt::print("{}", conformance::row_of(*test, id_width(tests)));
  return true;
}

void add_choice(CLI::App& verb, const std::shared_ptr<ConformanceArguments>& a) {
  // Each of these flags takes one word, because the next word may be the library.
  for (const auto& [flag, ids, what] :
       {std::tuple{"--only", &a->only, "only tests whose id matches, as 'wire.sack.*'; repeatable"},
        {"--skip", &a->skip, "not those; repeatable"}}) {
    verb.add_option(flag, *ids, what)
        ->type_name("PATTERN")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->check(not_empty("what ids match, as 'wire.sack.*'"));
  }
  verb.add_flag("--json", a->json, "one JSON value on stdout (docs/conformance.md)");
}

using Body = Result<bool> (*)(const ConformanceArguments&);
void set_callback(CLI::App& verb, const std::shared_ptr<ConformanceArguments>& a, int& status,
                  Body body) {
  verb.callback([a, &status, body] {
    const auto good = body(*a);
    if (!good) {
      status = os::fail(good.error());
      if (os::interrupted()) status = os::interrupted_status();
    } else if (!*good) {
      status = 1;
    }
  });
}

}  // namespace

void add_conformance_command(CLI::App& app, int& status) {
  auto* const noun = app.add_subcommand(
      "conformance", "Whether an MRC library and its device do what the API and the wire ask");
  noun->require_subcommand(1);
  auto a = std::make_shared<ConformanceArguments>();
  auto* const run_verb = noun->add_subcommand("run", "Run the tests, each in its own process");
  run_verb->add_option("library", a->library, "path of a lib_mrc.so; else the one beside weft")
      ->check(not_empty("the path of a lib_mrc.so"));
  add_choice(*run_verb, a);
  run_verb->add_option("--junit", a->junit, "also write JUnit's XML to this file")
      ->check(not_empty("a file"));
  run_verb->add_option("--device", a->device, "name of the verbs device; else the first with MRC")
      ->check(not_empty("the name of a device, as `ibv_devices` lists them"));
  run_verb->add_option("--gid-index", a->gid_index, "which GID of its port 1")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  run_verb->add_option("--timeout", a->timeout, "of each test")->capture_default_str();
  for (const auto& [flag, addresses, what] :
       {std::tuple{"--tester", &a->tester, "the tester's addresses, one a port of the device"},
        {"--device-address", &a->device_address, "the device's addresses, one a port"}}) {
    run_verb->add_option(flag, *addresses, what)
        ->type_name("ADDRESS[,ADDRESS]...")
        ->delimiter(',')
        ->expected(1)
        ->allow_extra_args(false)  // the next word may be the library
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  run_verb->add_option("--tester-port", a->tester_port, "UDP port at which the tester listens")
      ->check(whole_number(1, 65535))
      ->capture_default_str();
  run_verb->add_option("--device-port", a->device_port, "UDP port at which the device listens")
      ->check(whole_number(1, 65535));
  run_verb->add_option("--icrc", a->icrc, "what ICRCs cover: auto, full or headers")
      ->capture_default_str();
  run_verb->add_option("--dscp-data", a->dscp_data, "code point of data")
      ->check(whole_number(0, 63))
      ->capture_default_str();
  run_verb->add_option("--dscp-control", a->dscp_control, "of SACKs and the like")
      ->check(whole_number(0, 63))
      ->capture_default_str();
  run_verb->add_option("--dscp-trimmed", a->dscp_trimmed, "of trimmed packets")
      ->check(whole_number(0, 63))
      ->capture_default_str();
  run_verb
      ->add_option("--dscp-trimmed-last-hop", a->dscp_trimmed_last_hop, "trimmed at the last hop")
      ->check(whole_number(0, 63))
      ->capture_default_str();
  set_callback(*run_verb, a, status, run);

  a = std::make_shared<ConformanceArguments>();
  auto* const list_verb = noun->add_subcommand("list", "The tests, with the clause of each");
  add_choice(*list_verb, a);
  set_callback(*list_verb, a, status, list);
}

}  // namespace weft::cli
