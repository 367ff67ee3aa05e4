#include "cli/ctl_plan.h"

#include <fmt/core.h>

#include <set>

#include "cli/ctl_words.h"
#include "config/reader.h"

namespace weft::cli {
namespace {

using control::ControllerState;
using Changes = ControllerState::Changes;
using config::Reader;
using config::Report;
using config::Value;
using control::CtlResult;
using control::ProfileState;

constexpr config::Range kIds{0, kProfileIdMax};

std::vector<control::CtlEv> read_evs(Reader& in, Report& report, std::string_view key) {
  std::vector<control::CtlEv> out;
  for (const Value& item : in.tables(key)) {
    const auto ev = ev_from(item.text);
    if (!ev) {
      report.fail(item.at, ev.error().message);
      break;
    }
    out.push_back(*ev);
  }
  return out;
}

CtlPlan::Format read_format(Report& report, const Value& table) {
  Reader in(report, &table, "[[ev_format]]");
  CtlPlan::Format out;
  in.require("id", "the number of a profile");
  in.number("id", out.id, kIds);
  fabric::EvFormatMode mode = fabric::EvFormatMode::kStev;
  in.require("mode", "\"stev\", \"srv6\" or \"udp\"");
  in.choice("mode", mode, kFormatModes);
  out.change.mode = static_cast<std::uint32_t>(mode);
  std::vector<std::uint32_t> widths;
  in.numbers("widths", widths);
  if (in.has("widths")) out.change.widths = widths;
  in.choice("state", out.state, kProfileStates);
  in.finish();
  return out;
}

fabric::EvField read_field(Report& report, const Value& table) {
  Reader in(report, &table, "fields");
  fabric::EvField field;
  in.number("width", field.width);
  in.number("init", field.init_val);
  in.number("min", field.min);
  in.number("max", field.max);
  in.number("mask", field.mask);
  in.finish();
  return field;
}

CtlPlan::Ev read_ev(Report& report, const Value& table) {
  Reader in(report, &table, "[[ev]]");
  CtlPlan::Ev out;
  in.require("id", "the number of a profile");
  in.number("id", out.id, kIds);
  fabric::EvMode mode = fabric::EvMode::kAutomatic;
  in.require("mode", "\"auto\", \"explicit\" or \"generated\"");
  in.choice("mode", mode, kEvModes);
  out.change.mode = static_cast<std::uint32_t>(mode);
  const bool holds = mode != fabric::EvMode::kAutomatic;
  for (const char* key : {"format", "min_active", "count", "fields", "evs", "denied"}) {
    in.only_if(holds, key, "mode = \"explicit\" or \"generated\"");
  }
  in.only_if(mode == fabric::EvMode::kExplicit, "evs", "mode = \"explicit\"");
  std::optional<std::uint32_t> format;
  in.number("format", format);
  if (format) out.change.format = *format;
  in.number("count", out.change.count);
  out.evs = read_evs(in, report, "evs");
  out.denied = read_evs(in, report, "denied");
  if (!out.evs.empty()) {
    const auto count = static_cast<std::uint32_t>(out.evs.size());
    if (out.change.count.value_or(count) != count)
      report.fail(in.at(), fmt::format("count is {}, evs are {}; leave count out",
                                       *out.change.count, count));
    out.change.count = count;
  }
  in.number("min_active", out.change.min_active);
  if (holds && !out.change.min_active) out.change.min_active = out.change.count.value_or(0) / 4;
  std::vector<control::EvState> events;
  in.choices("events", events, kEvStates);
  out.change.event_mask = 0;
  for (const control::EvState event : events) {
    *out.change.event_mask |= static_cast<std::uint32_t>(event);
  }
  const auto fields = in.tables("fields");
  if (in.has("fields")) {
    out.change.fields.emplace();
    for (const Value& field : fields) out.change.fields->push_back(read_field(report, field));
  }
  in.choice("state", out.state, kProfileStates);
  in.finish();
  return out;
}

CtlPlan::Cc read_cc(Report& report, const Value& table) {
  Reader in(report, &table, "[[cc]]");
  CtlPlan::Cc out;
  in.require("id", "the number of a profile");
  in.number("id", out.id, kIds);
  control::CcAlgorithm algorithm = control::CcAlgorithm::kNscc;
  in.choice("algorithm", algorithm, kAlgorithms);
  out.change.algorithm = algorithm;
  in.choice("state", out.state, kProfileStates);
  if (algorithm == control::CcAlgorithm::kNscc) out.change.nscc.emplace();
  for (const Value& entry : table.children) {
    if (entry.key == "id" || entry.key == "algorithm" || entry.key == "state") continue;
    std::string value = entry.text;
    if (entry.kind == config::ValueKind::kInteger) value = std::to_string(entry.integer);
    if (entry.kind == config::ValueKind::kReal) value = fmt::format("{}", entry.real);
    if (!out.change.nscc) {
      report.fail(entry.key_at,
                  entry.key + " means nothing here; there is no algorithm to take it");
    } else if (const auto set = set_nscc(entry.key + "=" + value, *out.change.nscc); !set) {
      report.fail(entry.at, set.error().message);
    }
  }
  return out;
}

control::PortChange read_port(Report& report, const Value& table) {
  Reader in(report, &table, "[[port]]");
  control::PortChange out;
  in.require("port", "the number of a port, from 1");
  in.number("port", out.port, {1, world::kPortsMax});
  in.require("enabled", "true or false");
  in.boolean("enabled", out.enabled);
  in.finish();
  return out;
}

std::uint64_t number_of(const control::PortChange& port) { return port.port; }
template <typename Profile>
std::uint64_t number_of(const Profile& profile) {
  return profile.id;
}

// Reads all tables of one kind. Two tables with the same number are an error, because it would be
// unclear which is meant.
template <typename T>
void read_all(Reader& in, Report& report, const char* kind, T (*read)(Report&, const Value&),
              std::vector<T>& out) {
  std::set<std::uint64_t> numbers;
  for (const Value& table : in.tables(kind)) {
    out.push_back(read(report, table));
    const std::uint64_t number = number_of(out.back());
    if (!numbers.insert(number).second)
      report.fail(table.at, fmt::format("[[{}]] {} is there twice", kind, number));
  }
}

template <typename Modify>
CtlResult<void> back_to_init(ProfileState from, Modify modify) {
  if (from == ProfileState::kOnline) WEFT_CHECK(modify(ProfileState::kOffline));
  if (from != ProfileState::kInit) WEFT_CHECK(modify(ProfileState::kInit));
  return {};
}

CtlResult<void> begin_anew(const CtlPlan::Ev& wanted, Changes& state) {
  return back_to_init(state.model().evs[wanted.id].state,
                      [&](ProfileState to) { return state.modify_ev(wanted.id, {.state = to}); });
}

CtlResult<void> carry_out(const CtlPlan::Ev& wanted, Changes& state) {
  if (wanted.state == ProfileState::kInit) return {};
  control::EvChange change = wanted.change;
  change.state = ProfileState::kOffline;
  WEFT_CHECK(state.modify_ev(wanted.id, change));
  control::EvOps replace{.op = control::EvOp::kReplace};
  for (const control::CtlEv& ev : wanted.evs) replace.entries.push_back({.ev_new = ev, .state = 1});
  if (!replace.entries.empty()) WEFT_CHECK(state.modify_ev(wanted.id, {.ops = replace}));
  control::EvOps deny{.op = control::EvOp::kModifyState};
  for (const control::CtlEv& ev : wanted.denied) {
    deny.entries.push_back({.ev = ev, .state = 4, .all_copies = true});
  }
  if (!deny.entries.empty()) WEFT_CHECK(state.modify_ev(wanted.id, {.ops = deny}));
  if (wanted.state == ProfileState::kOffline) return {};
  return state.modify_ev(wanted.id, {.state = ProfileState::kOnline});
}

CtlResult<void> carry_out(const CtlPlan::Format& wanted, Changes& state) {
  WEFT_CHECK(back_to_init(state.model().formats[wanted.id].state, [&](ProfileState to) {
    return state.modify_format(wanted.id, {.state = to});
  }));
  if (wanted.state == ProfileState::kInit) return {};
  control::FormatChange change = wanted.change;
  change.state = ProfileState::kOffline;
  WEFT_CHECK(state.modify_format(wanted.id, change));
  if (wanted.state == ProfileState::kOffline) return {};
  return state.modify_format(wanted.id, {.state = ProfileState::kOnline});
}

CtlResult<void> carry_out(const CtlPlan::Cc& wanted, Changes& state) {
  WEFT_CHECK(back_to_init(state.model().ccs[wanted.id].state, [&](ProfileState to) {
    return state.modify_cc(wanted.id, {.state = to});
  }));
  if (wanted.state == ProfileState::kInit) return {};
  control::CcChange change = wanted.change;
  change.state = ProfileState::kOffline;
  WEFT_CHECK(state.modify_cc(wanted.id, change));
  if (wanted.state == ProfileState::kOffline) return {};
  return state.modify_cc(wanted.id, {.state = ProfileState::kOnline});
}

// Adds the profile's kind and number to the message of an error.
CtlResult<void> with_profile_name(const char* kind, std::uint64_t id, const CtlResult<void>& done) {
  if (done) return {};
  return control::ctl_error(done.error().code,
                            fmt::format("{} {}: {}", kind, id, done.error().message));
}

CtlResult<void> carry_out(const CtlPlan& plan, Changes& state) {
  // EV profiles go to INIT before formats: a format cannot change while an EV profile uses it.
  for (const CtlPlan::Ev& wanted : plan.evs)
    WEFT_CHECK(with_profile_name("ev", wanted.id, begin_anew(wanted, state)));
  for (const CtlPlan::Format& wanted : plan.formats)
    WEFT_CHECK(with_profile_name("ev_format", wanted.id, carry_out(wanted, state)));
  for (const CtlPlan::Ev& wanted : plan.evs)
    WEFT_CHECK(with_profile_name("ev", wanted.id, carry_out(wanted, state)));
  for (const CtlPlan::Cc& wanted : plan.ccs)
    WEFT_CHECK(with_profile_name("cc", wanted.id, carry_out(wanted, state)));
  for (const control::PortChange& wanted : plan.ports)
    WEFT_CHECK(with_profile_name("port", wanted.port, state.modify_port(wanted)));
  return {};
}

}  // namespace

Result<CtlPlan> ctl_plan_from(std::string_view toml, std::string_view file_name) {
  WEFT_TRY(const Value document, config::parse_document(toml, file_name));
  Report report(file_name);
  Reader in(report, &document, "the file");
  CtlPlan plan;
  read_all(in, report, "ev_format", read_format, plan.formats);
  read_all(in, report, "ev", read_ev, plan.evs);
  read_all(in, report, "cc", read_cc, plan.ccs);
  read_all(in, report, "port", read_port, plan.ports);
  in.finish();
  if (report.failed()) return report.error();
  return plan;
}

CtlResult<void> carry_out(const CtlPlan& plan, ControllerState& state) {
  return state.change_together([&](Changes& changes) { return carry_out(plan, changes); });
}

}  // namespace weft::cli
