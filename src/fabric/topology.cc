#include "fabric/topology.h"

#include <algorithm>

namespace weft::fabric {
namespace {

Error invalid(std::string message) {
  return {ErrorKind::kInvalid, "topology: " + std::move(message)};
}

struct NamedCount {
  const char* name;
  std::uint64_t value;
};

Result<void> check_positive(std::initializer_list<NamedCount> counts) {
  for (const NamedCount& count : counts) {
    if (count.value == 0) return invalid(std::string(count.name) + " must be at least 1");
  }
  return {};
}

// REQUIRES whole > 0 and part > 0.
Result<void> check_multiple(NamedCount whole, NamedCount part) {
  if (whole.value % part.value == 0) return {};
  const std::uint64_t below = whole.value / part.value * part.value;
  std::string fits = std::to_string(below + part.value);
  if (below > 0) fits = std::to_string(below) + " or " + fits;
  return invalid(std::string(whole.name) + " = " + std::to_string(whole.value) +
                 " is not a multiple of " + part.name + " = " + std::to_string(part.value) + "; " +
                 fits + " would fit");
}

Result<void> check_counts(const TopologySpec& spec) {
  WEFT_CHECK(
      check_positive({{"hosts", spec.hosts}, {"planes", spec.planes}, {"rails", spec.rails}}));
  if (spec.planes > kPlaneCountMax) {
    return invalid("planes = " + std::to_string(spec.planes) + ", at most 8 fit");
  }
  if (spec.shape == Shape::kTwoTier) {
    WEFT_CHECK(check_positive({{"hosts_per_t0", spec.hosts_per_t0}, {"t1_count", spec.t1_count}}));
  } else if (spec.shape == Shape::kThreeTier) {
    WEFT_CHECK(check_positive({{"hosts_per_t0", spec.hosts_per_t0},
                               {"t0_per_pod", spec.t0_per_pod},
                               {"t1_per_pod", spec.t1_per_pod},
                               {"t2_per_t1", spec.t2_per_t1}}));
  }
  return {};
}

Result<void> check_fit(const TopologySpec& spec) {
  if (spec.shape == Shape::kSingle) return {};
  WEFT_CHECK(check_multiple({"hosts", spec.hosts}, {"hosts_per_t0", spec.hosts_per_t0}));
  if (spec.layout == Layout::kRail) {
    WEFT_CHECK(check_multiple({"hosts", spec.hosts}, {"rails", spec.rails}));
    WEFT_CHECK(check_multiple({"hosts of one rail", spec.hosts / spec.rails},
                              {"hosts_per_t0", spec.hosts_per_t0}));
  }
  if (spec.shape == Shape::kThreeTier) {
    WEFT_CHECK(
        check_multiple({"T0 switches (hosts / hosts_per_t0)", spec.hosts / spec.hosts_per_t0},
                       {"t0_per_pod", spec.t0_per_pod}));
  }
  return {};
}

Result<void> check_links(const TopologySpec& spec) {
  if (spec.host_rate.bits_per_second() == 0) return invalid("host_rate is not set");
  if (spec.shape != Shape::kSingle && spec.fabric_rate.bits_per_second() == 0) {
    return invalid("fabric_rate is not set");
  }
  if (spec.link_delay < Duration() || spec.switch_delay < Duration()) {
    return invalid("link_delay and switch_delay must not be negative");
  }
  return {};
}

// Counts in one plane, in 64 bits so that they cannot wrap.
struct Sizes {
  std::uint64_t hosts_per_t0 = 0, t0 = 0, t1 = 0, t2 = 0, t0_uplinks = 0, t1_uplinks = 0;
};

// REQUIRES that check_counts() and check_fit() succeeded.
Sizes sizes_of(const TopologySpec& spec) {
  if (spec.shape == Shape::kSingle) return {.hosts_per_t0 = spec.hosts, .t0 = 1};
  Sizes sizes{.hosts_per_t0 = spec.hosts_per_t0, .t0 = spec.hosts / spec.hosts_per_t0};
  if (spec.shape == Shape::kTwoTier) {
    sizes.t1 = sizes.t0_uplinks = spec.t1_count;
  } else {
    sizes.t0_uplinks = spec.t1_per_pod;
    sizes.t1_uplinks = spec.t2_per_t1;
    sizes.t1 = sizes.t0 / spec.t0_per_pod * spec.t1_per_pod;
    sizes.t2 = std::uint64_t{spec.t1_per_pod} * spec.t2_per_t1;
  }
  return sizes;
}

Result<void> check_sizes(const TopologySpec& spec, const Sizes& sizes) {
  if (spec.needs_usids) {
    const NamedCount numbered[] = {{"hosts of one T0", sizes.hosts_per_t0},
                                   {"T0 switches of a plane", sizes.t0},
                                   {"T1 switches of a plane", sizes.t1},
                                   {"T2 switches of a plane", sizes.t2}};
    for (const NamedCount& count : numbered) {
      if (count.value <= kUsidNumberMax) continue;
      return invalid(std::to_string(count.value) + " " + count.name +
                     ", but a uSID numbers at most 2047; fewer, or no SRv6 (needs_usids = false)");
    }
  }
  constexpr std::uint64_t kLinksMax = kNoLink;
  const std::uint64_t t0_links = sizes.t0 * sizes.t0_uplinks;  // both below 2^32: cannot wrap
  if (t0_links > kLinksMax || sizes.t1 > kLinksMax || sizes.t2 > kLinksMax ||
      sizes.t1 * sizes.t1_uplinks > kLinksMax ||
      2 * spec.planes * (spec.hosts + t0_links + sizes.t1 * sizes.t1_uplinks) > kLinksMax) {
    return invalid("more than 4294967295 links");
  }
  return {};
}

Divider divider_or_one(std::uint32_t divisor) { return Divider(std::max(divisor, 1u)); }

std::string name_of(const NodeId& node) {
  static constexpr const char* kNames[] = {"host ", "T0 ", "T1 ", "T2 "};
  return kNames[static_cast<int>(node.tier)] + std::to_string(node.index);
}

}  // namespace

Result<Topology> Topology::make(const TopologySpec& spec) {
  WEFT_CHECK(check_counts(spec));
  WEFT_CHECK(check_fit(spec));
  WEFT_CHECK(check_links(spec));
  WEFT_CHECK(check_sizes(spec, sizes_of(spec)));
  return Topology(spec);
}

Topology::Topology(const TopologySpec& spec) : hosts_(spec.hosts), spec_(spec) {
  const Sizes sizes = sizes_of(spec);
  t0_count_ = static_cast<std::uint32_t>(sizes.t0);
  t1_count_ = static_cast<std::uint32_t>(sizes.t1);
  t2_count_ = static_cast<std::uint32_t>(sizes.t2);
  t0_uplinks_ = static_cast<std::uint32_t>(sizes.t0_uplinks);
  t1_uplinks_ = static_cast<std::uint32_t>(sizes.t1_uplinks);
  t0_links_ = t0_count_ * t0_uplinks_;
  t1_links_ = t1_count_ * t1_uplinks_;
  t0_links_at_ = 2 * hosts_;
  t1_links_at_ = t0_links_at_ + 2 * t0_links_;
  const std::uint32_t plane_links = t1_links_at_ + 2 * t1_links_;
  link_count_ = plane_links * spec.planes;

  const bool is_rail = spec.layout == Layout::kRail && spec.shape != Shape::kSingle;
  const std::uint32_t rails = is_rail ? spec.rails : 1;
  machines_ = hosts_ / rails;
  by_plane_links_ = Divider(plane_links);
  by_hosts_per_t0_ = Divider(static_cast<std::uint32_t>(sizes.hosts_per_t0));
  by_rails_ = Divider(rails);
  by_machines_ = Divider(machines_);
  by_t0_per_pod_ = Divider(spec.shape == Shape::kThreeTier ? spec.t0_per_pod : t0_count_);
  by_t0_uplinks_ = divider_or_one(t0_uplinks_);
  by_t1_uplinks_ = divider_or_one(t1_uplinks_);
}

std::uint32_t Topology::switch_count() const {
  return (t0_count_ + t1_count_ + t2_count_) * spec_.planes;
}

LinkId Topology::reverse(LinkId link) const {
  switch (place(link).kind) {
    case LinkKind::kHostUp:
      return link + hosts_;
    case LinkKind::kHostDown:
      return link - hosts_;
    case LinkKind::kT0Up:
      return link + t0_links_;
    case LinkKind::kT0Down:
      return link - t0_links_;
    case LinkKind::kT1Up:
      return link + t1_links_;
    case LinkKind::kT1Down:
      return link - t1_links_;
  }
  return kNoLink;
}

Topology::LinkEnds Topology::ends(LinkId link) const {
  const LinkPlace at = place(link);
  const std::uint32_t plane = at.plane;
  NodeId lower, upper;
  switch (at.kind) {
    case LinkKind::kHostUp:
    case LinkKind::kHostDown:
      lower = {plane, Tier::kHost, at.lower};
      upper = {plane, Tier::kT0, t0_of(at.lower)};
      break;
    case LinkKind::kT0Up:
    case LinkKind::kT0Down:
      lower = {plane, Tier::kT0, at.lower};
      upper = {plane, Tier::kT1, pod_of(at.lower) * t0_uplinks_ + at.uplink};
      break;
    case LinkKind::kT1Up:
    case LinkKind::kT1Down:
      lower = {plane, Tier::kT1, at.lower};
      upper = {plane, Tier::kT2, by_t0_uplinks_.remainder(at.lower) * t1_uplinks_ + at.uplink};
      break;
  }
  const bool is_up =
      at.kind == LinkKind::kHostUp || at.kind == LinkKind::kT0Up || at.kind == LinkKind::kT1Up;
  return is_up ? LinkEnds{lower, upper} : LinkEnds{upper, lower};
}

std::string Topology::describe(LinkId link) const {
  const LinkEnds link_ends = ends(link);
  return name_of(link_ends.from) + " -> " + name_of(link_ends.to) + " (plane " +
         std::to_string(link_ends.from.plane) + ")";
}

std::uint32_t Topology::hops(HostIndex from, HostIndex to) const {
  const std::uint32_t from_t0 = t0_of(from), to_t0 = t0_of(to);
  if (from_t0 == to_t0) return 2;
  return pod_of(from_t0) == pod_of(to_t0) ? 4 : 6;
}

std::uint32_t Topology::path_count(HostIndex from, HostIndex to) const {
  WEFT_ASSERT(from < hosts_ && to < hosts_);
  switch (hops(from, to)) {
    case 2:
      return 1;
    case 4:
      return t0_uplinks_;
    default:
      return t0_uplinks_ * t1_uplinks_;
  }
}

Topology::Path Topology::path(std::uint32_t plane, HostIndex from, HostIndex to,
                              std::uint32_t path) const {
  WEFT_ASSERT(plane < spec_.planes && path < path_count(from, to));
  const std::uint32_t from_t0 = t0_of(from), to_t0 = t0_of(to);
  const LinkId first = host_up(plane, from), last = host_down(plane, to);
  switch (hops(from, to)) {
    case 2:
      return {2, {first, last}};
    case 4:
      return {4, {first, t0_up(plane, from_t0, path), t0_down(plane, to_t0, path), last}};
    default:
      break;
  }
  const std::uint32_t j = by_t1_uplinks_.quotient(path), k = by_t1_uplinks_.remainder(path);
  const std::uint32_t from_t1 = pod_of(from_t0) * t0_uplinks_ + j;
  const std::uint32_t to_t1 = pod_of(to_t0) * t0_uplinks_ + j;
  return {6,
          {first, t0_up(plane, from_t0, j), t1_up(plane, from_t1, k), t1_down(plane, to_t1, k),
           t0_down(plane, to_t0, j), last}};
}

Duration Topology::one_way(std::uint32_t hops, std::uint32_t bytes) const {
  return spec_.host_rate.time_for(bytes) * 2 + spec_.fabric_rate.time_for(bytes) * (hops - 2) +
         spec_.link_delay * hops + spec_.switch_delay * (hops - 1);
}

Duration Topology::idle_rtt(HostIndex from, HostIndex to, std::uint32_t bytes_out,
                            std::uint32_t bytes_back) const {
  WEFT_ASSERT(from < hosts_ && to < hosts_);
  return one_way(hops(from, to), bytes_out) + one_way(hops(from, to), bytes_back);
}

Duration Topology::idle_rtt_max(std::uint32_t bytes_out, std::uint32_t bytes_back) const {
  // The first host of the first T0 and the last host of the last T0 have the longest path: they are
  // in different T0s and pods if there are several.
  return idle_rtt(host_at(0, 0), host_at(t0_count_ - 1, hosts_per_t0() - 1), bytes_out, bytes_back);
}

}  // namespace weft::fabric
