#include "lab/lab_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "fabric/address.h"
#include "fabric/forward.h"
#include "softswitch/frame_socket.h"

namespace weft::lab {
namespace {

using fabric::HostIndex;
using fabric::LinkId;
using fabric::LinkKind;
using fabric::NodeId;
using fabric::SwitchId;
using fabric::Tier;
using fabric::Topology;

constexpr std::uint32_t kUsidPrefixBits = 48;  // block and one uSID
// prefix of the hosts' own addresses in a plane (not uSID addresses)
constexpr std::uint32_t kPlanePrefixBits = 64;
constexpr std::uint32_t kMtuMin = 1280, kMtuMax = 65'000;

bool is_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= kLabNameMax && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), fits);
}

std::uint32_t tier_number(Tier tier) {
  return static_cast<std::uint32_t>(tier) - static_cast<std::uint32_t>(Tier::kT0);
}

// The short name of a node, such as "h3" or "t1-0". A switch's interface to that node has this
// name.
std::string short_name(const NodeId& node) {
  if (node.tier == Tier::kHost) return fmt::format("h{}", node.index);
  return fmt::format("t{}-{}", tier_number(node.tier), node.index);
}

std::string netns_name(const std::string& lab, const NodeId& node) {
  if (node.tier == Tier::kHost) return fmt::format("{}h{}", lab_prefix(lab), node.index);
  return fmt::format("{}p{}.t{}.{}", lab_prefix(lab), node.plane, tier_number(node.tier),
                     node.index);
}

// The address that consists of this node's uSID alone. It is the address of a switch, and of a
// packet that has only this uSID left.
Ipv6 usid_address(const Topology& topology, const NodeId& node) {
  fabric::UsidList list;
  list.usid[0] = fabric::usid_of(topology, node);
  return fabric::address_of(list);
}

Error refused(std::string message) { return {ErrorKind::kInvalid, "lab: " + std::move(message)}; }

}  // namespace

bool operator==(const LabSpec& a, const LabSpec& b) {
  const fabric::TopologySpec &s = a.topology, &t = b.topology;
  return a.name == b.name && a.switches == b.switches && a.mtu == b.mtu &&
         a.queue_bytes == b.queue_bytes && a.last_hop_queue_bytes == b.last_hop_queue_bytes &&
         a.nic_queue_bytes == b.nic_queue_bytes && a.offloads == b.offloads &&
         a.user_namespace == b.user_namespace && s.shape == t.shape && s.hosts == t.hosts &&
         s.planes == t.planes && s.hosts_per_t0 == t.hosts_per_t0 && s.t1_count == t.t1_count &&
         s.t0_per_pod == t.t0_per_pod && s.t1_per_pod == t.t1_per_pod &&
         s.t2_per_t1 == t.t2_per_t1 && s.layout == t.layout && s.rails == t.rails &&
         s.host_rate == t.host_rate && s.fabric_rate == t.fabric_rate;
}

std::string lab_prefix(const std::string& name) { return "weft." + name + "."; }

Result<LabPlan> LabPlan::make(const LabSpec& spec) {
  if (!is_name(spec.name)) {
    return refused(
        fmt::format("name \"{}\"; expected 1 to {} letters, digits and '-', not '-' first",
                    spec.name, kLabNameMax));
  }
  if (spec.mtu < kMtuMin || spec.mtu > kMtuMax)
    return refused(fmt::format("MTU {}; expected {} to {}", spec.mtu, kMtuMin, kMtuMax));
  fabric::TopologySpec checked = spec.topology;
  checked.needs_usids = true;
  WEFT_TRY(const Topology topology, Topology::make(checked));
  if (topology.host_count() > kLabHostsMax) {
    return refused(fmt::format("{} hosts; one machine holds {} as namespaces, take fewer",
                               topology.host_count(), kLabHostsMax));
  }
  const bool software = spec.switches == LabSwitches::kSoftware;
  if (software && spec.mtu > softswitch::LiveFabric::kPacketSizeMax) {
    return refused(fmt::format("MTU {}; the software switch takes packets of up to {} bytes",
                               spec.mtu, softswitch::LiveFabric::kPacketSizeMax));
  }
  for (LinkId link = 0; software && link < topology.link_count(); ++link) {
    if (topology.rate(link).bits_per_second() == 0)
      return refused("a link without a rate; the software switch holds every link to one");
  }
  const std::uint32_t namespaces = topology.host_count() + topology.switch_count();
  if (!software && namespaces > kLabNamespacesMax) {
    return refused(fmt::format(
        "{} hosts and {} switches; one machine holds {} namespaces, take fewer switches or planes",
        topology.host_count(), topology.switch_count(), kLabNamespacesMax));
  }
  return LabPlan(spec, topology);
}

LabPlan::LabPlan(const LabSpec& spec, const Topology& topology)
    : spec_(spec), topology_(topology), interface_of_(topology.link_count()) {
  const auto add = [&](const NodeId& id) {
    nodes_.push_back({.id = id,
                      .netns = netns_name(spec_.name, id),
                      .interfaces = {},
                      .addresses = {},
                      .routes = {}});
  };
  for (HostIndex host = 0; host < topology_.host_count(); ++host) add({0, Tier::kHost, host});
  if (is_software()) {
    add({0, Tier::kT0, 0});
    nodes_.back().netns = lab_prefix(spec_.name) + "switch";
    nodes_.back().software = true;
    add_interfaces();
    for (LabNode& node : nodes_) {
      if (node.is_host()) add_host(node);
    }
    return;
  }
  for (std::uint32_t plane = 0; plane < topology_.plane_count(); ++plane) {
    for (const Tier tier : {Tier::kT0, Tier::kT1, Tier::kT2}) {
      for (std::uint32_t i = 0; i < topology_.switch_count(tier); ++i) add({plane, tier, i});
    }
  }
  add_interfaces();
  for (LabNode& node : nodes_) node.is_host() ? add_host(node) : add_switch(node);
}

std::uint32_t LabPlan::index_of(const NodeId& node) const {
  if (node.tier == Tier::kHost) return node.index;
  if (is_software()) return topology_.host_count();
  const std::uint32_t t0s = topology_.switch_count(Tier::kT0);
  const std::uint32_t t1s = topology_.switch_count(Tier::kT1);
  const std::uint32_t t2s = topology_.switch_count(Tier::kT2);
  std::uint32_t at = topology_.host_count() + node.plane * (t0s + t1s + t2s) + node.index;
  if (node.tier != Tier::kT0) at += t0s;
  if (node.tier == Tier::kT2) at += t1s;
  WEFT_ASSERT(at < nodes_.size());
  return at;
}

void LabPlan::add_interfaces() {
  for (LinkId link = 0; link < topology_.link_count(); ++link) {
    const auto ends = topology_.ends(link);
    if (is_software() && ends.from.tier != Tier::kHost) {
      if (!topology_.is_last_hop(link)) continue;
      interface_of_[link] = softswitch::switch_interface(
          {.host = ends.to.index, .plane = topology_.place(link).plane});
      nodes_.back().interfaces.push_back({.name = interface_of_[link], .out = link});
      continue;
    }
    interface_of_[link] = ends.from.tier == Tier::kHost
                              ? fmt::format("p{}", topology_.place(link).plane + 1)
                              : short_name(ends.to);
    nodes_[index_of(ends.from)].interfaces.push_back({.name = interface_of_[link], .out = link});
  }
}

void LabPlan::add_host(LabNode& node) const {
  const HostIndex host = node.id.index;
  for (std::uint32_t plane = 0; plane < topology_.plane_count(); ++plane) {
    const LinkId up = topology_.host_up(plane, host);
    const Ipv6 own = fabric::address_of(fabric::HostPort{.host = host, .plane = plane});
    node.addresses.push_back({.ip = own, .on = up});
    node.addresses.push_back({.ip = usid_address(topology_, {plane, Tier::kHost, host}), .on = up});
    const Ipv6 t0 = usid_address(topology_, {plane, Tier::kT0, topology_.t0_of(host)});
    node.routes.push_back(
        {.prefix = t0, .prefix_bits = kUsidPrefixBits, .via = {up}, .source = own});
    node.routes.push_back(
        {.prefix = {own.high, 0}, .prefix_bits = kPlanePrefixBits, .via = {up}, .source = own});
  }
}

void LabPlan::add_switch(LabNode& node) const {
  const Ipv6 own = usid_address(topology_, node.id);
  node.addresses.push_back({.ip = own, .on = fabric::kNoLink});  // source of its ICMP errors
  node.routes.push_back({.prefix = own, .prefix_bits = kUsidPrefixBits, .via = {}});
  for (const LabInterface& interface : node.interfaces) {
    const NodeId neighbour = topology_.ends(interface.out).to;
    // `neighbour` may be a host, whose NodeId has no plane; its uSID needs one.
    const NodeId in_plane{node.id.plane, neighbour.tier, neighbour.index};
    node.routes.push_back({.prefix = usid_address(topology_, in_plane),
                           .prefix_bits = kUsidPrefixBits,
                           .via = {interface.out}});
  }
  for (HostIndex host = 0; host < topology_.host_count(); ++host) {
    node.routes.push_back(
        {.prefix = fabric::address_of(fabric::HostPort{.host = host, .plane = node.id.plane}),
         .prefix_bits = 128,
         .via = towards(node.id, host)});
  }
}

// The next hops towards a host: the link down if the host is below this switch, otherwise all
// uplinks.
std::vector<LinkId> LabPlan::towards(const SwitchId& from, HostIndex host) const {
  const Topology& t = topology_;
  const std::uint32_t to_t0 = t.t0_of(host);
  std::vector<LinkId> links;
  if (from.tier == Tier::kT0) {
    if (to_t0 == from.index) return {t.host_down(from.plane, host)};
    for (std::uint32_t j = 0; j < t.uplinks_of_t0(); ++j)
      links.push_back(t.t0_up(from.plane, from.index, j));
    return links;
  }
  if (from.tier == Tier::kT1) {
    const std::uint32_t pod = t.pod_of_t1(from.index);
    if (pod == t.pod_of(to_t0))
      return {t.t0_down(from.plane, to_t0, from.index - pod * t.uplinks_of_t0())};
    for (std::uint32_t k = 0; k < t.uplinks_of_t1(); ++k)
      links.push_back(t.t1_up(from.plane, from.index, k));
    return links;
  }
  const std::uint32_t group = from.index / t.uplinks_of_t1();
  const std::uint32_t t1 = t.pod_of(to_t0) * t.uplinks_of_t0() + group;
  return {t.t1_down(from.plane, t1, from.index - group * t.uplinks_of_t1())};
}

LinkId LabPlan::upward(LinkId link) const {
  const LinkKind kind = topology_.place(link).kind;
  const bool is_up =
      kind == LinkKind::kHostUp || kind == LinkKind::kT0Up || kind == LinkKind::kT1Up;
  return is_up ? link : topology_.reverse(link);
}

std::optional<Rate> LabPlan::rate(LinkId link) const {
  const Rate rate = topology_.rate(link);
  if (rate.bits_per_second() == 0 || rate.bits_per_second() > kLabRateMaxBps) return std::nullopt;
  return rate;
}

std::uint64_t LabPlan::queue_bytes(LinkId link) const {
  if (topology_.is_last_hop(link)) return spec_.last_hop_queue_bytes;
  return topology_.place(link).kind == LinkKind::kHostUp ? spec_.nic_queue_bytes
                                                         : spec_.queue_bytes;
}

}  // namespace weft::lab
