#include "cli/ctl_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/argument_checks.h"
#include "cli/ctl_probe.h"
#include "cli/ctl_target.h"
#include "cli/ctl_verbs.h"
#include "cli/ctl_words.h"
#include "config/units.h"

namespace weft::cli {
namespace {

using nlohmann::json;

Error misuse(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }

// --- the commands ------------------------------------------------------------------------------

using Arguments = std::shared_ptr<ProfileArguments>;

void add_ctl_flags(CLI::App& command, CtlFlags& flags) {
  command.add_option("--device", flags.device, "the device (default weft0)")
      ->check(not_empty("the name of a device, as weft0"));
  command.add_flag("--json", flags.json, "one JSON object on stdout");
  add_setting_flags(command, flags.settings);
}

CLI::App* add_verb(CLI::App& noun, const char* name, const char* help, const Arguments& a,
                   int& status, std::function<Result<void>()> body) {
  CLI::App* const verb = noun.add_subcommand(name, help);
  add_ctl_flags(*verb, a->flags);
  verb->callback([&status, body = std::move(body)] { run_ctl(status, body); });
  return verb;
}

void add_id(CLI::App& verb, const Arguments& a, bool required) {
  auto* const option =
      verb.add_option("id", a->id, "number of the profile")->check(whole_number(0, kProfileIdMax));
  if (required) option->required();
}

void add_states(CLI::App& verb, const Arguments& a) {
  verb.add_option("--state", a->state, "move it to init, offline or online")
      ->check(not_empty("init, offline or online"));
  verb.add_option("--cur-state", a->cur_state, "only if it is in this state")
      ->check(not_empty("init, offline or online"));
}

void add_file_verb(CLI::App& noun, const char* key, int& status) {
  const auto a = std::make_shared<ProfileArguments>();
  CLI::App* const verb = add_verb(noun, "apply", "What a file says of these, begun anew", a, status,
                                  [a, key] { return apply_file(a->flags, a->file, key); });
  verb->add_option("--file", a->file, "TOML (docs/controller.md)")
      ->required()
      ->check(not_empty("a file as in docs/controller.md"));
}

void add_formats(CLI::App& ctl, int& status) {
  CLI::App* const noun = ctl.add_subcommand("ev-format", "EV format profiles");
  noun->require_subcommand(1);
  auto a = std::make_shared<ProfileArguments>();
  add_id(*add_verb(*noun, "show", "What they are", a, status, [a] { return show_formats(*a); }), a,
         false);
  a = std::make_shared<ProfileArguments>();
  CLI::App* const set =
      add_verb(*noun, "set", "Modify one", a, status, [a] { return set_format(*a); });
  add_id(*set, a, true);
  add_states(*set, a);
  set->add_option("--mode", a->mode, "stev, srv6 or udp")->check(not_empty("stev, srv6 or udp"));
  set->add_option("--widths", a->widths, "bits of each field, as 16,16")
      ->check(not_empty("bits of each field, as 16,16"));
  add_file_verb(*noun, "ev_format", status);
}

void add_evs(CLI::App& ctl, int& status) {
  CLI::App* const noun = ctl.add_subcommand("ev", "EV profiles and their EVs");
  noun->require_subcommand(1);
  auto a = std::make_shared<ProfileArguments>();
  add_id(*add_verb(*noun, "show", "What they are", a, status, [a] { return show_evs(*a); }), a,
         false);
  a = std::make_shared<ProfileArguments>();
  CLI::App* const set = add_verb(*noun, "set", "Modify one", a, status, [a] { return set_ev(*a); });
  add_id(*set, a, true);
  add_states(*set, a);
  set->add_option("--mode", a->mode, "auto, explicit or generated")
      ->check(not_empty("auto, explicit or generated"));
  set->add_option("--format", a->format, "number of its EV format profile")
      ->check(whole_number(0, kProfileIdMax));
  set->add_option("--count", a->count, "how many EVs")->check(whole_number(0, ~0u));
  set->add_option("--min-active", a->min_active, "how many stay in use at least")
      ->check(whole_number(0, ~0u));
  set->add_option("--events", a->events, "good,assumed-bad or none")
      ->check(not_empty("good, assumed-bad, both with a comma, or none"));
  set->add_option("--field", a->fields, "WIDTH:INIT:MIN:MAX:MASK, once a field");
  a = std::make_shared<ProfileArguments>();
  CLI::App* const replace = add_verb(*noun, "replace", "Replace EVs", a, status,
                                     [a] { return change_evs(*a, control::EvOp::kReplace); });
  add_id(*replace, a, true);
  replace->add_option("--ev", a->evs, "which, as f3b04256@1; none: entries that are not populated");
  replace->add_option("--with", a->replacements, "by what");
  replace->add_option("--ev-state", a->ev_state, "good or denied");
  replace->add_flag("--all-copies", a->all_copies, "every entry that is the same");
  a = std::make_shared<ProfileArguments>();
  CLI::App* const state = add_verb(*noun, "state", "Set the state of EVs", a, status,
                                   [a] { return change_evs(*a, control::EvOp::kModifyState); });
  add_id(*state, a, true);
  state->add_option("--ev", a->evs, "which, as f3b04256@1");
  state->add_option("--ev-state", a->ev_state, "good or denied")->required();
  state->add_flag("--all-copies", a->all_copies, "every entry that is the same");
  add_file_verb(*noun, "ev", status);
}

void add_ccs(CLI::App& ctl, int& status) {
  CLI::App* const noun = ctl.add_subcommand("cc", "CC profiles");
  noun->require_subcommand(1);
  auto a = std::make_shared<ProfileArguments>();
  add_id(*add_verb(*noun, "show", "What they are", a, status, [a] { return show_ccs(*a); }), a,
         false);
  a = std::make_shared<ProfileArguments>();
  CLI::App* const set = add_verb(*noun, "set", "Modify one", a, status, [a] { return set_cc(*a); });
  add_id(*set, a, true);
  add_states(*set, a);
  set->add_option("--algorithm", a->algorithm, "uet-1.0-nscc, or none: no congestion control")
      ->check(not_empty("uet-1.0-nscc or none"));
  set->add_option("--set", a->config, "a parameter of NSCC as gamma=0.8; default: derived ones")
      ->check(not_empty("a parameter of NSCC as gamma=0.8, or default"));
  add_file_verb(*noun, "cc", status);
}

struct PortArguments {
  CtlFlags flags;
  std::uint32_t port = 0;
  bool enable = false, disable = false;
};

Result<void> run_port(const PortArguments& a) {
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  if (a.enable || a.disable) {
    if (a.port == 0) return misuse("which port?; expected its number, from 1");
    return report_change(a.flags, target,
                         target.state->modify_port({.port = a.port, .enabled = a.enable}));
  }
  WEFT_TRY(const auto model, model_of(target));
  json list = json::array();
  for (std::uint32_t port = 1; port <= world::kPortsMax; ++port) {
    const auto enabled = control::is_port_enabled(*model, target.state->shape(), port);
    if (!enabled || (a.port != 0 && a.port != port)) continue;
    list.push_back({{"port", port}, {"enabled", *enabled}});
  }
  if (list.empty()) {
    return Error{ErrorKind::kNotFound,
                 fmt::format("the device has no port {}; `weft ctl port` shows "
                             "those it has",
                             a.port)};
  }
  if (a.flags.json) {
    fmt::print("{}\n", json{{"ports", list}}.dump());
  } else {
    for (const json& port : list) {
      fmt::print("{:>3}  {}\n", port["port"].get<int>(),
                 port["enabled"].get<bool>() ? "enabled" : "disabled");
    }
  }
  return {};
}

struct ProbeArguments {
  CtlFlags flags;
  ProbeRequest request;
  std::string timeout = "100ms";
  std::vector<std::string> evs;
  std::string format;
};

Result<void> run_probe(ProbeArguments& a) {
  for (const std::string& text : a.evs) {
    WEFT_TRY(const control::CtlEv ev, ev_from(text));
    a.request.evs.push_back(ev);
  }
  if (!a.evs.empty()) {
    WEFT_TRY(a.request.format, named("--format", a.format, kFormatModes));
  }
  const auto timeout = config::duration_from(a.timeout);
  if (!timeout) return misuse("--timeout " + timeout.error());
  a.request.timeout = *timeout;
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  if (target.scope == control::DeviceScope::kSystem || a.request.port_status) {
    if (const auto may = target.state->check_permission(); !may) return from_ctl(may.error());
  }
  WEFT_TRY(const auto rows, run_probes(target, a.request));
  std::size_t missing = 0;
  json list = json::array();
  for (const ProbeAnswer& row : rows) {
    missing += row.answer ? 0 : 1;
    const std::string ev = fmt::format("{:08x}@{}", row.ev, row.port);
    json object = {
        {"id", row.id}, {"port", row.port}, {"ev", ev}, {"answered", row.answer.has_value()}};
    object["rtt_ns"] = row.answer ? json(row.answer->rtt.ns()) : json(nullptr);
    if (row.named) object["named"] = text_of(*row.named);
    list.push_back(object);
    if (a.flags.json) continue;
    const std::string what =
        row.answer ? fmt::format("rtt {} us", static_cast<double>(row.answer->rtt.ns()) / 1000)
                   : "no answer";
    fmt::print("{:>4}  {}  {}{}\n", row.id, ev, what,
               row.named ? "  for " + text_of(*row.named) : "");
  }
  if (a.flags.json) fmt::print("{}\n", json{{"requests", list}, {"missing", missing}}.dump());
  if (missing == 0) return {};
  return Error{
      ErrorKind::kSystem,
      fmt::format("{} of {} requests had no answer within {}{}", missing, rows.size(), a.timeout,
                  a.request.port_status ? "; only who has QPs with this process answers a "
                                          "port status update, and it has none"
                                        : "")};
}

void add_probe(CLI::App& ctl, int& status) {
  const auto a = std::make_shared<ProbeArguments>();
  CLI::App* const probe = ctl.add_subcommand("probe", "EV probes to a host, and its answers");
  add_ctl_flags(*probe, a->flags);
  probe->add_option("--to", a->request.to, "an address of it, in any plane")
      ->required()
      ->check(not_empty("an address of a host"));
  auto* const ports =
      probe->add_option("--port", a->request.ports, "over these ports, from 1 (default: all)")
          ->check(whole_number(1, 255));
  auto* const evs =
      probe->add_option("--ev", a->evs, "or by this EV, as f3b04256@1; once for each");
  auto* const format = probe->add_option("--format", a->format, "of --ev: stev, srv6 or udp");
  evs->excludes(ports)->needs(format);
  format->needs(evs);
  probe
      ->add_option("--count", a->request.count,
                   "so many a port, each by another EV, or by each --ev")
      ->check(whole_number(1, 1024));
  probe->add_option("--timeout", a->timeout, "wait that long for answers (default 100ms)");
  probe->add_option("--dscp", a->request.dscp, "46: with control packets; else with data")
      ->check(whole_number(0, 63));
  probe
      ->add_option("--port-status", a->request.port_status,
                   "a port status update instead: bit N, port N is reachable")
      ->check(whole_number(0, ~0u));
  probe->callback([a, &status] { run_ctl(status, [a] { return run_probe(*a); }); });
}

struct EventArguments {
  CtlFlags flags;
  EventRequest request;
  std::string timeout;
};

void add_events(CLI::App& ctl, int& status) {
  const auto a = std::make_shared<EventArguments>();
  CLI::App* const events = ctl.add_subcommand("events", "EV events as they come, until Ctrl-C");
  add_ctl_flags(*events, a->flags);
  events->add_option("--count", a->request.count, "end after so many")->check(whole_number(1));
  events->add_option("--timeout", a->timeout, "end after that long")
      ->check(not_empty("a duration, as 10s"));
  events->callback([a, &status] {
    run_ctl(status, [a]() -> Result<void> {
      if (!a->timeout.empty()) {
        const auto timeout = config::duration_from(a->timeout);
        if (!timeout) return misuse("--timeout " + timeout.error());
        a->request.timeout = *timeout;
      }
      a->request.json = a->flags.json;
      WEFT_TRY(CtlTarget target, open_ctl_target(a->flags));
      return print_events(target, a->request);
    });
  });
}

}  // namespace

void add_ctl_command(CLI::App& app, int& status) {
  CLI::App* const ctl = app.add_subcommand(
      "ctl", "Profiles, ports, probes and events of a device (docs/controller.md)");
  ctl->require_subcommand(1);
  const auto flags = std::make_shared<CtlFlags>();
  CLI::App* const device =
      ctl->add_subcommand("device", "What the device can do, and where its state is");
  add_ctl_flags(*device, *flags);
  device->callback([flags, &status] { run_ctl(status, [flags] { return show_device(*flags); }); });
  add_formats(*ctl, status);
  add_evs(*ctl, status);
  add_ccs(*ctl, status);
  const auto port = std::make_shared<PortArguments>();
  CLI::App* const ports = ctl->add_subcommand("port", "The administrative state of ports");
  add_ctl_flags(*ports, port->flags);
  ports->add_option("port", port->port, "its number, from 1")
      ->check(whole_number(1, world::kPortsMax));
  auto* const enable = ports->add_flag("--enable", port->enable, "let it carry traffic");
  ports->add_flag("--disable", port->disable, "down, whatever its carrier")->excludes(enable);
  ports->callback([port, &status] { run_ctl(status, [port] { return run_port(*port); }); });
  add_probe(*ctl, status);
  add_events(*ctl, status);
  add_file_verb(*ctl, "", status);
}

}  // namespace weft::cli
