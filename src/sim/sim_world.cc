#include "sim/sim_world.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "fabric/address.h"
#include "wire/framing.h"

namespace weft::sim {

using fabric::HostIndex;
using fabric::LinkId;

namespace {

// The number of cache lines of a node that are prefetched before a call.
constexpr int kNodeLines = 6;

// The number of a switch among the switches of all planes and tiers.
std::uint32_t switch_number(const fabric::Topology& topology, const fabric::SwitchId& at) {
  std::uint32_t number = at.plane * (topology.switch_count() / topology.plane_count()) + at.index;
  if (at.tier != fabric::Tier::kT0) number += topology.switch_count(fabric::Tier::kT0);
  if (at.tier == fabric::Tier::kT2) number += topology.switch_count(fabric::Tier::kT1);
  return number;
}

switching::Passing passing(const Packet& packet) {
  return {.entropy = packet.route.entropy,
          .header = ConstBytes(packet.header).first(packet.header_size)};
}

}  // namespace

SimWorld::SimWorld(SimConfig config)
    : config_(std::move(config)),
      forwarder_(config_.topology, config_.forwarding, Prng(config_.seed).fork("salt").next()),
      packets_(config_.packets_max),
      links_(config_.topology.link_count()),
      hosts_(config_.topology.host_count()),
      impairments_(Prng(config_.seed).fork("impairments")),
      ecn_prng_(Prng(config_.seed).fork("ecn")) {
  const fabric::Topology& topology = config_.topology;
  config_.srv6_header = config_.srv6_header && config_.forwarding == fabric::Forwarding::kSrv6;
  for (LinkId link = 0; link < links_.size(); ++link) {
    links_[link].queue.set_rate(topology.rate(link));
    links_[link].last_hop = topology.is_last_hop(link);
  }
  hop_delay_ = topology.spec().link_delay + topology.spec().switch_delay;
  last_delay_ = topology.spec().link_delay;
  const auto full = static_cast<std::uint32_t>(wire::wire_size(
      {.header_size = 36, .payload_size = config_.mtu, .srv6 = config_.srv6_header}));
  mtu_time_ = topology.spec().host_rate.time_for(full);
  config_.fabric_queue.mtu_wire_size = config_.last_hop_queue.mtu_wire_size = full;
  trimmed_header_size_ = 36;
  if (config_.shared_buffer_bytes > 0) {
    buffer_of_link_.resize(links_.size());
    for (LinkId link = 0; link < links_.size(); ++link) {
      const fabric::NodeId from = topology.ends(link).from;
      if (from.tier != fabric::Tier::kHost) buffer_of_link_[link] = switch_number(topology, from);
    }
    buffers_.assign(topology.switch_count(), switching::SharedBuffer(config_.shared_buffer_bytes,
                                                                     config_.shared_alpha_percent));
  }
}

SimWorld::~SimWorld() = default;

Result<void> SimWorld::attach(std::span<const world::Address> ports, world::Node& node) {
  if (ports.size() != config_.topology.plane_count()) {
    return Error{ErrorKind::kInvalid, "a node needs one address for each plane"};
  }
  const auto port = fabric::port_of(ports[0].ip());
  if (!port || port->host >= hosts_.size())
    return Error{ErrorKind::kInvalid, "not an address of this fabric"};
  if (hosts_[port->host].node != nullptr)
    return Error{ErrorKind::kInvalid, "this host has a node already"};
  hosts_[port->host].node = &node;
  kick(port->host);
  return {};
}

void SimWorld::kick(HostIndex host) {
  HostState& h = hosts_[host];
  if (h.poll_at <= now_) return;
  h.poll_at = now_;
  events_.push(now_, kPoll << kKindShift | host, 0);
}

void SimWorld::schedule(std::span<const fabric::FaultEvent> faults) {
  for (const fabric::FaultEvent& fault : faults) {
    WEFT_ASSERT(fault.at >= now_);
    links_change_ |= fault.action == fabric::FaultAction::kLinkDown;
    events_.push(fault.at, kFault << kKindShift, static_cast<std::uint32_t>(faults_.size()));
    faults_.push_back(fault);
  }
}

// --- the loop ----------------------------------------------------------------------------------

// On a large fabric memory latency dominates the run time, so the cache lines that the next events
// will touch are prefetched. Inlining is forced: g++ considers a function that only prefetches to
// have no effect, and removes the call.
[[gnu::always_inline]] inline void SimWorld::prefetch() const {
  constexpr std::size_t kFar = 20, kMiddle = 12, kNear = 5;
  const auto is_for_host = [](const Event& e) { return e.what >> kKindShift != kForward; };
  if (const Event* event = events_.peek(kFar)) {
    const std::uint32_t target = event->what & kTargetMask;
    switch (static_cast<Kind>(event->what >> kKindShift)) {
      case kForward:
        __builtin_prefetch(&packets_[event->arg], 1);
        __builtin_prefetch(&links_[target], 1);
        break;
      case kDeliver:
        __builtin_prefetch(&packets_[event->arg], 1);
        __builtin_prefetch(&packets_[event->arg].header, 0);
        [[fallthrough]];
      case kPoll:
        __builtin_prefetch(&hosts_[target], 1);
        break;
      default:
        break;
    }
  }
  if (const Event* event = events_.peek(kMiddle); event != nullptr && is_for_host(*event)) {
    const HostIndex host = event->what & kTargetMask;
    const char* node = reinterpret_cast<const char*>(hosts_[host].node);
    for (int line = 0; line < kNodeLines; ++line) __builtin_prefetch(node + 64 * line, 1);
    for (std::uint32_t plane = 0; plane < config_.topology.plane_count(); ++plane) {
      __builtin_prefetch(&links_[config_.topology.host_up(plane, host)], 1);
    }
  }
  if (const Event* event = events_.peek(kNear); event != nullptr && is_for_host(*event)) {
    const world::Node* node = hosts_[event->what & kTargetMask].node;
    if (node == nullptr) return;
    auto call = world::Node::Call::kPoll;
    if (event->what >> kKindShift == kDeliver) {
      const bool control = packets_[event->arg].dscp == world::Dscp::kControl;
      call = control ? world::Node::Call::kControl : world::Node::Call::kData;
    }
    const world::Node::Hot* const hot = node->hot(call);
    if (hot == nullptr) return;
    for (const world::Node::Part& part : *hot) {
      for (std::uint32_t at = 0; at < part.bytes; at += 64) {
        __builtin_prefetch(static_cast<const char*>(part.at) + at, 1);
      }
    }
  }
}

bool SimWorld::step(Time limit) {
  Event event;
  while (events_.pop(limit, event)) {
    now_ = Time::from_start(Duration::ps(event.at));
    ++counters_.events;
    prefetch();
    const std::uint32_t target = event.what & kTargetMask;
    switch (static_cast<Kind>(event.what >> kKindShift)) {
      case kForward:
        forward(target, event.arg);
        break;
      case kDeliver:
        deliver(target, event.arg);
        break;
      case kPoll:
        if (hosts_[target].poll_at == now_) {
          hosts_[target].poll_at = kNever;
          poll_host(target);
          arm_deadline(target);
        }
        break;
      case kDeadline:
        on_deadline(target, now_);
        break;
      case kFault:
        carry_out(faults_[event.arg]);
        break;
    }
  }
  if (limit != kNever) now_ = std::max(now_, limit);
  return !events_.empty();
}

// --- packets -----------------------------------------------------------------------------------

void SimWorld::drop(std::uint32_t packet, std::uint64_t& counter) {
  ++counter;
  packets_.give_back(packet);
}

// True if the link that the packet is on has been up since the packet was sent.
bool SimWorld::survives(const Packet& packet) const {
  return !links_change_ || links_[packet.via].epoch == packet.via_epoch;
}

std::uint64_t SimWorld::queue_limit(LinkId link, const switching::QueueParams& params) {
  if (buffers_.empty()) return params.data_bytes_max;
  return std::min(params.data_bytes_max, buffers_[buffer_of_link_[link]].limit(now_));
}

// The queue and the marking thresholds of a slowed port shrink with its rate, because a switch sets
// them by the speed of the port. Two packets always fit.
switching::QueueParams SimWorld::slowed(switching::QueueParams params, std::uint32_t percent) {
  const std::uint64_t least = 2 * std::uint64_t{params.mtu_wire_size};
  params.data_bytes_max = std::max(params.data_bytes_max * percent / 100, least);
  params.ecn_bytes_min = params.ecn_bytes_min * percent / 100;
  params.ecn_bytes_max = params.ecn_bytes_max * percent / 100;
  return params;
}

void SimWorld::forward(LinkId id, std::uint32_t index) {
  Link& link = links_[id];
  Packet& packet = packets_[index];
  if (!survives(packet)) return drop(index, counters_.drops_down);
  if (!link.up) return drop(index, counters_.drops_down);
  const bool control = packet.dscp == world::Dscp::kControl || world::is_trimmed(packet.dscp);
  const switching::Arriving arriving{
      .wire_size = packet.wire_size,
      .trimmed_wire_size = static_cast<std::uint32_t>(wire::wire_size(
          {.header_size = trimmed_header_size_, .srv6 = config_.srv6_header, .trimmed = true})),
      .control = control,
      .trimmable =
          packet.dscp == world::Dscp::kTrimmable || packet.dscp == world::Dscp::kTrimmableRetx,
      .ecn_capable = packet.ecn != world::Ecn::kNotEct};
  const switching::QueueParams* params =
      link.last_hop ? &config_.last_hop_queue : &config_.fabric_queue;
  switching::QueueParams scaled;
  if (link.percent != 100) params = &(scaled = slowed(*params, link.percent));
  const auto admission =
      link.queue.admit(now_, arriving, *params, queue_limit(id, *params), ecn_prng_);
  if (admission.fate == switching::Fate::kDropped) return drop(index, counters_.drops_queue);
  if (admission.fate == switching::Fate::kTrimmed) {
    ++counters_.trims;
    trim(packet, link.last_hop);
  }
  if (admission.marked) {
    ++counters_.ecn_marks;
    packet.ecn = world::Ecn::kCe;
  }
  if (!buffers_.empty() && buffers_[buffer_of_link_[id]].has_room(packet.wire_size)) {
    buffers_[buffer_of_link_[id]].take(packet.wire_size, admission.leaves_at);
  }
  travel(id, index, admission.leaves_at);
}

void SimWorld::trim(Packet& packet, bool last_hop) {
  packet.dscp = last_hop ? world::Dscp::kTrimmedLastHop : world::Dscp::kTrimmed;
  packet.payload.size = 0;
  packet.header_size =
      static_cast<std::uint8_t>(std::min<std::uint32_t>(packet.header_size, trimmed_header_size_));
  packet.wire_size = static_cast<std::uint32_t>(wire::wire_size(
      {.header_size = packet.header_size, .srv6 = config_.srv6_header, .trimmed = true}));
}

// The last byte of the packet leaves on link `id` at `leaves_at`: schedules its arrival.
void SimWorld::travel(LinkId id, std::uint32_t index, Time leaves_at) {
  ++counters_.packet_hops;
  if (!link_packets_.empty()) ++link_packets_[id];
  Link& link = links_[id];
  Packet& packet = packets_[index];
  switching::Harm harm;
  if (link.impaired || impairments_.on_all_links()) {
    harm = impairments_.at_link(id, passing(packet));
    if (harm.lost) return drop(index, counters_.drops_fault);
    packet.intact = packet.intact && !harm.corrupted;
  }
  packet.via = id;
  packet.via_epoch = link.epoch;
  Time at = leaves_at + harm.delayed;
  std::uint32_t what = 0;
  if (link.last_hop) {
    at += last_delay_;
    what = kDeliver << kKindShift | packet.route.to;
  } else {
    const LinkId next = forwarder_.next(id, packet.route);
    if (next == fabric::kNoLink) return drop(index, counters_.drops_route);
    at += hop_delay_;
    what = kForward << kKindShift | next;
  }
  events_.push(at, what, index);
  if (!harm.duplicated) return;
  if (const std::uint32_t copy = clone(index); copy != PacketPool::kNone)
    events_.push(at, what, copy);
}

std::uint32_t SimWorld::clone(std::uint32_t index) {
  const std::uint32_t copy = packets_.take();
  if (copy != PacketPool::kNone) packets_[copy] = packets_[index];
  return copy;
}

// A packet arrives at its host: applies the faults of the receiving NIC.
void SimWorld::deliver(HostIndex host, std::uint32_t index) {
  Packet& packet = packets_[index];
  if (!survives(packet)) return drop(index, counters_.drops_down);
  if (impairments_.on_nics() && !packet.past_nic) {
    const switching::Harm harm = impairments_.at_nic(host, passing(packet));
    if (harm.lost) return drop(index, counters_.drops_fault);
    packet.intact = packet.intact && !harm.corrupted;
    packet.past_nic = true;
    if (harm.duplicated) {
      if (const std::uint32_t copy = clone(index); copy != PacketPool::kNone) accept(host, copy);
    }
    if (harm.delayed > Duration()) {
      events_.push(now_ + harm.delayed, kDeliver << kKindShift | host, index);
      return;
    }
  }
  accept(host, index);
}

// No fault applies any more: passes the packet to the node, or stores it for a paused host.
void SimWorld::accept(HostIndex host, std::uint32_t index) {
  HostState& h = hosts_[host];
  packets_[index].arrived = now_;
  if (h.crashed || h.node == nullptr) return drop(index, counters_.drops_down);
  if (h.paused) {
    if (h.backlog->size() >= config_.host_backlog_max) return drop(index, counters_.drops_host);
    h.backlog->push_back(index);
    return;
  }
  give(host, {&index, 1});
}

// Passes packets to the node of a host, and folds them into the trace hash.
void SimWorld::give(HostIndex host, std::span<const std::uint32_t> indices) {
  in_.clear();
  for (const std::uint32_t index : indices) {
    const Packet& packet = packets_[index];
    ++counters_.packets_delivered;
    hash_.fold(static_cast<std::uint64_t>(now_.ps()) ^ std::uint64_t{host} << 40 ^
               static_cast<std::uint64_t>(packet.ecn) << 60);
    in_.push_back({.port = static_cast<world::PortIndex>(packet.route.plane),
                   .ecn = packet.ecn,
                   .dscp = packet.dscp,
                   .intact = packet.intact,
                   .entropy = packet.route.entropy,
                   .received_at = packet.arrived,
                   .peer = world::Address::of(fabric::address_of(
                       fabric::HostPort{.host = packet.route.from, .plane = packet.route.plane})),
                   .header = ConstBytes(packet.header).first(packet.header_size),
                   .payload = packet.payload});
  }
  hosts_[host].node->on_datagrams(now_, in_);
  for (const std::uint32_t index : indices) packets_.give_back(index);
  poll_host(host);
  arm_deadline(host);
}

std::vector<MemoryPart> SimWorld::memory() const {
  std::uint64_t backlog = 0;
  for (const HostState& h : hosts_)
    backlog += h.backlog ? h.backlog->capacity() * sizeof(std::uint32_t) : 0;
  return {{"links", links_.capacity() * sizeof(Link)},
          {"hosts' ports", hosts_.capacity() * sizeof(HostState) + backlog},
          {"packets in flight", packets_.bytes()},
          {"events", events_.bytes()}};
}

}  // namespace weft::sim
