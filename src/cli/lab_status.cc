#include "cli/lab_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fabric/address.h"
#include "fabric/forward.h"

namespace weft::cli {
namespace {

using fabric::HostIndex;
using fabric::LinkId;
using fabric::Tier;
using nlohmann::ordered_json;

// The faults in this direction of a link, or "up" if there are none.
std::string condition(const lab::Lab& lab, LinkId link) {
  const lab::LabFaults& faults = lab.state().faults;
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  if (faults.cut.contains(lab.plan().upward(link))) add("down");
  if (faults.silent.contains(link)) add("silent");
  for (const auto& loss : faults.losses) {
    if (loss.link == link) add(fmt::format("loss {:g}%", loss.ppm / 10'000.0));
  }
  if (const auto rate = faults.rates.find(link); rate != faults.rates.end())
    add(fmt::format("{} Mbps", rate->second.bits_per_second() / 1'000'000));
  return text.empty() ? "up" : text;
}

// The condition of a link in both directions; one text if both are equal.
std::string pair_condition(const lab::Lab& lab, LinkId up) {
  const std::string a = condition(lab, up);
  const std::string b = condition(lab, lab.plan().topology().reverse(up));
  return a == b ? a : fmt::format("{} (up), {} (down)", a, b);
}

Tier top_tier(const fabric::Topology& topology) {
  if (topology.switch_count(Tier::kT2) > 0) return Tier::kT2;
  return topology.switch_count(Tier::kT1) > 0 ? Tier::kT1 : Tier::kT0;
}

ordered_json hosts_json(const lab::Lab& lab) {
  const auto& topology = lab.plan().topology();
  ordered_json hosts = ordered_json::array();
  for (HostIndex host = 0; host < topology.host_count(); ++host) {
    ordered_json ports = ordered_json::array();
    for (std::uint32_t plane = 0; plane < topology.plane_count(); ++plane) {
      const LinkId up = topology.host_up(plane, host);
      ports.push_back(
          {{"plane", plane},
           {"interface", lab.plan().interface(up)},
           {"address", fabric::to_text(fabric::address_of({.host = host, .plane = plane}))},
           {"state", pair_condition(lab, up)}});
    }
    hosts.push_back({{"host", host}, {"namespace", lab.namespace_of(host)}, {"ports", ports}});
  }
  return hosts;
}

ordered_json switches_json(const lab::LabPlan& plan) {
  ordered_json switches = ordered_json::array();
  for (const lab::LabNode& node : plan.nodes()) {
    if (node.is_host() || node.software) continue;
    switches.push_back({{"plane", node.id.plane},
                        {"tier", static_cast<int>(node.id.tier) - static_cast<int>(Tier::kT0)},
                        {"switch", node.id.index},
                        {"namespace", node.netns},
                        {"address", fabric::to_text(node.addresses.front().ip)}});
  }
  return switches;
}

ordered_json links_json(const lab::Lab& lab, const std::vector<lab::LabTraffic>& traffic) {
  const auto& plan = lab.plan();
  ordered_json links = ordered_json::array();
  for (LinkId link = 0; link < plan.topology().link_count(); ++link) {
    const auto rate = plan.rate(link);
    links.push_back(
        {{"link", link},
         {"text", plan.topology().describe(link)},
         {"from", plan.sender(link).netns},
         {"interface", plan.interface(link)},
         {"to", plan.receiver(link).netns},
         {"state", condition(lab, link)},
         {"mbps", rate ? ordered_json(rate->bits_per_second() / 1'000'000) : ordered_json(nullptr)},
         {"packets", traffic[link].packets},
         {"bytes", traffic[link].bytes},
         {"packets_received", traffic[link].packets_received}});
    if (!plan.is_software()) continue;
    links.back()["trims"] = traffic[link].trims;
    links.back()["ecn_marks"] = traffic[link].ecn_marks;
    links.back()["drops"] = traffic[link].drops;
  }
  return links;
}

ordered_json software_json(const lab::Lab& lab) {
  return {{"pid", lab.state().software ? lab.state().software->pid : 0},
          {"alive", lab.is_switch_alive()},
          {"namespace", lab.plan().nodes().back().netns},
          {"control", lab.control()}};
}

// The first part of the lab that no longer exists, so that packets do not pass; otherwise empty.
std::optional<Error> what_is_gone(const lab::Lab& lab,
                                  const std::vector<lab::LabTraffic>& traffic) {
  const auto& plan = lab.plan();
  if (plan.is_software() && !lab.is_switch_alive()) {
    return Error{
        ErrorKind::kSystem,
        fmt::format("lab {}: its software switch is gone, nothing passes", plan.spec().name)};
  }
  const auto gone =
      std::find_if(traffic.begin(), traffic.end(), [](const auto& t) { return t.missing; });
  if (gone == traffic.end()) return std::nullopt;
  const auto link = static_cast<LinkId>(gone - traffic.begin());
  return Error{ErrorKind::kSystem,
               fmt::format("lab {0}: {1} has no interface {2} any more; `weft lab down --name {0}` "
                           "and build it again",
                           plan.spec().name, plan.sender(link).netns, plan.interface(link))};
}

std::string software_text(const lab::Lab& lab) {
  const auto& process = lab.state().software;
  if (!lab.is_switch_alive()) {
    return fmt::format("the software switch{} is GONE, nothing passes; `weft lab down --name {}`",
                       process ? fmt::format(", process {},", process->pid) : "",
                       lab.plan().spec().name);
  }
  return fmt::format("software, process {}, {}; asked at {}", process->pid, rate_text(lab.plan()),
                     lab.control());
}

std::string header(const lab::Lab& lab) {
  const auto& plan = lab.plan();
  const auto& topology = plan.topology();
  std::string switches;
  for (const auto& [tier, name] :
       {std::pair{Tier::kT0, "T0"}, {Tier::kT1, "T1"}, {Tier::kT2, "T2"}}) {
    const std::uint32_t count = topology.switch_count(tier);
    if (count > 0) switches += fmt::format(", {} {}", count, name);
  }
  const std::string forwards =
      plan.is_software()
          ? software_text(lab)
          : fmt::format("the kernel's SRv6 uSIDs, {}; no ECN, no trimming{}", rate_text(plan),
                        plan.spec().offloads ? "" : "; hosts send single packets");
  return fmt::format(
      "{}: {} hosts, {} planes{} a plane; {} namespaces, MTU {}, {}\n"
      "switches: {}\n",
      plan.spec().name, topology.host_count(), topology.plane_count(), switches,
      plan.nodes().size(), plan.spec().mtu,
      lab.state().keeper ? fmt::format("user namespace of process {}", lab.state().keeper->pid)
                         : "root",
      forwards);
}

std::string hosts_table(const lab::Lab& lab) {
  const auto& topology = lab.plan().topology();
  std::string text = fmt::format("\n{:>4}  {:<22} {:<5} {:<18} {}\n", "host", "namespace", "port",
                                 "address", "link");
  for (HostIndex host = 0; host < topology.host_count(); ++host) {
    for (std::uint32_t plane = 0; plane < topology.plane_count(); ++plane) {
      const LinkId up = topology.host_up(plane, host);
      text += fmt::format("{:>4}  {:<22} {:<5} {:<18} {}\n", host, lab.namespace_of(host),
                          lab.plan().interface(up),
                          fabric::to_text(fabric::address_of({.host = host, .plane = plane})),
                          pair_condition(lab, up));
    }
  }
  return text;
}

// A table of the ports of the highest tier's switches, and of all other links between switches that
// have a fault.
std::string ports_table(const lab::Lab& lab, const std::vector<lab::LabTraffic>& traffic) {
  const auto& plan = lab.plan();
  std::string text =
      fmt::format("\n{:<28} {:>12} {:>12}  {}\n", "port", "sent", "received", "link");
  for (const lab::LabNode& node : plan.nodes()) {
    if (node.is_host()) continue;
    for (const lab::LabInterface& interface : node.interfaces) {
      const LinkId out = interface.out, in = plan.topology().reverse(out);
      const LinkId up = plan.upward(out);
      const std::string state = pair_condition(lab, up);
      const bool is_top = node.id.tier == top_tier(plan.topology());
      const bool is_broken_core =
          out != up && plan.topology().place(up).kind != fabric::LinkKind::kHostUp && state != "up";
      if (!is_top && !is_broken_core) continue;
      text += fmt::format("{:<28} {:>12} {:>12}  {}\n", node.netns + " " + interface.name,
                          traffic[out].packets, traffic[in].packets_received, state);
    }
  }
  return text;
}

// A table of all links that carried or lost a packet, or have a fault.
std::string links_table(const lab::Lab& lab, const std::vector<lab::LabTraffic>& traffic) {
  std::string text = fmt::format("\n{:<28} {:>10} {:>10} {:>10} {:>10}  {}\n", "link", "packets",
                                 "trims", "marks", "drops", "state");
  for (LinkId link = 0; link < traffic.size(); ++link) {
    const lab::LabTraffic& t = traffic[link];
    const std::string state = condition(lab, link);
    if (t.packets + t.drops == 0 && state == "up") continue;
    text += fmt::format("{:<28} {:>10} {:>10} {:>10} {:>10}  {}\n",
                        lab.plan().topology().describe(link), t.packets, t.trims, t.ecn_marks,
                        t.drops, state);
  }
  return text;
}

}  // namespace

std::string rate_text(const lab::LabPlan& plan) {
  const auto& spec = plan.topology().spec();
  const auto held = [](Rate rate) {
    if (rate.bits_per_second() > lab::kLabRateMaxBps) return std::string("not held to their rate");
    return fmt::format("at {} Mbps", rate.bits_per_second() / 1'000'000);
  };
  const std::string host = held(spec.host_rate);
  if (spec.fabric_rate == spec.host_rate || plan.topology().uplinks_of_t0() == 0)
    return "links " + host;
  return fmt::format("links of hosts {}, of switches {}", host, held(spec.fabric_rate));
}

Result<LabStatus> lab_status(const lab::Lab& lab) {
  const auto& plan = lab.plan();
  auto known = lab.traffic();
  // If a software switch is dead, its counters are lost; the status reports it in its own line.
  if (!known && !plan.is_software()) return known.error();
  const auto traffic =
      known ? std::move(*known) : std::vector<lab::LabTraffic>(plan.topology().link_count());
  LabStatus status;
  status.json = {{"name", plan.spec().name},        {"mode", lab.state().keeper ? "user" : "root"},
                 {"mtu", plan.spec().mtu},          {"offloads", plan.spec().offloads},
                 {"rates", rate_text(plan)},        {"hosts", hosts_json(lab)},
                 {"switches", switches_json(plan)}, {"links", links_json(lab, traffic)}};
  if (plan.is_software()) status.json["software"] = software_json(lab);
  status.broken = what_is_gone(lab, traffic);
  status.table = header(lab) + hosts_table(lab) +
                 (plan.is_software() ? links_table(lab, traffic) : ports_table(lab, traffic));
  return status;
}

}  // namespace weft::cli
