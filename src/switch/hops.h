// Hops: all links of one fabric, and the algorithm of one hop. It has neither a clock nor packets:
// times and properties of a packet are arguments, and the packet's fate is the result.
//
// The output port at the start of a link belongs to the link. The calls for one packet are, in order:
//   send      at the sending host: the queue of its NIC
//   depart    on every link: impairments of the link, the next link, the time of arrival there
//   admit     at every switch: the queue of the output port, which admits, marks, trims or drops;
//             occupy() then accounts for the bytes that are left of the packet
//   arrive    at the receiving host: impairments of its NIC
// send() and admit() compute when the last byte leaves, so each hop is one event of the caller. The
// caller owns packets and events, changes the packets (mark, trim, damage, copy), and counts.
//
// The simulator (sim/sim_world.h) and the software switch (softswitch/live_fabric.h) both consist of
// these calls, so a scenario means the same in both. Owned by one world. The memory is fixed at
// construction, 32 bytes per link, except that of active impairments and shared buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "fabric/fault.h"
#include "fabric/forward.h"
#include "fabric/topology.h"
#include "switch/impairments.h"
#include "switch/port_queue.h"
#include "switch/shared_buffer.h"
#include "world/world.h"

namespace weft::switching {

struct HopsConfig {
  QueueParams fabric_queue;  // ports between switches
  QueueParams last_hop_queue;
  std::uint64_t nic_bytes_max = 0;        // the queue of a host's own link
  std::uint64_t shared_buffer_bytes = 0;  // 0: every port has only its own queue
  std::uint32_t shared_alpha_percent = 100;
  std::uint64_t seed = 1;
};

// The reason for which a packet is dropped.
enum class Loss : std::uint8_t {
  kNone,
  kInTransit,  // the link it arrived on went down meanwhile
  kLinkDown,   // the link it was to leave on is down
  kQueueFull,
  kImpairment,
  kNoRoute,  // the switch has no link towards the destination
};

// The link that a packet is on. Stored with the packet.
struct Transit {
  fabric::LinkId link = fabric::kNoLink;
  std::uint32_t epoch = 0;  // epoch of the link when the packet left
  bool past_nic = false;    // the receiving NIC's impairments were already applied
};

struct Admitted {
  Loss loss = Loss::kNone;
  bool marked = false;
  bool trimmed = false;
  Time leaves_at{};  // when the last byte leaves; not set if the packet is dropped
};

// A packet whose last byte leaves on `link` at `leaves_at`.
struct Departing {
  fabric::LinkId link = fabric::kNoLink;
  Time leaves_at{};
  const fabric::Forwarder& forwarder;
  fabric::RouteKey& route;
  Transit& transit;
};

struct Departed {
  Loss loss = Loss::kNone;
  bool corrupted = false;
  bool duplicated = false;                // a second packet arrives at the same time
  fabric::LinkId next = fabric::kNoLink;  // the output port there; kNoLink: it arrives at its host
  Time arrives_at{};                      // not set if the packet is dropped
};

struct Arrived {
  Loss loss = Loss::kNone;
  bool corrupted = false;
  bool duplicated = false;  // a copy arrives now
  Duration delayed{};       // above 0: it arrives once more, that much later
};

constexpr bool is_control(world::Dscp dscp) {
  return dscp == world::Dscp::kControl || world::is_trimmed(dscp);
}
constexpr bool is_trimmable(world::Dscp dscp) {
  return dscp == world::Dscp::kTrimmable || dscp == world::Dscp::kTrimmableRetx;
}

// Below, `link` REQUIRES a link of the topology, and `now` does not run backwards.
class Hops {
 public:
  // REQUIRES rates above 0 and an mtu_wire_size in both queues.
  Hops(const fabric::Topology& topology, const HopsConfig& config);

  // Queues a packet on its host's own link. This queue neither marks nor trims: it holds packets that
  // a NIC would keep in the host. A packet occupies the port for the same time if the link is down.
  Admitted send(Time now, fabric::LinkId link, const Arriving& packet);
  // Queues a packet that arrived on `from` at the output port of `link`.
  Admitted admit(Time now, const Transit& from, fabric::LinkId link, const Arriving& packet);
  // Takes an admitted packet's bytes, after trimming, from the shared buffer of its switch until it
  // has left.
  void occupy(fabric::LinkId link, std::uint32_t wire_size, Time leaves_at);
  // `passing()` returns the packet's Passing. Called only if an impairment may apply.
  template <typename PassingOf>
  Departed depart(const Departing& packet, PassingOf passing);
  template <typename PassingOf>
  Arrived arrive(Transit& transit, fabric::HostIndex host, PassingOf passing);

  // The DSCP of a packet that was trimmed at this port.
  world::Dscp trimmed_dscp(fabric::LinkId link) const {
    return links_[link].last_hop ? world::Dscp::kTrimmedLastHop : world::Dscp::kTrimmed;
  }
  const PortQueue& queue(fabric::LinkId link) const { return links_[link].queue; }
  bool is_up(fabric::LinkId link) const { return links_[link].up; }
  std::size_t bytes() const { return links_.capacity() * sizeof(Link); }
  void prefetch(fabric::LinkId link) const { __builtin_prefetch(&links_[link], 1); }

  // Carries out a fault of a link or of packets, from `now` on. Returns false if nothing changed: the
  // link was already up, or already down. REQUIRES !is_of_host(fault.action), and a link and a
  // percentage that exist where fabric/fault.h says that the event has them.
  bool apply(Time now, const fabric::FaultEvent& fault);
  void end_impairments();
  // Queue and mark thresholds change with the rate, as a switch sets them by the speed of a port.
  void set_rate(fabric::LinkId link, Rate rate);

 private:
  struct Link {
    PortQueue queue;
    std::uint32_t epoch = 0;  // incremented each time the link goes down
    bool up = true;
    bool impaired = false;
    bool last_hop = false;
    std::uint8_t percent = 100;  // current rate, as a share of the full rate
  };
  static_assert(sizeof(Link) == 32);

  bool is_still_on_link(const Transit& transit) const {
    return !a_link_went_down_ || links_[transit.link].epoch == transit.epoch;
  }
  static QueueParams slowed(QueueParams params, std::uint32_t percent);
  std::uint64_t queue_limit(Time now, fabric::LinkId link, const QueueParams& params);
  // Both return false if the link is in that state already.
  bool take_down(Time now, fabric::LinkId link);
  bool bring_up(Time now, fabric::LinkId link);
  void start_impairment(const fabric::FaultEvent& fault);
  void end_impairment(std::uint32_t id);

  fabric::Topology topology_;
  QueueParams fabric_queue_, last_hop_queue_, nic_queue_;
  Duration link_delay_, switch_delay_;
  // False: no packet can have been lost in transit, so the link on which it arrived need not be
  // read.
  bool a_link_went_down_ = false;
  std::vector<Link> links_;
  std::vector<SharedBuffer> buffers_;  // by switch; empty if buffers are not shared
  std::vector<std::uint32_t> buffer_of_link_;
  Impairments impairments_;
  Prng ecn_prng_;
};

inline Admitted Hops::send(Time now, fabric::LinkId id, const Arriving& packet) {
  Link& link = links_[id];
  const Admission admission =
      link.queue.admit(now, packet, nic_queue_, nic_queue_.data_bytes_max, ecn_prng_);
  Admitted out{.leaves_at = admission.leaves_at};
  if (admission.fate == Fate::kDropped) {
    out.loss = Loss::kQueueFull;
  } else if (!link.up) {
    out.loss = Loss::kLinkDown;
  }
  return out;
}

// Inlining is forced: these two are most of what a simulated hop computes, and g++ finds them too
// large.
[[gnu::always_inline]] inline std::uint64_t Hops::queue_limit(Time now, fabric::LinkId link,
                                                              const QueueParams& params) {
  if (buffers_.empty()) return params.data_bytes_max;
  return std::min(params.data_bytes_max, buffers_[buffer_of_link_[link]].limit(now));
}

[[gnu::always_inline]] inline Admitted Hops::admit(Time now, const Transit& from, fabric::LinkId id,
                                                   const Arriving& packet) {
  Link& link = links_[id];
  if (!is_still_on_link(from)) return {.loss = Loss::kInTransit};
  if (!link.up) return {.loss = Loss::kLinkDown};
  const QueueParams* params = link.last_hop ? &last_hop_queue_ : &fabric_queue_;
  QueueParams of_slow_port;
  if (link.percent != 100) params = &(of_slow_port = slowed(*params, link.percent));
  const Admission admission =
      link.queue.admit(now, packet, *params, queue_limit(now, id, *params), ecn_prng_);
  if (admission.fate == Fate::kDropped) return {.loss = Loss::kQueueFull};
  return {.marked = admission.marked,
          .trimmed = admission.fate == Fate::kTrimmed,
          .leaves_at = admission.leaves_at};
}

inline void Hops::occupy(fabric::LinkId link, std::uint32_t wire_size, Time leaves_at) {
  if (buffers_.empty()) return;
  SharedBuffer& buffer = buffers_[buffer_of_link_[link]];
  if (buffer.has_room(wire_size)) buffer.take(wire_size, leaves_at);
}

template <typename PassingOf>
inline Departed Hops::depart(const Departing& packet, PassingOf passing) {
  Departed out;
  const Link& link = links_[packet.link];
  Duration delayed;
  if (link.impaired || impairments_.on_all_links()) {
    const Harm harm = impairments_.at_link(packet.link, passing());
    if (harm.lost) {
      out.loss = Loss::kImpairment;
      return out;
    }
    out.corrupted = harm.corrupted;
    out.duplicated = harm.duplicated;
    delayed = harm.delayed;
  }
  packet.transit.link = packet.link;
  packet.transit.epoch = link.epoch;
  out.arrives_at = packet.leaves_at + delayed + link_delay_;
  if (link.last_hop) return out;
  out.arrives_at += switch_delay_;
  out.next = packet.forwarder.next(packet.link, packet.route);
  if (out.next == fabric::kNoLink) out.loss = Loss::kNoRoute;
  return out;
}

template <typename PassingOf>
inline Arrived Hops::arrive(Transit& transit, fabric::HostIndex host, PassingOf passing) {
  Arrived out;
  if (!is_still_on_link(transit)) {
    out.loss = Loss::kInTransit;
    return out;
  }
  if (!impairments_.on_nics() || transit.past_nic) return out;
  const Harm harm = impairments_.at_nic(host, passing());
  if (harm.lost) {
    out.loss = Loss::kImpairment;
    return out;
  }
  transit.past_nic = true;
  out.corrupted = harm.corrupted;
  out.duplicated = harm.duplicated;
  out.delayed = harm.delayed;
  return out;
}

}  // namespace weft::switching
