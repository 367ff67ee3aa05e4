// Forwarding: from the link on which a packet arrives at a switch, computes the link on which it
// leaves. The static forwarding tables of the switches are computed, not stored.
//
// A fabric runs in one of three modes, which differ in how a switch chooses among its uplinks:
//   SRv6   The packet lists its whole path as 16-bit uSIDs in the destination address. A switch
//          checks that the first uSID is its own, removes it, and sends the packet towards the next
//          uSID. It drops the packet if the first uSID is wrong or no link leads to the next.
//   STEV   The 32 bits of the EV hold one field per tier, that of the T0s in the most significant
//          bits. Uplink number = field of the tier modulo the number of uplinks.
//   hashed Uplink number = hash of source, destination, EV and the salt of the switch.
// In the modes STEV and hashed the destination alone decides on the way down.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/topology.h"

namespace weft::fabric {

enum class Forwarding : std::uint8_t { kSrv6, kStev, kHashed };

// The uSIDs that a packet has not yet reached, the next one first; 0 ends the list. A uSID is
// role(2) plane(3) number(11). Roles: T0 00, T1 01, host 10, T2 11. Numbers count from 1, because a
// uSID of 0 would end the list. The number of a host is its downlink + 1.
struct UsidList {
  std::array<std::uint16_t, 6> usid{};
  friend bool operator==(const UsidList&, const UsidList&) = default;

  // Removes the first uSID, as a switch does in the destination address.
  void shift() {
    for (std::size_t i = 0; i + 1 < usid.size(); ++i) usid[i] = usid[i + 1];
    usid.back() = 0;
  }
};

enum class UsidRole : std::uint8_t { kT0 = 0, kT1 = 1, kHost = 2, kT2 = 3 };

// REQUIRES plane < 8, number in 1..2047.
constexpr std::uint16_t make_usid(UsidRole role, std::uint32_t plane, std::uint32_t number) {
  return static_cast<std::uint16_t>(static_cast<std::uint32_t>(role) << 14 | plane << 11 | number);
}
constexpr UsidRole usid_role(std::uint16_t usid) { return static_cast<UsidRole>(usid >> 14); }
constexpr std::uint32_t usid_plane(std::uint16_t usid) { return usid >> 11 & 7u; }
constexpr std::uint32_t usid_number(std::uint16_t usid) { return usid & kUsidNumberMax; }

// The part of a packet that forwarding reads: 28 bytes, stored with the packet.
struct RouteKey {
  HostIndex from = 0;
  HostIndex to = 0;
  std::uint32_t entropy = 0;
  std::uint32_t plane = 0;
  UsidList usids{};  // SRv6 only
};

// REQUIRES a node of this topology, and spec().needs_usids.
std::uint16_t usid_of(const Topology& topology, const NodeId& node);
// The uSID list of one path: its switches, then the destination host.
// REQUIRES path < path_count.
UsidList usids_for(const Topology& topology, std::uint32_t plane, HostIndex from, HostIndex to,
                   std::uint32_t path);

// The field widths of a STEV on this topology: from bit 31 down, the bits for the choice of the T0,
// then those for the choice of the T1.
struct StevLayout {
  std::uint32_t t0_bits = 0, t1_bits = 0;
  friend bool operator==(const StevLayout&, const StevLayout&) = default;
};
StevLayout stev_layout(const Topology& topology);

// All switches of one fabric. Immutable, with its own copy of the topology: one object serves all
// threads.
class Forwarder {
 public:
  // SRv6 REQUIRES topology.spec().needs_usids. Hashed: the salt of every switch derives from
  // `salt_seed`.
  Forwarder(const Topology& topology, Forwarding mode, std::uint64_t salt_seed);

  Forwarding mode() const { return mode_; }

  // The link on which this packet leaves the switch at the end of `arrived_by`; kNoLink if that
  // switch has no link for it. SRv6: shifts key.usids and reads no other field of the key.
  // REQUIRES a link that ends at a switch and, except in SRv6, key.to < host_count(). This is the
  // hot path of the simulator: it multiplies instead of dividing, and touches only this object and
  // the key.
  LinkId next(LinkId arrived_by, RouteKey& key) const {
    const LinkPlace at = topology_.place(arrived_by);
    return mode_ == Forwarding::kSrv6 ? next_by_usid(at, key.usids) : next_by_destination(at, key);
  }

 private:
  LinkId next_by_destination(const LinkPlace& at, const RouteKey& key) const;
  std::uint32_t choose_uplink(const SwitchId& here, const RouteKey& key) const;
  std::uint32_t choose_by_field(Tier tier, std::uint32_t entropy) const;

  LinkId next_by_usid(const LinkPlace& at, UsidList& usids) const;
  LinkId from_t0(std::uint32_t plane, std::uint32_t t0, UsidList& usids) const;
  LinkId from_t1(std::uint32_t plane, std::uint32_t t1, UsidList& usids) const;
  LinkId from_t2(std::uint32_t plane, std::uint32_t group, std::uint32_t k, UsidList& usids) const;

  Topology topology_;
  Forwarding mode_;
  StevLayout stev_;
  std::uint64_t salt_seed_;
};

namespace internal {

// The last step of SplitMix64: a change of any input bit changes every output bit with a
// probability of about one half.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// If `own` is the first uSID, removes it and returns the next one. Otherwise returns 0, to which no
// link leads.
inline std::uint16_t take_usid(UsidList& usids, std::uint16_t own) {
  if (usids.usid[0] != own) return 0;
  usids.shift();
  const std::uint16_t next = usids.usid[0];
  return usid_plane(next) == usid_plane(own) ? next : std::uint16_t{0};
}

}  // namespace internal

inline std::uint32_t Forwarder::choose_by_field(Tier tier, std::uint32_t entropy) const {
  const bool is_t0 = tier == Tier::kT0;
  const std::uint32_t bits = is_t0 ? stev_.t0_bits : stev_.t1_bits;
  const std::uint32_t uplinks = is_t0 ? topology_.uplinks_of_t0() : topology_.uplinks_of_t1();
  const std::uint32_t below = 32 - stev_.t0_bits - (is_t0 ? 0 : stev_.t1_bits);
  // Shifts 64 bits, because `below` is 32 for an empty field.
  const auto field =
      static_cast<std::uint32_t>(std::uint64_t{entropy} >> below) & ((1u << bits) - 1);
  // This is field % uplinks: the field has the fewest bits that hold `uplinks` values, so it is
  // less than 2 * uplinks.
  return field < uplinks ? field : field - uplinks;
}

inline std::uint32_t Forwarder::choose_uplink(const SwitchId& here, const RouteKey& key) const {
  if (mode_ == Forwarding::kStev) return choose_by_field(here.tier, key.entropy);
  const std::uint64_t id =
      std::uint64_t{here.plane} << 40 | static_cast<std::uint64_t>(here.tier) << 32 | here.index;
  const std::uint64_t salt = internal::mix(salt_seed_ + (id + 1) * 0x9e3779b97f4a7c15u);
  const std::uint64_t pair = std::uint64_t{key.from} << 32 | key.to;
  const std::uint64_t flow = internal::mix(pair + 0x9e3779b97f4a7c15u) ^ key.entropy;
  const std::uint64_t hash = internal::mix(flow ^ salt) >> 32;
  const std::uint32_t uplinks =
      here.tier == Tier::kT0 ? topology_.uplinks_of_t0() : topology_.uplinks_of_t1();
  return static_cast<std::uint32_t>(hash * uplinks >> 32);
}

inline LinkId Forwarder::next_by_destination(const LinkPlace& at, const RouteKey& key) const {
  WEFT_ASSERT(at.kind != LinkKind::kHostDown && key.to < topology_.host_count());
  const Topology& t = topology_;
  const std::uint32_t plane = at.plane;
  const std::uint32_t to_t0 = t.t0_of(key.to);
  switch (at.kind) {
    case LinkKind::kHostUp: {
      const std::uint32_t t0 = t.t0_of(at.lower);
      if (t0 == to_t0) return t.host_down(plane, key.to);
      return t.t0_up(plane, t0, choose_uplink({plane, Tier::kT0, t0}, key));
    }
    case LinkKind::kT0Up: {
      const std::uint32_t pod = t.pod_of(at.lower);
      if (pod == t.pod_of(to_t0)) return t.t0_down(plane, to_t0, at.uplink);
      const std::uint32_t t1 = pod * t.uplinks_of_t0() + at.uplink;
      return t.t1_up(plane, t1, choose_uplink({plane, Tier::kT1, t1}, key));
    }
    case LinkKind::kT1Up: {
      const std::uint32_t group = at.lower - t.pod_of_t1(at.lower) * t.uplinks_of_t0();
      return t.t1_down(plane, t.pod_of(to_t0) * t.uplinks_of_t0() + group, at.uplink);
    }
    case LinkKind::kT1Down: {
      const std::uint32_t pod = t.pod_of_t1(at.lower);
      if (pod != t.pod_of(to_t0)) return kNoLink;
      return t.t0_down(plane, to_t0, at.lower - pod * t.uplinks_of_t0());
    }
    case LinkKind::kT0Down:
      return at.lower == to_t0 ? t.host_down(plane, key.to) : kNoLink;
    case LinkKind::kHostDown:
      break;
  }
  return kNoLink;
}

inline LinkId Forwarder::next_by_usid(const LinkPlace& at, UsidList& usids) const {
  WEFT_ASSERT(at.kind != LinkKind::kHostDown);
  const Topology& t = topology_;
  switch (at.kind) {
    case LinkKind::kHostUp:
      return from_t0(at.plane, t.t0_of(at.lower), usids);
    case LinkKind::kT0Down:
      return from_t0(at.plane, at.lower, usids);
    case LinkKind::kT0Up:
      return from_t1(at.plane, t.pod_of(at.lower) * t.uplinks_of_t0() + at.uplink, usids);
    case LinkKind::kT1Down:
      return from_t1(at.plane, at.lower, usids);
    case LinkKind::kT1Up:
      return from_t2(at.plane, at.lower - t.pod_of_t1(at.lower) * t.uplinks_of_t0(), at.uplink,
                     usids);
    case LinkKind::kHostDown:
      break;
  }
  return kNoLink;
}

// In the next three functions the index of a switch or host that is not a neighbour is out of
// range, also where the subtraction wraps to a large number.
inline LinkId Forwarder::from_t0(std::uint32_t plane, std::uint32_t t0, UsidList& usids) const {
  const std::uint16_t next = internal::take_usid(usids, make_usid(UsidRole::kT0, plane, t0 + 1));
  const std::uint32_t index = usid_number(next) - 1;
  if (usid_role(next) == UsidRole::kHost) {
    if (index >= topology_.hosts_per_t0()) return kNoLink;
    return topology_.host_down(plane, topology_.host_at(t0, index));
  }
  if (usid_role(next) != UsidRole::kT1) return kNoLink;
  const std::uint32_t j = index - topology_.pod_of(t0) * topology_.uplinks_of_t0();
  return j < topology_.uplinks_of_t0() ? topology_.t0_up(plane, t0, j) : kNoLink;
}

inline LinkId Forwarder::from_t1(std::uint32_t plane, std::uint32_t t1, UsidList& usids) const {
  const std::uint16_t next = internal::take_usid(usids, make_usid(UsidRole::kT1, plane, t1 + 1));
  const std::uint32_t index = usid_number(next) - 1;
  const std::uint32_t pod = topology_.pod_of_t1(t1);
  const std::uint32_t group = t1 - pod * topology_.uplinks_of_t0();
  if (usid_role(next) == UsidRole::kT0) {
    const bool is_below = index - pod * topology_.t0_per_pod() < topology_.t0_per_pod();
    return is_below ? topology_.t0_down(plane, index, group) : kNoLink;
  }
  if (usid_role(next) != UsidRole::kT2) return kNoLink;
  const std::uint32_t k = index - group * topology_.uplinks_of_t1();
  return k < topology_.uplinks_of_t1() ? topology_.t1_up(plane, t1, k) : kNoLink;
}

inline LinkId Forwarder::from_t2(std::uint32_t plane, std::uint32_t group, std::uint32_t k,
                                 UsidList& usids) const {
  const std::uint32_t t2 = group * topology_.uplinks_of_t1() + k;
  const std::uint16_t next = internal::take_usid(usids, make_usid(UsidRole::kT2, plane, t2 + 1));
  const std::uint32_t index = usid_number(next) - 1;
  if (usid_role(next) != UsidRole::kT1 || index >= topology_.switch_count(Tier::kT1))
    return kNoLink;
  const bool is_of_group = index - topology_.pod_of_t1(index) * topology_.uplinks_of_t0() == group;
  return is_of_group ? topology_.t1_down(plane, index, k) : kNoLink;
}

}  // namespace weft::fabric
