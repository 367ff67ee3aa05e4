// LabPlan: a fabric of network namespaces, as values: its nodes, and the interfaces, addresses and
// routes of each node. The plan follows from a LabSpec alone, so that a test can follow the routes
// and a later process can compute the same plan. Nothing here touches the kernel; lab.h does.
//
// Each host and each switch is a namespace, and each link a veth pair. A switch forwards by the
// kernel's SRv6 uSIDs. Each switch has an End route with the flavour next-csid for its own uSID,
// which removes this uSID from the destination address. A route for each neighbour's uSID leads to
// the link to that neighbour. After the last switch only the host's own uSID is left, which is a
// local address of the host. The hosts' own addresses, which are not made of uSIDs, are routed too,
// over all uplinks, for ICMP errors and for traffic that does not choose its path.
//
// The interface of a host in plane p is p<p + 1>. A switch's interface is named after its
// neighbour.
//
// With the software switch there is one namespace besides the hosts'. This namespace has the other
// end of every host's link (frame_socket.h), but neither addresses nor routes. Links between
// switches exist only inside the software switch and have no interface.
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
// The kernel of one machine cannot limit faster links to their rate, so those have no limit.
inline constexpr std::uint64_t kLabRateMaxBps = 10'000'000'000;

// Who forwards between the hosts. The software switch (live_fabric.h) also marks, trims, delays and
// damages packets, and keeps its queues exactly; it is slower than the kernel.
enum class LabSwitches : std::uint8_t { kKernel, kSoftware };

struct LabSpec {
  std::string name = "lab";  // letters, digits and '-'
  fabric::TopologySpec topology{};
  LabSwitches switches = LabSwitches::kKernel;
  std::uint32_t mtu = 4200;
  // The most bytes that may wait at a port of a link with a rate; more bytes are dropped.
  std::uint64_t queue_bytes = 150'000, last_hop_queue_bytes = 150'000;
  std::uint64_t nic_queue_bytes = 1 << 20;  // of a host's own port; socket buffers fill up first
  // False: hosts segment their data into packets themselves, so that loss and queues act on each
  // packet.
  bool offloads = true;
  bool user_namespace = false;  // use a user namespace even as root
  friend bool operator==(const LabSpec&, const LabSpec&);
};

struct LabInterface {
  std::string name;
  fabric::LinkId out = fabric::kNoLink;  // the link that packets sent here travel on
};

struct LabAddress {
  Ipv6 ip;
  fabric::LinkId on = fabric::kNoLink;  // the interface's link; kNoLink: the loopback
};

struct LabRoute {
  Ipv6 prefix;
  std::uint32_t prefix_bits = 128;
  std::vector<fabric::LinkId> via;  // next hops; empty: our own uSID, which is removed
  std::optional<Ipv6> source{};     // source address of a host's sockets that are not bound
};

struct LabNode {
  fabric::NodeId id;  // plane 0 for a host
  std::string netns;
  std::vector<LabInterface> interfaces;
  std::vector<LabAddress> addresses;
  std::vector<LabRoute> routes;
  bool software = false;  // the software switch: its kernel forwards nothing
  bool is_host() const { return id.tier == fabric::Tier::kHost; }
};

class LabPlan {
 public:
  // Errors: an invalid name or topology, more hosts or namespaces than a lab may have, or an MTU
  // that IPv6 does not allow.
  static Result<LabPlan> make(const LabSpec& spec);

  const LabSpec& spec() const { return spec_; }
  bool is_software() const { return spec_.switches == LabSwitches::kSoftware; }
  const fabric::Topology& topology() const { return topology_; }
  // The hosts, then for each plane the T0s, T1s and T2s. With the software switch, one node takes
  // the place of all switches.
  std::span<const LabNode> nodes() const { return nodes_; }
  std::uint32_t index_of(const fabric::NodeId& node) const;
  const LabNode& node(const fabric::NodeId& node) const { return nodes_[index_of(node)]; }

  // The sender and the receiver of a link. Both REQUIRE link < topology().link_count().
  const LabNode& sender(fabric::LinkId link) const { return node(topology_.ends(link).from); }
  const LabNode& receiver(fabric::LinkId link) const { return node(topology_.ends(link).to); }
  // The name of the sender's interface; empty if the link is inside the software switch.
  const std::string& interface(fabric::LinkId link) const { return interface_of_[link]; }
  // The link itself, or the opposite direction: whichever leads away from the hosts.
  fabric::LinkId upward(fabric::LinkId link) const;

  // The rate that the link is limited to; nullopt: the link has no limit.
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

// The prefix of the names of a lab's namespaces. No namespace of another lab begins with it.
std::string lab_prefix(const std::string& name);

}  // namespace weft::lab
