#include "lab/lab_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "softswitch/fault_text.h"

namespace weft::lab {
namespace {

using fabric::LinkId;

constexpr const char* kFirstLine = "weft-lab 1";

// Calls visit(name, number) for each whole number of a spec.
template <typename Spec, typename Visit>
void each_number(Spec& spec, Visit visit) {
  visit("hosts", spec.topology.hosts);
  visit("planes", spec.topology.planes);
  visit("hosts_per_t0", spec.topology.hosts_per_t0);
  visit("t1_count", spec.topology.t1_count);
  visit("t0_per_pod", spec.topology.t0_per_pod);
  visit("t1_per_pod", spec.topology.t1_per_pod);
  visit("t2_per_t1", spec.topology.t2_per_t1);
  visit("rails", spec.topology.rails);
  visit("mtu", spec.mtu);
  visit("queue_bytes", spec.queue_bytes);
  visit("last_hop_queue_bytes", spec.last_hop_queue_bytes);
  visit("nic_queue_bytes", spec.nic_queue_bytes);
}

std::optional<Rate> rate_from(std::uint64_t bps) {
  if (bps == 0) return Rate();
  if (bps < 1'000'000) return std::nullopt;
  return Rate::bps(bps);
}

bool take_number(LabState& state, const std::string& key, std::uint64_t value) {
  bool known = false;
  each_number(state.spec, [&](const char* name, auto& field) {
    if (key != name) return;
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    known = field == value;
  });
  return known;
}

bool take_rate(Rate& to, std::uint64_t bps) {
  const auto rate = rate_from(bps);
  if (rate) to = *rate;
  return rate.has_value();
}

// Parses one line. False if it is invalid.
bool take_line(LabState& state, const std::string& line) {
  std::istringstream in(line);
  std::string key;
  in >> key;
  if (key == "name") return static_cast<bool>(in >> state.spec.name);
  if (key == "keeper" || key == "software") {
    LabKeeper process;
    if (!(in >> process.pid >> process.start)) return false;
    (key == "keeper" ? state.keeper : state.software) = process;
    return true;
  }
  if (key == "impair") {
    const auto event = softswitch::parse_fault_event(line);
    if (event) state.faults.impairments.push_back(*event);
    return event.has_value();
  }
  std::uint64_t a = 0, b = 0, c = 0;
  if (!(in >> a)) return false;
  if (key == "shape") {
    state.spec.topology.shape = static_cast<fabric::Shape>(a);
    return a <= static_cast<std::uint64_t>(fabric::Shape::kThreeTier);
  }
  if (key == "switches") {
    state.spec.switches = static_cast<LabSwitches>(a);
    return a <= static_cast<std::uint64_t>(LabSwitches::kSoftware);
  }
  if (key == "layout") {
    state.spec.topology.layout = static_cast<fabric::Layout>(a);
    return a <= static_cast<std::uint64_t>(fabric::Layout::kRail);
  }
  if (key == "host_bps") return take_rate(state.spec.topology.host_rate, a);
  if (key == "fabric_bps") return take_rate(state.spec.topology.fabric_rate, a);
  if (key == "offloads") return (state.spec.offloads = a != 0, true);
  if (key == "user_namespace") return (state.spec.user_namespace = a != 0, true);
  if (key == "complete") return (state.complete = a != 0, true);
  if (key == "cut") return state.faults.cut.insert(static_cast<LinkId>(a)).second;
  if (key == "silent") return state.faults.silent.insert(static_cast<LinkId>(a)).second;
  if (key == "rate")
    return in >> b && b != 0 && take_rate(state.faults.rates[static_cast<LinkId>(a)], b);
  if (key == "loss") {
    if (!(in >> b >> c)) return false;
    state.faults.losses.push_back({.id = static_cast<std::uint32_t>(a),
                                   .link = static_cast<LinkId>(b),
                                   .ppm = static_cast<std::uint32_t>(c)});
    return true;
  }
  return take_number(state, key, a);
}

}  // namespace

std::string to_text(const LabState& state) {
  std::string text = fmt::format("{}\nname {}\n", kFirstLine, state.spec.name);
  if (state.keeper) text += fmt::format("keeper {} {}\n", state.keeper->pid, state.keeper->start);
  if (state.software)
    text += fmt::format("software {} {}\n", state.software->pid, state.software->start);
  text += fmt::format("complete {}\n", state.complete ? 1 : 0);
  text += fmt::format("switches {}\n", static_cast<int>(state.spec.switches));
  text += fmt::format("shape {}\n", static_cast<int>(state.spec.topology.shape));
  text += fmt::format("layout {}\n", static_cast<int>(state.spec.topology.layout));
  each_number(state.spec, [&](const char* name, const auto& field) {
    text += fmt::format("{} {}\n", name, field);
  });
  text += fmt::format("host_bps {}\n", state.spec.topology.host_rate.bits_per_second());
  text += fmt::format("fabric_bps {}\n", state.spec.topology.fabric_rate.bits_per_second());
  text += fmt::format("offloads {}\n", state.spec.offloads ? 1 : 0);
  text += fmt::format("user_namespace {}\n", state.spec.user_namespace ? 1 : 0);
  for (const LinkId link : state.faults.cut) text += fmt::format("cut {}\n", link);
  for (const LinkId link : state.faults.silent) text += fmt::format("silent {}\n", link);
  for (const auto& [link, rate] : state.faults.rates)
    text += fmt::format("rate {} {}\n", link, rate.bits_per_second());
  for (const LabFaults::Loss& loss : state.faults.losses)
    text += fmt::format("loss {} {} {}\n", loss.id, loss.link, loss.ppm);
  for (const fabric::FaultEvent& event : state.faults.impairments)
    text += softswitch::to_text(event) + "\n";
  return text;
}

Result<LabState> lab_state_from(const std::string& text) {
  std::istringstream in(text);
  LabState state;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const bool understood = number == 1 ? line == kFirstLine : take_line(state, line);
    if (!understood) {
      return Error{ErrorKind::kInvalid, fmt::format("line {}: {} is not of a lab of this version",
                                                    number, softswitch::shown(line))};
    }
  }
  // The plan must follow from the spec. We never write an invalid spec, so the text is damaged.
  const auto plan = LabPlan::make(state.spec);
  if (!plan) return plan.error();
  const std::uint32_t links = plan->topology().link_count();
  const auto is_there = [&](LinkId link) { return link < links; };
  const LabFaults& faults = state.faults;
  const bool sound =
      std::all_of(faults.cut.begin(), faults.cut.end(), is_there) &&
      std::all_of(faults.silent.begin(), faults.silent.end(), is_there) &&
      std::all_of(faults.losses.begin(), faults.losses.end(),
                  [&](const LabFaults::Loss& loss) { return is_there(loss.link); }) &&
      std::all_of(faults.rates.begin(), faults.rates.end(),
                  [&](const auto& entry) { return is_there(entry.first); }) &&
      std::all_of(faults.impairments.begin(), faults.impairments.end(), [&](const auto& event) {
        return event.place != fabric::FaultPlace::kLink || is_there(event.link);
      });
  if (!sound) return Error{ErrorKind::kInvalid, "a fault on a link that is not there"};
  return state;
}

}  // namespace weft::lab
