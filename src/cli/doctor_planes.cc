#include "cli/doctor_planes.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "net/steering.h"
#include "os/address.h"
#include "seal/secure_layout.h"

namespace weft::cli {
namespace {

using Level = FindingLevel;
using net::PlaneFacts;
using net::PortCheck;

std::uint32_t payload_of(const PlaneFacts& plane, const DoctorQuestion& question) {
  return seal::payload_that_fits(
      {.path_mtu = plane.mtu, .ip_size = plane.is_ipv4 ? 20u : 40u, .secured = question.secured});
}

Finding judge_mtu(const PlaneFacts& plane, const DoctorQuestion& question) {
  Finding out{.name = "mtu " + os::text_of(plane.plane.address)};
  if (plane.mtu == 0) {
    out.found = "unknown";
    return out;
  }
  const std::uint32_t fits = payload_of(plane, question);
  out.found = fmt::format(
      "{} has an MTU of {}: {}", plane.plane.interface, plane.mtu,
      fits == 0 ? std::string("no payload fits") : fmt::format("payloads of {} fit", fits));
  if (fits == 4096) return out;
  const std::string raise = fmt::format("ip link set dev {} mtu 9000", plane.plane.interface);
  const char* const everywhere = "  # at all hosts and switches of the plane";
  if (fits != 0 && fits >= question.payload) {
    out.level = Level::kNote;
    out.cost = "small packets: more system calls and headers for each byte";
    out.mend = raise + everywhere;
  } else {
    out.level = Level::kProblem;
    out.cost = fmt::format("packets of {} bytes are refused by the kernel: nothing arrives",
                           std::max(question.payload, 1024u));
    out.mend =
        fits == 0 ? raise + everywhere : fmt::format("weft ... --mtu {}  # or {}", fits, raise);
  }
  return out;
}

std::string open_ports_command(const PlaneFacts& plane) {
  return fmt::format(
      "nft insert rule inet filter input {} daddr {} udp dport {{ {}, {}-{} }} accept"
      "  # or find the rule that drops: nft list ruleset",
      plane.is_ipv4 ? "ip" : "ip6", os::text_of(plane.plane.address), wire::listen_port(0),
      wire::listen_port(1), wire::listen_port(wire::kProcessesMax - 1));
}

Finding judge_ports(const PlaneFacts& plane) {
  Finding out{.name = "ports " + os::text_of(plane.plane.address)};
  const bool lost = plane.first_port == PortCheck::kLost || plane.other_ports == PortCheck::kLost;
  if (plane.first_port == PortCheck::kRefused || plane.other_ports == PortCheck::kRefused) {
    out.level = Level::kProblem;
    out.found = fmt::format("UDP ports cannot be had: {}", plane.refusal);
    out.cost = "this plane cannot be opened";
    out.mend = fmt::format("ip addr show to {}", os::text_of(plane.plane.address));
  } else if (lost) {
    const std::uint16_t port =
        plane.first_port == PortCheck::kLost ? wire::listen_port(0) : plane.other_port;
    out.level = Level::kProblem;
    out.found = fmt::format("what is sent to UDP port {} here does not arrive", port);
    out.cost = "a filter drops our packets: this plane is dead";
    out.mend = open_ports_command(plane);
  } else if (plane.other_ports == PortCheck::kTaken) {
    out.level = Level::kProblem;
    out.found = "all 256 slots are taken";
    out.cost = "no process can use this plane";
    out.mend = "ss -ulnp  # who has the ports";
  } else if (plane.first_port == PortCheck::kTaken) {
    out.level = Level::kNote;
    out.found =
        fmt::format("UDP port {} is taken, {} is free", wire::listen_port(0), plane.other_port);
    out.cost = "none if a process of ours has it; RoCE NICs and rdma_rxe keep it from us";
    out.mend = fmt::format("ss -ulnp sport = :{}", wire::listen_port(0));
  } else {
    out.found = fmt::format("UDP {} and {} can be bound, and reached from this host",
                            wire::listen_port(0), plane.other_port);
    // Packets that stay on the host often pass a filter that blocks others.
    if (!base::is_loopback(plane.plane.address))
      out.found += "; `weft bench write` between two hosts tells whether others reach them";
  }
  return out;
}

Finding judge_offloads(const PlaneFacts& plane) {
  Finding out{.name = "offloads " + plane.plane.interface};
  if (!plane.gro && !plane.gso) {
    out.found = "unknown: the driver does not say whether GRO and GSO are on";
    return out;
  }
  const bool gro = plane.gro.value_or(true), gso = plane.gso.value_or(true);
  if (gro && gso) {
    out.found = "GRO and GSO are on";
    return out;
  }
  if (gso && plane.driver == "veth") {
    out.found = "GSO is on; GRO is off, and veth hands runs on whole without it";
    return out;
  }
  out.level = Level::kProblem;
  out.found = fmt::format("{} off", !gro && !gso ? "GRO and GSO are" : gro ? "GSO is" : "GRO is");
  out.cost = "packets cross the kernel one by one: about half the speed";
  out.mend = fmt::format("ethtool -K {}{}{}", plane.plane.interface, gro ? "" : " gro on",
                         gso ? "" : " gso on");
  return out;
}

void judge_same_mtu(std::span<const PlaneFacts> planes, const DoctorQuestion& question,
                    std::vector<Finding>& out) {
  const auto [least, most] =
      std::minmax_element(planes.begin(), planes.end(),
                          [](const PlaneFacts& a, const PlaneFacts& b) { return a.mtu < b.mtu; });
  if (planes.size() < 2 || least->mtu == most->mtu || least->mtu == 0) return;
  const std::uint32_t fits = payload_of(*least, question);
  out.push_back(
      {.level = Level::kNote,
       .name = "mtu-mismatch",
       .found = fmt::format("{} has an MTU of {}, {} one of {}", least->plane.interface, least->mtu,
                            most->plane.interface, most->mtu),
       .cost = fmt::format("a QP uses one size on all planes: the smallest decides ({})",
                           fits == 0 ? "none fits" : fmt::format("payload {}", fits)),
       .mend = fmt::format("ip link set dev {} mtu {}", least->plane.interface, most->mtu)});
}

// Only a device obeys disabled ports; the engine itself does not.
Finding judge_admin(const PlaneFacts& plane, std::size_t port, const std::string& device_flags) {
  return {.level = Level::kProblem,
          .name = fmt::format("port {}", port),
          .found = fmt::format("a controller disabled it ({})", os::text_of(plane.plane.address)),
          .cost = "devices send nothing on this plane",
          .mend = fmt::format("weft ctl port {} --enable{}", port, device_flags)};
}

}  // namespace

void judge_planes(std::span<const PlaneFacts> planes, const DoctorQuestion& question,
                  std::vector<Finding>& out) {
  // Interfaces that are already judged. Several planes may share an interface, but carrier and
  // offloads need only one finding for each.
  std::set<std::string> asked;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const PlaneFacts& plane = planes[i];
    const std::string address = os::text_of(plane.plane.address);
    if ((question.ports_disabled >> (i + 1) & 1) != 0)
      out.push_back(judge_admin(plane, i + 1, question.device_flags));
    if (plane.plane.interface.empty()) {
      out.push_back({.level = Level::kProblem,
                     .name = "address " + address,
                     .found = "no interface of this host has it",
                     .cost = "this plane cannot be opened",
                     .mend = fmt::format("ip addr add {}/{} dev INTERFACE  # or another --planes; "
                                         "`ip -br addr` lists them",
                                         address, plane.is_ipv4 ? 24 : 64)});
      continue;
    }
    if (!plane.running && !asked.contains(plane.plane.interface)) {
      out.push_back({.level = Level::kProblem,
                     .name = "link " + plane.plane.interface,
                     .found = fmt::format("{} is down or has no carrier", plane.plane.interface),
                     .cost = "this plane carries nothing",
                     .mend = fmt::format("ip link set dev {} up  # and look at the cable",
                                         plane.plane.interface)});
    }
    out.push_back(judge_mtu(plane, question));
    if (plane.running) out.push_back(judge_ports(plane));
    if (asked.insert(plane.plane.interface).second) out.push_back(judge_offloads(plane));
  }
  if (!planes.empty()) judge_same_mtu(planes, question, out);
}

}  // namespace weft::cli
