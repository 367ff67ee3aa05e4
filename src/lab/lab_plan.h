// LabPlan: a fabric of network namespaces as values: who is there, which interfaces, addresses and
// routes each has. Computed from a LabSpec alone, so that a test can follow the routes and a later
// process can compute them again; nothing here touches the kernel (that is lab.h).
//
// One namespace a host and a switch, one veth pair a link. A switch forwards by the kernel's SRv6
// uSIDs: to its own uSID leads an End route with the flavour next-csid, which shifts the
// destination; to the uSID of each neighbour leads the link to it. What is left when the last
// switch has shifted is the host's own uSID, a local address there. Plain addresses are routed too,
// over all uplinks, for ICMP errors and for traffic that does not choose its path.
//
// A host's interface in plane p is p<p + 1>, a switch's is named after who is at its other end.
//
// With the software switch there is one namespace beside the hosts'. It has the other end of every
// host's link (frame_socket.h) and neither addresses nor routes; links between switches exist
// inside the switch only, and have no interface.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "base/rate.h"
#include "base/result.h"
#include "fabric/topology.h"

namespace weft::lab {

inline constexpr std::uint32_t kLabHostsMax = 64;
inline constexpr std::uint32_t kLabNamespacesMax = 256;
inline constexpr std::uint32_t kLabNameMax = 24;
// A kernel on one machine cannot hold faster links to their rate: they get no limit.
inline constexpr std::uint64_t kLabRateMaxBps = 10'000'000'000;

// Who forwards. The software switch (live_fabric.h) also marks, trims, delays and damages packets,
// and keeps its queues exactly; it is slower.
enum class LabSwitches : std::uint8_t { kKernel, kSoftware };

struct LabSpec {
  std::string name = "lab";  // letters, digits and '-'
  fabric::TopologySpec topology{};
  LabSwitches switches = LabSwitches::kKernel;
  std::uint32_t mtu = 4200;
  // What may wait at a port, where links have a rate: more is dropped.
  std::uint64_t queue_bytes = 150'000, last_hop_queue_bytes = 150'000;
  std::uint64_t nic_queue_bytes = 1 << 20;  // a host's own: its sockets fill up before this does
  // False: hosts cut what they send into packets themselves, so that loss and queues act on each.
  bool offloads = true;
  bool user_namespace = false;  // also where root could do without
  friend bool operator==(const LabSpec&, const LabSpec&);
};

struct LabInterface {
  std::string name;
  fabric::LinkId out = fabric::kNoLink;  // what is sent here travels on this link
};

struct LabAddress {
  Ipv6 ip;
  fabric::LinkId on = fabric::kNoLink;  // kNoLink: the loopback
};

struct LabRoute {
  Ipv6 prefix;
  std::uint32_t prefix_bits = 128;
  std::vector<fabric::LinkId> via;  // empty: our own uSID, which is shifted out
  std::optional<Ipv6> source{};     // what a host that did not bind sends from
};

struct LabNode {
  fabric::NodeId id;  // of a host: plane 0
  std::string netns;
  std::vector<LabInterface> interfaces;
  std::vector<LabAddress> addresses;
  std::vector<LabRoute> routes;
  bool software = false;  // the software switch: its kernel does nothing
  bool is_host() const { return id.tier == fabric::Tier::kHost; }
};

class LabPlan {
 public:
  // Errors: a name that cannot be, a topology that cannot be, more hosts or namespaces than a lab
  // takes, an MTU that IPv6 does not allow.
  static Result<LabPlan> make(const LabSpec& spec);

  const LabSpec& spec() const { return spec_; }
  bool is_software() const { return spec_.switches == LabSwitches::kSoftware; }
  const fabric::Topology& topology() const { return topology_; }
  // Hosts first, then plane by plane T0s, T1s, T2s; or the software switch, which is all of them.
  std::span<const LabNode> nodes() const { return nodes_; }
  std::uint32_t index_of(const fabric::NodeId& node) const;
  const LabNode& node(const fabric::NodeId& node) const { return nodes_[index_of(node)]; }

  // Both REQUIRE link < topology().link_count().
  // Who sends on this link, and who receives.
  const LabNode& sender(fabric::LinkId link) const { return node(topology_.ends(link).from); }
  const LabNode& receiver(fabric::LinkId link) const { return node(topology_.ends(link).to); }
  // The sender's interface; empty where the software switch has the link inside.
  const std::string& interface(fabric::LinkId link) const { return interface_of_[link]; }
  // The direction away from the hosts of the same pair.
  fabric::LinkId upward(fabric::LinkId link) const;

  // What the link is held to; nothing: no limit.
  std::optional<Rate> rate(fabric::LinkId link) const;
  std::uint64_t queue_bytes(fabric::LinkId link) const;

 private:
  LabPlan(const LabSpec& spec, const fabric::Topology& topology);
  void add_interfaces();
  void add_host(LabNode& node) const;
  void add_switch(LabNode& node) const;
  std::vector<fabric::LinkId> towards(const fabric::SwitchId& from, fabric::HostIndex host) const;

  LabSpec spec_;
  fabric::Topology topology_;
  std::vector<LabNode> nodes_;
  std::vector<std::string> interface_of_;  // by link
};

// Every namespace of a lab starts so; no other lab's does.
std::string lab_prefix(const std::string& name);

}  // namespace weft::lab
