#include "cli/lab_switch.h"

#include <fmt/core.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cli/argument_checks.h"
#include "os/control_socket.h"
#include "os/say.h"
#include "run/load_scenario.h"
#include "run/switch_config.h"
#include "softswitch/frame_socket.h"
#include "softswitch/live_fabric_loop.h"
#include "softswitch/proxy_sockets.h"

namespace weft::cli {
namespace {

struct SwitchArguments {
  std::string file, control, request;
  std::uint64_t seed = 1;
  std::uint64_t spin_us = 0;
  bool sockets = false, icrc_full = false;
};

int fail(int status, const std::string& line) {
  os::say("weft: {}\n", line);
  return status;
}

// A descriptor that becomes readable on SIGTERM, SIGINT or SIGHUP. With handlers, a signal between
// a check and a wait could be lost.
int stop_descriptor() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

Result<std::unique_ptr<softswitch::FabricEdge>> open_edge(const SwitchArguments& arguments,
                                                          const fabric::Topology& topology) {
  if (arguments.sockets) {
    WEFT_TRY(auto sockets,
             softswitch::ProxySockets::open(topology, {.icrc_full = arguments.icrc_full}));
    return std::unique_ptr<softswitch::FabricEdge>(std::move(sockets));
  }
  WEFT_TRY(softswitch::FrameSocket links, softswitch::FrameSocket::open(topology));
  return std::unique_ptr<softswitch::FabricEdge>(
      std::make_unique<softswitch::FrameSocket>(std::move(links)));
}

int run_switch(const SwitchArguments& arguments) {
  const auto scenario = run::load_scenario(arguments.file);
  if (!scenario) return fail(2, scenario.error().message);
  const auto topology = fabric::Topology::make(scenario->topology);
  if (!topology) return fail(2, topology.error().message);
  const int stop = stop_descriptor();
  if (stop < 0) return fail(1, "signalfd: not given by the system");
  std::optional<os::ControlSocket> control;
  if (!arguments.control.empty()) {
    auto listening = os::ControlSocket::listen(arguments.control);
    if (!listening) {
      close(stop);
      return fail(1, listening.error().message);
    }
    control.emplace(std::move(*listening));
  }
  auto edge = open_edge(arguments, *topology);
  if (!edge) {
    close(stop);
    return fail(1, edge.error().message);
  }
  softswitch::LiveFabricLoop loop(
      run::live_fabric_config(*scenario, *topology, arguments.seed), std::move(*edge),
      std::move(control), {.spin = Duration::us(static_cast<std::int64_t>(arguments.spin_us))});
  // The parent process waits for this line: from now on no packet is lost.
  fmt::print("{{\"ready\":true,\"hosts\":{},\"planes\":{},\"links\":{}}}\n", topology->host_count(),
             topology->plane_count(), topology->link_count());
  std::fflush(stdout);
  loop.run(stop);
  fmt::print("{}\n", loop.counters_json());
  close(stop);
  return 0;
}

int run_ask(const SwitchArguments& arguments) {
  const auto answer = os::ask(arguments.control, arguments.request);
  if (!answer) return fail(1, answer.error().message);
  if (answer->starts_with("error: ")) return fail(1, answer->substr(7));
  fmt::print("{}{}", *answer, answer->ends_with('\n') ? "" : "\n");
  return 0;
}

}  // namespace

void add_lab_switch(CLI::App& lab, int& status) {
  const auto arguments = std::make_shared<SwitchArguments>();
  CLI::App* run = lab.add_subcommand(
      "switch",
      "the software switch: a scenario's fabric between the interfaces h<H>p<P> of this "
      "network namespace, until SIGTERM; ends with its counters as JSON");
  run->add_option("FILE", arguments->file, "the scenario (TOML): its fabric counts")->required();
  run->add_option("--control", arguments->control, "the unix socket where it takes requests");
  run->add_option("--seed", arguments->seed, "of marks, trims and losses")->check(whole_number(0));
  run->add_option("--spin", arguments->spin_us,
                  "look instead of sleeping when a packet is due within so many us")
      ->check(whole_number(0));
  run->add_flag("--sockets", arguments->sockets,
                "between sockets on the loopback instead: hosts are 127.<100 + P>.<H + 1>.1 and "
                "known to each other as 127.<100 + P>.<H + 1>.2");
  run->add_flag("--icrc-full", arguments->icrc_full,
                "with --sockets: the hosts' ICRCs cover payload too");
  run->callback([arguments, &status] { status = run_switch(*arguments); });

  CLI::App* ask = lab.add_subcommand(
      "ask", "one request to a running switch: counters, links, \"fault EVENT\", \"delay ...\"");
  ask->add_option("SOCKET", arguments->control, "its --control")->required();
  ask->add_option("REQUEST", arguments->request, "see docs/lab.md")
      ->required()
      ->check(not_empty("counters, links or another request of docs/lab.md"));
  ask->callback([arguments, &status] { status = run_ask(*arguments); });
}

}  // namespace weft::cli
