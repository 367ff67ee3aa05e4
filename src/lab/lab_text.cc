#include "lab/lab_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/prng.h"
#include "fabric/address.h"
#include "softswitch/fault_text.h"
#include "softswitch/frame_socket.h"

namespace weft::lab {
namespace {

using fabric::LinkId;

// The address of the other end of any link; one name is enough, because a link has two ends. No
// interface owns this address: it is a permanent neighbour entry, and there is no neighbour
// discovery.
constexpr const char* kPeer = "fe80::1";
// A uSID route needs an interface that is always up. A switch's links may go down, and the kernel
// refuses the loopback, so each switch has a veth pair for these routes.
constexpr const char* kUsidInterface = "usid0";
constexpr const char* kUsidPeer = "usid1";
constexpr std::uint32_t kPpm = 1'000'000;

std::string mac(LinkId link) { return softswitch::to_text(softswitch::link_mac(link)); }

std::string neighbour_line(const LabPlan& plan, LinkId out) {
  return fmt::format("neigh replace {} lladdr {} dev {} nud permanent\n", kPeer,
                     mac(plan.topology().reverse(out)), plan.interface(out));
}

std::string route_line(const LabPlan& plan, const LabRoute& route) {
  std::string line =
      fmt::format("route replace {}/{}", fabric::to_text(route.prefix), route.prefix_bits);
  if (route.via.empty()) {
    line += fmt::format(" encap seg6local action End flavors next-csid lblen 32 nflen 16 dev {}",
                        kUsidInterface);
  } else if (route.via.size() == 1) {
    line += fmt::format(" via {} dev {}", kPeer, plan.interface(route.via[0]));
  }
  if (route.source) line += " src " + fabric::to_text(*route.source);
  if (route.via.size() > 1) {
    for (const LinkId link : route.via)
      line += fmt::format(" nexthop via {} dev {}", kPeer, plan.interface(link));
  }
  return line + "\n";
}

}  // namespace

std::string netns_batch(const LabPlan& plan) {
  std::string text;
  for (const LabNode& node : plan.nodes()) text += fmt::format("netns add {}\n", node.netns);
  return text;
}

std::string wire_batch(const LabPlan& plan) {
  std::string text;
  const std::uint32_t mtu = plan.spec().mtu;
  for (LinkId link = 0; link < plan.topology().link_count(); ++link) {
    if (plan.upward(link) != link || plan.interface(link).empty()) continue;
    const LinkId back = plan.topology().reverse(link);
    text += fmt::format(
        "link add {} netns {} mtu {} address {} type veth peer name {} netns {} mtu {} address "
        "{}\n",
        plan.interface(link), plan.sender(link).netns, mtu, mac(link), plan.interface(back),
        plan.sender(back).netns, mtu, mac(back));
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> sysctls(const LabNode& node) {
  std::vector<std::pair<std::string, std::string>> all;
  const auto set = [&](const char* name, const char* value) {
    all.emplace_back(std::string("/proc/sys/net/ipv6/") + name, value);
  };
  if (node.software) {
    // The kernel of the software switch's namespace must send nothing: no addresses, no answers, no
    // errors.
    set("conf/all/disable_ipv6", "1");
    set("conf/default/disable_ipv6", "1");
    return all;
  }
  // This line comes first, because it fails on a kernel without segment routing.
  set("conf/all/seg6_enabled", "1");
  set("conf/default/seg6_enabled", "1");
  set("conf/default/addr_gen_mode", "1");  // no addresses except ours
  set("conf/default/accept_dad", "0");
  set("conf/all/accept_dad", "0");
  set("conf/default/accept_ra", "0");
  set("conf/default/router_solicitations", "0");
  set("icmp/ratelimit", "0");  // an ICMP error for every packet without a route
  if (!node.is_host()) {
    set("conf/all/forwarding", "1");
    set("conf/default/forwarding", "1");
    // Routes over a link without carrier are not used, as in a real switch; a host's interface
    // keeps its routes.
    set("conf/all/ignore_routes_with_linkdown", "1");
    set("conf/default/ignore_routes_with_linkdown", "1");
    set("fib_multipath_hash_policy", "1");  // hash UDP and TCP ports too
  }
  return all;
}

std::string interface_batch(const LabPlan& plan, const LabNode& node) {
  std::string text = "link set lo up\n";
  if (!node.is_host() && !node.software) {
    text += fmt::format("link add {} type veth peer name {}\n", kUsidInterface, kUsidPeer);
    text += fmt::format("link set {} up\nlink set {} up\n", kUsidInterface, kUsidPeer);
  }
  for (const LabInterface& interface : node.interfaces) {
    text += fmt::format("link set {}{} up\n", interface.name,
                        node.is_host() && !plan.spec().offloads ? " gso_max_segs 1" : "");
  }
  for (const LabAddress& address : node.addresses) {
    text += fmt::format("addr add {}/128 dev {} nodad\n", fabric::to_text(address.ip),
                        address.on == fabric::kNoLink ? "lo" : plan.interface(address.on));
  }
  return text;
}

std::string route_batch(const LabPlan& plan, const LabNode& node) {
  std::string text;
  if (node.software) return text;
  for (const LabInterface& interface : node.interfaces) text += neighbour_line(plan, interface.out);
  for (const LabRoute& route : node.routes) text += route_line(plan, route);
  return text;
}

// Routes over several links need not be restored: they lead up, and only the upper end of a link is
// set down, where the route does not leave.
std::string restore_batch(const LabPlan& plan, LinkId out) {
  std::string text = neighbour_line(plan, out);
  for (const LabRoute& route : plan.sender(out).routes) {
    if (route.via == std::vector<LinkId>{out}) text += route_line(plan, route);
  }
  return text;
}

std::string rate_line(const LabPlan& plan, const LabFaults& faults, LinkId link) {
  if (plan.is_software()) return {};
  const auto fault = faults.rates.find(link);
  const std::optional<Rate> rate =
      fault != faults.rates.end() ? std::optional(fault->second) : plan.rate(link);
  if (!rate) return {};
  // The token bucket holds the bytes that a late timer would miss, and at least some packets.
  const std::uint64_t frame = plan.spec().mtu + 18;
  const std::uint64_t burst = std::max(8 * frame, rate->bytes_in(Duration::us(100)));
  return fmt::format("qdisc replace dev {} root tbf rate {}bit burst {} limit {}\n",
                     plan.interface(link), rate->bits_per_second(), burst,
                     std::max(plan.queue_bytes(link), 2 * frame));
}

std::string rate_batch(const LabPlan& plan, const LabFaults& faults, const LabNode& node) {
  std::string text;
  for (const LabInterface& interface : node.interfaces)
    text += rate_line(plan, faults, interface.out);
  return text;
}

std::string unlimited_line(const LabPlan& plan, LinkId link) {
  return fmt::format("qdisc replace dev {} root noqueue\n", plan.interface(link));
}

namespace {

// The request that sets the state of one direction of a link. A link-down with carrier=0 leaves the
// host its carrier, and gives it back if it had none.
std::string condition_request(const LabPlan& plan, const LabFaults& faults, LinkId link) {
  const bool cut = faults.cut.contains(plan.upward(link));
  const bool down = cut || faults.silent.contains(link);
  return fmt::format("fault {} link={} carrier={}", down ? "link-down" : "link-up", link,
                     down && !cut ? 0 : 1);
}

std::string rate_request(const LabPlan& plan, const LabFaults& faults, LinkId link) {
  const auto at = faults.rates.find(link);
  const Rate rate = at != faults.rates.end() ? at->second : plan.topology().rate(link);
  return fmt::format("rate link={} bps={}", link, rate.bits_per_second());
}

// All impairments as requests. They are numbered from 0 for the switch, because the ids of faults
// need not be unique.
std::vector<std::string> impairments_of(const LabFaults& faults) {
  std::vector<fabric::FaultEvent> events;
  for (const LabFaults::Loss& loss : faults.losses) {
    fabric::FaultEvent event{.action = fabric::FaultAction::kImpair, .link = loss.link};
    event.impairment.share_of_2_32 = chance_from_ppm(loss.ppm);
    events.push_back(event);
  }
  events.insert(events.end(), faults.impairments.begin(), faults.impairments.end());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].id = static_cast<std::uint32_t>(i);
    texts.push_back("fault " + softswitch::to_text(events[i]));
  }
  return texts;
}

}  // namespace

std::vector<std::string> switch_requests(const LabPlan& plan, const LabFaults& before,
                                         const LabFaults& after) {
  std::vector<std::string> requests;
  const auto add_changed = [&](auto request) {
    for (LinkId link = 0; link < plan.topology().link_count(); ++link) {
      std::string wanted = request(plan, after, link);
      if (wanted != request(plan, before, link)) requests.push_back(std::move(wanted));
    }
  };
  add_changed(condition_request);
  const auto old = impairments_of(before), now = impairments_of(after);
  if (old != now) {
    for (std::size_t id = 0; id < old.size(); ++id)
      requests.push_back(fmt::format("fault heal id={}", id));
    requests.insert(requests.end(), now.begin(), now.end());
  }
  add_changed(rate_request);
  return requests;
}

std::vector<std::string> switch_requests_from_unknown_state(const LabPlan& plan,
                                                            const LabFaults& after) {
  std::vector<std::string> requests;
  for (LinkId link = 0; link < plan.topology().link_count(); ++link)
    requests.push_back(condition_request(plan, after, link));
  requests.push_back("heal");
  for (std::string& impairment : impairments_of(after)) requests.push_back(std::move(impairment));
  for (LinkId link = 0; link < plan.topology().link_count(); ++link)
    requests.push_back(rate_request(plan, after, link));
  return requests;
}

std::string ruleset(const LabPlan& plan, const LabFaults& faults, const LabNode& node) {
  std::string rules;
  for (const LabInterface& interface : node.interfaces) {
    const LinkId in = plan.topology().reverse(interface.out);
    const auto drop = [&](const std::string& which) {
      rules += fmt::format("add rule ip6 weft in iifname \"{}\" {}counter drop\n", interface.name,
                           which);
    };
    if (faults.silent.contains(in)) drop("");
    for (const LabFaults::Loss& loss : faults.losses) {
      if (loss.link != in || loss.ppm == 0) continue;
      // With ppm = 100 % the comparison would always be true, which nft refuses; so it is left out.
      drop(loss.ppm < kPpm ? fmt::format("numgen random mod {} < {} ", kPpm, loss.ppm) : "");
    }
  }
  // The table is added before it is deleted, so that deleting cannot fail. nft applies the whole
  // file as one transaction.
  std::string text = "add table ip6 weft\ndelete table ip6 weft\n";
  if (rules.empty()) return text;
  text += "add table ip6 weft\n";
  text += "add chain ip6 weft in { type filter hook prerouting priority -300; }\n";
  return text + rules;
}

}  // namespace weft::lab
