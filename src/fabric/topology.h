// Topology: the hosts, switches and links of a fabric, computed and never stored.
//
// 131,072 hosts on 8 planes have 4.2 million directed links. Everything here is computed from
// indices, so that a fabric costs nothing to build, and each caller stores only the state it needs,
// indexed by LinkId. A Topology is a value of about 250 bytes: copy it freely.
//
// There are three shapes. Each is repeated in every plane (planes share only the hosts):
//   single     all hosts on one switch
//   two-tier   T0 switches with `hosts_per_t0` hosts; every T0 has one link to each of `t1_count`
//              T1 switches
//   three-tier pods of `t0_per_pod` T0s; every T0 has one link to each of its pod's `t1_per_pod`
//              T1s; T1 number j of every pod has one link to each of the `t2_per_t1` T2s of group j
//
// A path between two hosts in one plane is one number: 0 if they share a T0; the index of the T1 in
// the pod if they share a pod or there are two tiers; otherwise j * t2_per_t1 + k for T1 j and T2
// k. path_count() is the number of paths.
//
// Each plane has one contiguous range of link ids. Inside it the order is host_up, host_down,
// t0_up, t0_down, t1_up, t1_down. Host links are ordered by HostIndex, the others by switch, then
// uplink. The implementation treats two tiers as three tiers with one pod and no T2, and a single
// switch as a T0 without uplinks.
#pragma once

#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/rate.h"
#include "base/result.h"
#include "base/time.h"
#include "fabric/divider.h"

namespace weft::fabric {

using HostIndex = std::uint32_t;
using LinkId = std::uint32_t;  // a directed link
inline constexpr LinkId kNoLink = 0xffff'ffff;
inline constexpr std::uint32_t kPlaneCountMax = 8;      // three bits of a uSID
inline constexpr std::uint32_t kUsidNumberMax = 0x7ff;  // eleven bits of a uSID, 0 not used

enum class Shape : std::uint8_t { kSingle, kTwoTier, kThreeTier };
enum class Tier : std::uint8_t { kHost, kT0, kT1, kT2 };

// How hosts are assigned to T0s. kBlock: hosts 0..n-1 are on T0 0, the next n on T0 1, and so on.
// kRail: a machine m has `rails` NICs (hosts m * rails + r), and NICs with the same r share T0s. On
// a single switch the layout makes no difference.
enum class Layout : std::uint8_t { kBlock, kRail };

struct TopologySpec {
  Shape shape = Shape::kTwoTier;
  std::uint32_t hosts = 0;
  std::uint32_t planes = 1;
  std::uint32_t hosts_per_t0 = 0;  // two-tier and three-tier only
  std::uint32_t t1_count = 0;      // two-tier only
  std::uint32_t t0_per_pod = 0;    // three-tier only
  std::uint32_t t1_per_pod = 0;    // three-tier only
  std::uint32_t t2_per_t1 = 0;     // three-tier only
  Layout layout = Layout::kBlock;
  std::uint32_t rails = 1;
  Rate host_rate{};                         // links between hosts and T0s
  Rate fabric_rate{};                       // links between switches
  Duration link_delay = Duration::ns(500);  // propagation delay of every link
  Duration switch_delay = Duration::ns(0);  // added at every switch
  // True: refuse a fabric with more switches or hosts than uSIDs can number. A larger fabric that
  // uses only STEV or hashed forwarding sets false.
  bool needs_usids = true;
};

// One switch. `index` counts within its tier and plane. With three tiers the index of a T1 is
// pod * t1_per_pod + j, that of a T2 is j * t2_per_t1 + k.
struct SwitchId {
  std::uint32_t plane = 0;
  Tier tier = Tier::kT0;
  std::uint32_t index = 0;
  friend bool operator==(const SwitchId&, const SwitchId&) = default;
};

// An end of a link: a host (tier kHost, index = HostIndex) or a switch.
using NodeId = SwitchId;

enum class LinkKind : std::uint8_t { kHostUp, kHostDown, kT0Up, kT0Down, kT1Up, kT1Down };

// A decoded link id. `lower` is the host, T0 or T1 at the lower end; `uplink` is the number of the
// link among the uplinks of that switch (0 for hosts). The functions host_up .. t1_down of Topology
// are the inverse.
struct LinkPlace {
  LinkKind kind = LinkKind::kHostUp;
  std::uint32_t plane = 0;
  std::uint32_t lower = 0;
  std::uint32_t uplink = 0;
};

class Topology {
 public:
  // Refuses a count of 0, hosts that do not fill T0s, more than 8 planes, more switches of a tier
  // than uSIDs can number, and more links than a LinkId can number.
  static Result<Topology> make(const TopologySpec& spec);

  const TopologySpec& spec() const { return spec_; }
  std::uint32_t host_count() const { return hosts_; }
  std::uint32_t plane_count() const { return spec_.planes; }
  std::uint32_t link_count() const { return link_count_; }
  std::uint32_t switch_count() const;           // over all planes
  std::uint32_t switch_count(Tier tier) const;  // per plane; 0 for kHost

  std::uint32_t hosts_per_t0() const { return by_hosts_per_t0_.divisor(); }
  std::uint32_t t0_per_pod() const {
    return by_t0_per_pod_.divisor();
  }                                                            // two-tier: all T0s of a plane
  std::uint32_t uplinks_of_t0() const { return t0_uplinks_; }  // one per T1 of its pod
  std::uint32_t uplinks_of_t1() const { return t1_uplinks_; }

  // The T0 of a host (index within a plane), and the number of the T0's downlink to that host.
  // REQUIRES host < host_count().
  std::uint32_t t0_of(HostIndex host) const { return by_hosts_per_t0_.quotient(position(host)); }
  std::uint32_t downlink_of(HostIndex host) const {
    return by_hosts_per_t0_.remainder(position(host));
  }
  // The inverse of t0_of and downlink_of. REQUIRES a T0 and a downlink that exist.
  HostIndex host_at(std::uint32_t t0, std::uint32_t downlink) const;
  std::uint32_t pod_of(std::uint32_t t0) const { return by_t0_per_pod_.quotient(t0); }
  std::uint32_t pod_of_t1(std::uint32_t t1) const { return by_t0_uplinks_.quotient(t1); }

  // Links by their ends. REQUIRES ends that exist.
  // From a host to its T0 (single: to the switch), and back.
  LinkId host_up(std::uint32_t plane, HostIndex host) const;
  LinkId host_down(std::uint32_t plane, HostIndex host) const;
  // From a T0 to the j-th T1 of its pod, and back.
  LinkId t0_up(std::uint32_t plane, std::uint32_t t0, std::uint32_t j) const;
  LinkId t0_down(std::uint32_t plane, std::uint32_t t0, std::uint32_t j) const;
  // Three-tier: from a T1 to the k-th T2 of its group, and back.
  LinkId t1_up(std::uint32_t plane, std::uint32_t t1, std::uint32_t k) const;
  LinkId t1_down(std::uint32_t plane, std::uint32_t t1, std::uint32_t k) const;

  // Everything below REQUIRES link < link_count().
  LinkPlace place(LinkId link) const;
  // The link in the other direction.
  LinkId reverse(LinkId link) const;
  struct LinkEnds {
    NodeId from, to;
  };
  LinkEnds ends(LinkId link) const;
  // For people: "host 5 -> T0 0 (plane 2)".
  std::string describe(LinkId link) const;
  // The rate as built. A simulated fault may slow a link down; that is not known here.
  Rate rate(LinkId link) const { return is_host_link(link) ? spec_.host_rate : spec_.fabric_rate; }
  // True if the link ends at a host.
  bool is_last_hop(LinkId link) const { return by_plane_links_.remainder(link) - hosts_ < hosts_; }

  // The number of paths between two hosts in one plane, and the links of one path in order.
  // REQUIRES path < path_count.
  std::uint32_t path_count(HostIndex from, HostIndex to) const;
  struct Path {
    std::uint32_t hops = 0;
    LinkId links[6] = {};
  };
  Path path(std::uint32_t plane, HostIndex from, HostIndex to, std::uint32_t path) const;

  // The time for `bytes_out` (on the wire, framing included) from `from` to `to` and `bytes_back`
  // back on an idle fabric. Every hop stores and forwards.
  Duration idle_rtt(HostIndex from, HostIndex to, std::uint32_t bytes_out,
                    std::uint32_t bytes_back) const;
  // The longest idle_rtt over all pairs of hosts: the configured base RTT of NSCC.
  Duration idle_rtt_max(std::uint32_t bytes_out, std::uint32_t bytes_back) const;

 private:
  explicit Topology(const TopologySpec& spec);
  // The host's number in the order of T0s and their downlinks: T0 * hosts_per_t0 + downlink.
  std::uint32_t position(HostIndex host) const;
  bool is_host_link(LinkId link) const { return by_plane_links_.remainder(link) < 2 * hosts_; }
  std::uint32_t hops(HostIndex from, HostIndex to) const;
  Duration one_way(std::uint32_t hops, std::uint32_t bytes) const;

  std::uint32_t hosts_ = 0;
  std::uint32_t t0_count_ = 0, t1_count_ = 0, t2_count_ = 0;  // per plane
  std::uint32_t t0_uplinks_ = 0, t1_uplinks_ = 0;
  std::uint32_t machines_ = 0;                       // hosts / rails; block layout: hosts
  std::uint32_t t0_links_ = 0, t1_links_ = 0;        // t0_count * t0_uplinks, t1_count * t1_uplinks
  std::uint32_t t0_links_at_ = 0, t1_links_at_ = 0;  // offset of these links within a plane
  std::uint32_t link_count_ = 0;
  Divider by_plane_links_, by_hosts_per_t0_, by_rails_, by_machines_, by_t0_per_pod_;
  Divider by_t0_uplinks_, by_t1_uplinks_;  // divide by 1 if there are no such uplinks
  TopologySpec spec_;
};

inline std::uint32_t Topology::position(HostIndex host) const {
  const std::uint32_t machine = by_rails_.quotient(host);  // block layout: one rail, machine = host
  return (host - machine * by_rails_.divisor()) * machines_ + machine;
}

inline HostIndex Topology::host_at(std::uint32_t t0, std::uint32_t downlink) const {
  const std::uint32_t at = t0 * hosts_per_t0() + downlink;
  const std::uint32_t rail = by_machines_.quotient(at);
  return (at - rail * machines_) * by_rails_.divisor() + rail;
}

inline std::uint32_t Topology::switch_count(Tier tier) const {
  switch (tier) {
    case Tier::kHost:
      return 0;
    case Tier::kT0:
      return t0_count_;
    case Tier::kT1:
      return t1_count_;
    case Tier::kT2:
      return t2_count_;
  }
  return 0;
}

inline LinkId Topology::host_up(std::uint32_t plane, HostIndex host) const {
  return plane * by_plane_links_.divisor() + host;
}
inline LinkId Topology::host_down(std::uint32_t plane, HostIndex host) const {
  return plane * by_plane_links_.divisor() + hosts_ + host;
}
inline LinkId Topology::t0_up(std::uint32_t plane, std::uint32_t t0, std::uint32_t j) const {
  return plane * by_plane_links_.divisor() + t0_links_at_ + t0 * t0_uplinks_ + j;
}
inline LinkId Topology::t0_down(std::uint32_t plane, std::uint32_t t0, std::uint32_t j) const {
  return t0_up(plane, t0, j) + t0_links_;
}
inline LinkId Topology::t1_up(std::uint32_t plane, std::uint32_t t1, std::uint32_t k) const {
  return plane * by_plane_links_.divisor() + t1_links_at_ + t1 * t1_uplinks_ + k;
}
inline LinkId Topology::t1_down(std::uint32_t plane, std::uint32_t t1, std::uint32_t k) const {
  return t1_up(plane, t1, k) + t1_links_;
}

inline LinkPlace Topology::place(LinkId link) const {
  WEFT_ASSERT(link < link_count_);
  const std::uint32_t plane = by_plane_links_.quotient(link);
  std::uint32_t at = link - plane * by_plane_links_.divisor();
  if (at < t0_links_at_) {
    if (at < hosts_) return {LinkKind::kHostUp, plane, at, 0};
    return {LinkKind::kHostDown, plane, at - hosts_, 0};
  }
  if (at < t1_links_at_) {
    at -= t0_links_at_;
    const bool is_up = at < t0_links_;
    if (!is_up) at -= t0_links_;
    const std::uint32_t t0 = by_t0_uplinks_.quotient(at);
    return {is_up ? LinkKind::kT0Up : LinkKind::kT0Down, plane, t0, at - t0 * t0_uplinks_};
  }
  at -= t1_links_at_;
  const bool is_up = at < t1_links_;
  if (!is_up) at -= t1_links_;
  const std::uint32_t t1 = by_t1_uplinks_.quotient(at);
  return {is_up ? LinkKind::kT1Up : LinkKind::kT1Down, plane, t1, at - t1 * t1_uplinks_};
}

}  // namespace weft::fabric
