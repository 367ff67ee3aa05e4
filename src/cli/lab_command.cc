#include "cli/lab_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/argument_checks.h"
#include "cli/lab_run_command.h"
#include "cli/lab_status.h"
#include "cli/lab_sweep.h"
#include "cli/lab_switch.h"
#include "cli/lab_words.h"
#include "lab/lab.h"
#include "os/interruption.h"
#include "os/say.h"
#include "run/lab_spec.h"
#include "run/load_scenario.h"
#include "run/switch_config.h"

namespace weft::cli {
namespace {

struct LabArguments {
  std::string file, name, way, switches;
  std::vector<std::string> words;
  std::uint32_t mtu = 4200;
  bool no_offloads = false, user_namespace = false, json = false;
};

// The name of the lab: from --name, or of the only lab that exists.
Result<std::string> chosen(const LabArguments& arguments) {
  if (!arguments.name.empty()) return arguments.name;
  WEFT_TRY(const auto names, lab::Lab::names());
  if (names.size() == 1) return names.front();
  if (names.empty())
    return Error{ErrorKind::kNotFound, "lab: there is none; `weft lab up FILE` makes one"};
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return Error{ErrorKind::kInvalid, "lab: there are " + all + "; say which with --name"};
}

// Opens a lab. Errors include kWrongState: the lab was not built completely.
Result<lab::Lab> open_lab(const std::string& name) {
  WEFT_TRY(lab::Lab lab, lab::Lab::open(name));
  if (lab.state().complete) return lab;
  return Error{ErrorKind::kWrongState,
               fmt::format("lab: {} is half built (another `up` is at work, or was ended); "
                           "`weft lab down --name {}` takes it down",
                           name, name)};
}

Result<lab::Lab> open_chosen(const LabArguments& arguments) {
  WEFT_TRY(const std::string name, chosen(arguments));
  return open_lab(name);
}

Result<LinkDirection> way_of(const LabArguments& arguments) {
  if (arguments.way.empty()) return LinkDirection::kBoth;
  if (arguments.way == "up") return LinkDirection::kUp;
  if (arguments.way == "down") return LinkDirection::kDown;
  return Error{
      ErrorKind::kInvalid,
      fmt::format("lab: --way {}: expected up (away from the hosts) or down", arguments.way)};
}

// The kind of switches from the flag; without the flag, what the scenario needs.
Result<lab::LabSwitches> switches_of(const LabArguments& arguments, const lab::LabSpec& spec) {
  if (arguments.switches.empty()) return spec.switches;
  if (arguments.switches == "kernel") return lab::LabSwitches::kKernel;
  if (arguments.switches == "software") return lab::LabSwitches::kSoftware;
  return Error{ErrorKind::kInvalid,
               fmt::format("lab: --switch {}: expected kernel or software", arguments.switches)};
}

Result<void> up(const LabArguments& arguments) {
  // Ctrl-C in a terminal also ends the child process that is working. This process then removes
  // what was made so far.
  os::catch_interruption();
  const auto start = std::chrono::steady_clock::now();
  WEFT_TRY(auto scenario, run::load_scenario(arguments.file));
  // Hosts of a lab may choose paths by uSIDs, even if the scenario's switches forward by hashing.
  scenario.topology.needs_usids = true;
  WEFT_TRY(const auto topology, fabric::Topology::make(scenario.topology));
  WEFT_TRY(lab::LabSpec spec, run::lab_spec(scenario, arguments.name));
  WEFT_TRY(spec.switches, switches_of(arguments, spec));
  const bool software = spec.switches == lab::LabSwitches::kSoftware;
  spec.mtu = arguments.mtu;
  spec.offloads = !arguments.no_offloads && !software;
  spec.user_namespace = arguments.user_namespace;
  const softswitch::LiveFabricConfig config =
      run::live_fabric_config(scenario, topology, scenario.run.seed);
  sweep_labs();
  WEFT_TRY(const lab::Lab lab, lab::Lab::up(spec, software ? &config : nullptr));
  if (os::interrupted()) {
    WEFT_CHECK(lab::Lab::down(spec.name));
    return Error{ErrorKind::kSystem, "lab: interrupted, and taken down again"};
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{}: up in {:.1f} s: {} hosts, {} planes, {} namespaces, {}; `weft lab status`\n",
             spec.name, took.count(), topology.host_count(), topology.plane_count(),
             lab.plan().nodes().size(), rate_text(lab.plan()));
  return {};
}

Result<LabStatus> status_of(const std::string& name) {
  WEFT_TRY(const bool abandoned, lab::Lab::is_abandoned(name));
  if (abandoned) {
    return Error{
        ErrorKind::kWrongState,
        fmt::format("lab: {}: its `weft lab run` is gone; the next `weft lab run`, `up` or "
                    "`down` takes it down",
                    name)};
  }
  WEFT_TRY(const lab::Lab lab, open_lab(name));
  return lab_status(lab);
}

Result<void> show(const LabArguments& arguments) {
  std::vector<std::string> names{arguments.name};
  if (arguments.name.empty()) {
    WEFT_TRY(names, lab::Lab::names());
  }
  auto labs = nlohmann::ordered_json::array();
  std::string text;
  // The last error. Errors of earlier labs are printed at once.
  std::optional<Error> wrong;
  const auto note = [&](const Error& error) {
    if (wrong) os::say("weft: {}\n", wrong->message);
    wrong = error;
  };
  for (const std::string& name : names) {
    const auto status = status_of(name);
    if (!status) {
      note(status.error());
      continue;
    }
    labs.push_back(status->json);
    text += (text.empty() ? "" : "\n") + status->table;
    if (status->broken) note(*status->broken);
  }
  if (arguments.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"labs", labs}}.dump());
  } else {
    fmt::print("{}", names.empty() ? "there is no lab; `weft lab up FILE` makes one\n" : text);
  }
  if (wrong) return *wrong;
  return {};
}

Result<void> fault(const LabArguments& arguments) {
  WEFT_TRY(const LinkDirection way, way_of(arguments));
  WEFT_TRY(lab::Lab lab, open_chosen(arguments));
  std::span<const std::string> words(arguments.words);
  WEFT_TRY(const auto links, take_links(lab.plan().topology(), words, way));
  WEFT_TRY(const LabEffect effect, effect_on(links, words, way));
  if (!effect.slowed.empty()) return lab.set_rate(effect.slowed, effect.rate);
  return lab.apply(effect.events);
}

Result<void> heal(const LabArguments& arguments) {
  WEFT_TRY(const LinkDirection way, way_of(arguments));
  WEFT_TRY(lab::Lab lab, open_chosen(arguments));
  std::span<const std::string> words(arguments.words);
  const bool all = words.empty() || (words.size() == 1 && words.front() == "all");
  if (all && way == LinkDirection::kBoth) return lab.heal();
  if (all) return Error{ErrorKind::kInvalid, "lab: --way: name the links that it is about"};
  WEFT_TRY(const auto links, take_links(lab.plan().topology(), words, way));
  if (!words.empty())
    return Error{ErrorKind::kInvalid,
                 fmt::format("lab: `{}`: nothing was expected here", words[0])};
  return lab.heal(links);
}

// Returns only on failure.
Result<void> execute(const LabArguments& arguments) {
  WEFT_TRY(const lab::Lab lab, open_chosen(arguments));
  const auto& words = arguments.words;
  const std::uint32_t hosts = lab.plan().topology().host_count();
  const bool is_sound = words.size() > 3 && words[0] == "host" && words[2] == "--" &&
                        words[1].size() <= 3 && !words[1].empty() &&
                        words[1].find_first_not_of("0123456789") == std::string::npos;
  const auto host = is_sound ? static_cast<fabric::HostIndex>(std::stoul(words[1])) : hosts;
  if (host >= hosts) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("lab: expected `exec [--name NAME] host H -- COMMAND...`, H from 0 to {}",
                    hosts - 1)};
  }
  WEFT_CHECK(lab.enter(host));
  std::vector<char*> command;
  for (std::size_t i = 3; i < words.size(); ++i)
    command.push_back(const_cast<char*>(words[i].c_str()));
  command.push_back(nullptr);
  execvp(command[0], command.data());
  const int why = errno;
  os::say("weft: lab: {}: cannot be run: {}\n", command[0], std::strerror(why));
  std::exit(why == ENOENT ? 127 : 126);  // as shells do; 1 could also be the status of the program
}

Result<void> down(const LabArguments& arguments) {
  os::catch_interruption();  // takes less than a second, and must not stop half-way
  const auto swept = sweep_labs();
  if (std::find(swept.begin(), swept.end(), arguments.name) != swept.end()) return {};
  WEFT_TRY(const auto left, lab::Lab::names());
  if (arguments.name.empty() && left.empty() && !swept.empty()) return {};
  WEFT_TRY(const std::string name, chosen(arguments));
  // A process inside keeps a namespace alive even after its name is removed, so report such
  // processes. The lab may belong to another user and just be the only one.
  if (const auto lab = lab::Lab::open(name); lab && lab->state().complete) {
    for (fabric::HostIndex host = 0; host < lab->plan().topology().host_count(); ++host) {
      const auto inside = lab->processes(host);
      if (!inside || inside->empty()) continue;
      const std::string what =
          fmt::format("lab: {}: host {} still runs process {}{}", name, host, inside->front(),
                      inside->size() > 1 ? " and others" : "");
      if (arguments.name.empty()) {
        return Error{ErrorKind::kWrongState,
                     fmt::format("{}; `weft lab down --name {}` cuts it off", what, name)};
      }
      os::say("weft: {}; it is cut off now\n", what);
    }
  }
  WEFT_CHECK(lab::Lab::down(name));
  fmt::print("{}: taken down\n", name);
  return {};
}

}  // namespace

void add_lab_command(CLI::App& app, int& status) {
  const auto a = std::make_shared<LabArguments>();
  CLI::App* lab =
      app.add_subcommand("lab", "a scenario's fabric in network namespaces, and faults in it");
  lab->require_subcommand(1);
  add_lab_run(*lab, status);
  add_lab_switch(*lab, status);
  const auto add = [&](const char* verb, const char* what,
                       Result<void> (*act)(const LabArguments&)) {
    CLI::App* command = lab->add_subcommand(verb, what);
    command->add_option("--name", a->name, "the lab's name; without it the only one there is")
        ->check(not_empty("a name"));
    command->callback([a, act, &status] {
      const auto done = act(*a);
      status = done ? 0 : os::fail(done.error());
      if (!done && os::interrupted()) status = os::interrupted_status();
    });
    return command;
  };
  CLI::App* make = add("up", "build it (root, or a user namespace)", up);
  make->add_option("FILE", a->file, "the scenario (TOML): its topology, rates and queues")
      ->required();
  make->add_option("--switch", a->switches,
                   "kernel (SRv6) or software (marks, trims, exact queues); without it software "
                   "where the file says trimming = true")
      ->check(not_empty("kernel or software"));
  make->add_option("--mtu", a->mtu, "of every link, 1280 to 65000 (default 4200)")
      ->check(whole_number(1280, 65000));
  make->add_flag("--no-offloads", a->no_offloads,
                 "hosts send single packets, so that loss and queues act on each");
  make->add_flag("--user-namespace", a->user_namespace, "also where root could do without");

  add("status", "what is there, what is broken, what was counted", show)
      ->add_flag("--json", a->json, "one JSON object on stdout");

  CLI::App* breaks = add("fault", "break something: SELECTOR EFFECT", fault);
  breaks
      ->add_option("WORDS", a->words,
                   "link host H [plane P] | link t0 A t1 B [plane P] | link t1 A t2 B [plane P] | "
                   "plane P | nics, then down | silent | loss 1% | rate 100Mbps")
      ->required();
  CLI::App* mends = add("heal", "mend all, or what the selector names", heal);
  mends->add_option("WORDS", a->words, "a selector as of `fault`, or all (default)");
  for (CLI::App* command : {breaks, mends})
    command->add_option("--way", a->way, "up (away from the hosts) or down; without it both")
        ->check(not_empty("up or down"));

  // All words after the flags belong to the program, even those that look like flags.
  CLI::App* runs =
      add("exec", "run a program in a host: exec [--name NAME] host H -- COMMAND...", execute);
  runs->prefix_command();
  runs->callback([a, runs, &status] {
    a->words = runs->remaining();
    const auto done = execute(*a);
    status = done ? 0 : os::fail(done.error());
  });
  add("down", "take it down, also one whose `up` was ended", down);
}

}  // namespace weft::cli
