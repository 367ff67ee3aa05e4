// Forwarding: at the end of a link, which link next? The static tables of a switch, as arithmetic.
//
// Three ways, as switches have them:
//   SRv6   the destination is a list of 16-bit uSIDs; a switch checks that the first is its own,
//          shifts it out, and sends towards the next. Wrong first uSID or no way to the next: the
//          packet is dropped.
//   STEV   the 32 bits of the EV are split into one field a tier, most significant first; going up,
//          a switch takes its own tier's field modulo its uplinks; going down the destination
//          decides.
//   hashed going up, a hash of source, destination, EV and the switch's own salt; going down the
//          destination decides.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/topology.h"

namespace weft::fabric {

enum class Forwarding : std::uint8_t { kSrv6, kStev, kHashed };

// uSIDs still ahead, first first; 0 = end of list. uSID = role(2) plane(3) number(11), numbers
// count from 1 (a uSID of 0 would end the list): T0 00, T1 01, host 10, T2 11. A host's number is
// its downlink + 1.
struct UsidList {
  std::array<std::uint16_t, 6> usid{};
  friend bool operator==(const UsidList&, const UsidList&) = default;

  // Drops the first. What a switch does to the destination address.
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

// What of a packet forwarding looks at: 28 bytes, kept with the packet.
struct RouteKey {
  HostIndex from = 0;
  HostIndex to = 0;
  std::uint32_t entropy = 0;
  std::uint32_t plane = 0;
  UsidList usids{};  // SRv6 only
};

// REQUIRES a node of this topology, and spec().needs_usids.
std::uint16_t usid_of(const Topology& topology, const NodeId& node);
// The list for one path: the switches after the host, then the host itself.
// REQUIRES path < path_count.
UsidList usids_for(const Topology& topology, std::uint32_t plane, HostIndex from, HostIndex to,
                   std::uint32_t path);

// Field widths of a STEV on this topology: bits for the T0's choice, then the T1's, from bit 31
// down.
struct StevLayout {
  std::uint32_t t0_bits = 0, t1_bits = 0;
  friend bool operator==(const StevLayout&, const StevLayout&) = default;
};
StevLayout stev_layout(const Topology& topology);

// All switches of one fabric. Holds a copy of the topology and nothing that changes: use one for
// all, from any thread.
class Forwarder {
 public:
  // SRv6 REQUIRES topology.spec().needs_usids. Hashed: the seed gives every switch its own salt.
  Forwarder(const Topology& topology, Forwarding mode, std::uint64_t salt_seed);

  Forwarding mode() const { return mode_; }

  // The link on which this packet leaves the switch at the end of `arrived_by`, kNoLink if that
  // switch has no way. SRv6: shifts key.usids, and looks at nothing else of the key. REQUIRES a
  // link that ends at a switch, and, except in SRv6, key.to < host_count(). The simulator's hot
  // path: multiplications instead of divisions, no memory beyond this object and the key.
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

// The finisher of SplitMix64: every bit of the input changes every bit of the output with
// probability about one half.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// If `own` is the first uSID, shifts it out and gives the next one; otherwise 0, to which no way
// leads.
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
  // 64 bits, because `below` is 32 for an empty field.
  const auto field =
      static_cast<std::uint32_t>(std::uint64_t{entropy} >> below) & ((1u << bits) - 1);
  return field < uplinks ? field
                         : field - uplinks;  // the field has no bit to spare, so this is the modulo
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

// In these three, an index that does not belong to this switch's neighbours wraps to a large number
// and fails the bound.
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
