#include "fabric/ev.h"

#include <numeric>
#include <utility>

namespace weft::fabric {
namespace {

constexpr std::uint32_t kPathBits = 24;
constexpr std::uint32_t kPathMask = (1u << kPathBits) - 1;

// A path between two hosts in one plane. Each round gives the path another EV value.
struct EvRequest {
  std::uint32_t plane = 0;
  HostIndex from = 0, to = 0;
  std::uint32_t path = 0;
  std::uint32_t round = 0;
};

std::uint32_t srv6_value(const Topology& topology, const EvRequest& request) {
  const std::uint32_t path_count = topology.path_count(request.from, request.to);
  const std::uint32_t rounds = (kPathMask + 1) / path_count;  // as many as fit into 24 bits
  return request.plane << kPathBits | (request.round % rounds * path_count + request.path);
}

std::uint32_t stev_value(const Topology& topology, const EvRequest& request) {
  const StevLayout layout = stev_layout(topology);
  const std::uint32_t spare_bits = 32 - layout.t0_bits - layout.t1_bits;
  const Topology::Path links = topology.path(0, request.from, request.to, request.path);
  const std::uint64_t j = links.hops >= 4 ? topology.place(links.links[1]).uplink : 0;
  const std::uint64_t k = links.hops >= 6 ? topology.place(links.links[2]).uplink : 0;
  const std::uint64_t spare = request.round & ((std::uint64_t{1} << spare_bits) - 1);
  return static_cast<std::uint32_t>((j << layout.t1_bits | k) << spare_bits | spare);
}

// REQUIRES SRv6 or STEV.
Ev make_ev(const Topology& topology, Forwarding mode, const EvRequest& request) {
  const auto port = static_cast<std::uint8_t>(request.plane);
  if (mode == Forwarding::kStev) return {stev_value(topology, request), port};
  return {srv6_value(topology, request), port};
}

}  // namespace

Ev ev_for_path(const Topology& topology, Forwarding mode, std::uint32_t plane, HostIndex from,
               HostIndex to, std::uint32_t path) {
  WEFT_ASSERT(mode != Forwarding::kHashed);
  WEFT_ASSERT(plane < topology.plane_count() && path < topology.path_count(from, to));
  return make_ev(topology, mode, {.plane = plane, .from = from, .to = to, .path = path});
}

std::uint32_t path_of_ev(const Topology& topology, HostIndex from, HostIndex to, std::uint32_t ev) {
  return (ev & kPathMask) % topology.path_count(from, to);
}

std::vector<Ev> draw_evs(const Topology& topology, Forwarding mode, HostIndex from, HostIndex to,
                         std::uint32_t count_per_plane, Prng& prng) {
  const std::uint32_t planes = topology.plane_count();
  std::vector<Ev> evs(std::size_t{planes} * count_per_plane);
  if (mode == Forwarding::kHashed) {
    for (std::size_t i = 0; i < evs.size(); ++i) {
      evs[i] = {static_cast<std::uint32_t>(prng.next() >> 32),
                static_cast<std::uint8_t>(i % planes)};
    }
    return evs;
  }
  std::vector<std::uint32_t> paths(topology.path_count(from, to));
  std::iota(paths.begin(), paths.end(), 0u);
  const auto path_count = static_cast<std::uint32_t>(paths.size());
  for (std::uint32_t plane = 0; plane < planes; ++plane) {
    for (std::uint32_t i = 0; i < count_per_plane; ++i) {
      // One step of a shuffle: position `at` gets a path that this round has not drawn yet. The
      // shuffle may start from the order that the previous round or plane left.
      const std::uint32_t at = i % path_count;
      std::swap(paths[at], paths[at + prng.below(path_count - at)]);
      evs[std::size_t{i} * planes + plane] = make_ev(
          topology, mode,
          {.plane = plane, .from = from, .to = to, .path = paths[at], .round = i / path_count});
    }
  }
  return evs;
}

}  // namespace weft::fabric
