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

// The MRC header that a trimmed packet keeps: BTH, METH, TSETH and RETH (docs/wire.md).
constexpr std::uint32_t kTrimmedHeaderSize = 36;

switching::Passing passing(const Packet& packet) {
  return {.entropy = packet.route.entropy,
          .header = ConstBytes(packet.header).first(packet.header_size)};
}

std::uint32_t full_packet_size(const SimConfig& config) {
  return static_cast<std::uint32_t>(wire::wire_size(
      {.header_size = kTrimmedHeaderSize, .payload_size = config.mtu, .srv6 = config.srv6_header}));
}

SimConfig completed(SimConfig config) {
  config.srv6_header = config.srv6_header && config.forwarding == fabric::Forwarding::kSrv6;
  config.fabric_queue.mtu_wire_size = config.last_hop_queue.mtu_wire_size =
      full_packet_size(config);
  return config;
}

switching::HopsConfig hops_config(const SimConfig& config) {
  return {.fabric_queue = config.fabric_queue,
          .last_hop_queue = config.last_hop_queue,
          .nic_bytes_max = 1ull << 40,  // the room that the port offers bounds its queue
          .shared_buffer_bytes = config.shared_buffer_bytes,
          .shared_alpha_percent = config.shared_alpha_percent,
          .seed = config.seed};
}

}  // namespace

SimWorld::SimWorld(SimConfig config)
    : config_(completed(std::move(config))),
      forwarder_(config_.topology, config_.forwarding, Prng(config_.seed).fork("salt").next()),
      packets_(config_.packets_max),
      hops_(config_.topology, hops_config(config_)),
      hosts_(config_.topology.host_count()),
      mtu_time_(config_.topology.spec().host_rate.time_for(full_packet_size(config_))) {}

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
  poll_node(port->host);
  return {};
}

void SimWorld::poll_node(HostIndex host) {
  HostState& h = hosts_[host];
  if (h.poll_at <= now_) return;
  h.poll_at = now_;
  events_.push(now_, kPoll << kKindShift | host, 0);
}

void SimWorld::schedule(std::span<const fabric::FaultEvent> faults) {
  for (const fabric::FaultEvent& fault : faults) {
    WEFT_ASSERT(fault.at >= now_);
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
        hops_.prefetch(target);
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
      hops_.prefetch(config_.topology.host_up(plane, host));
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
    const world::Node::PrefetchParts* const prefetch = node->prefetch(call);
    if (prefetch == nullptr) return;
    for (const world::Node::Part& part : *prefetch) {
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

void SimWorld::drop(std::uint32_t packet, switching::Loss loss) {
  switch (loss) {
    case switching::Loss::kNone:
      WEFT_ASSERT(false);
      return;
    case switching::Loss::kInTransit:
    case switching::Loss::kLinkDown:
      return drop(packet, counters_.drops_down);
    case switching::Loss::kQueueFull:
      return drop(packet, counters_.drops_queue);
    case switching::Loss::kImpairment:
      return drop(packet, counters_.drops_fault);
    case switching::Loss::kNoRoute:
      return drop(packet, counters_.drops_route);
  }
}

std::uint32_t SimWorld::trimmed_wire_size(std::size_t header_size) const {
  return static_cast<std::uint32_t>(
      wire::wire_size({.header_size = header_size, .srv6 = config_.srv6_header, .trimmed = true}));
}

void SimWorld::forward(LinkId id, std::uint32_t index) {
  Packet& packet = packets_[index];
  const switching::Arriving arriving{.wire_size = packet.wire_size,
                                     .trimmed_wire_size = trimmed_wire_size(kTrimmedHeaderSize),
                                     .control = switching::is_control(packet.dscp),
                                     .trimmable = switching::is_trimmable(packet.dscp),
                                     .ecn_capable = packet.ecn != world::Ecn::kNotEct};
  const switching::Admitted admitted = hops_.admit(now_, packet.transit, id, arriving);
  if (admitted.loss != switching::Loss::kNone) return drop(index, admitted.loss);
  if (admitted.trimmed) {
    ++counters_.trims;
    trim(packet, hops_.trimmed_dscp(id));
  }
  if (admitted.marked) {
    ++counters_.ecn_marks;
    packet.ecn = world::Ecn::kCe;
  }
  hops_.occupy(id, packet.wire_size, admitted.leaves_at);
  travel(id, index, admitted.leaves_at);
}

void SimWorld::trim(Packet& packet, world::Dscp dscp) {
  packet.dscp = dscp;
  packet.payload.size = 0;
  packet.header_size =
      static_cast<std::uint8_t>(std::min<std::uint32_t>(packet.header_size, kTrimmedHeaderSize));
  packet.wire_size = trimmed_wire_size(packet.header_size);
}

// The last byte of the packet leaves on link `id` at `leaves_at`: schedules its arrival.
void SimWorld::travel(LinkId id, std::uint32_t index, Time leaves_at) {
  ++counters_.packet_hops;
  if (!link_packets_.empty()) ++link_packets_[id];
  Packet& packet = packets_[index];
  const switching::Departed departed = hops_.depart({.link = id,
                                                     .leaves_at = leaves_at,
                                                     .forwarder = forwarder_,
                                                     .route = packet.route,
                                                     .transit = packet.transit},
                                                    [&packet] { return passing(packet); });
  if (departed.loss != switching::Loss::kNone) return drop(index, departed.loss);
  packet.intact = packet.intact && !departed.corrupted;
  const bool is_last_hop = departed.next == fabric::kNoLink;
  const std::uint32_t what = is_last_hop ? kDeliver << kKindShift | packet.route.to
                                         : kForward << kKindShift | departed.next;
  events_.push(departed.arrives_at, what, index);
  if (!departed.duplicated) return;
  if (const std::uint32_t copy = clone(index); copy != PacketPool::kNone)
    events_.push(departed.arrives_at, what, copy);
}

std::uint32_t SimWorld::clone(std::uint32_t index) {
  const std::uint32_t copy = packets_.take();
  if (copy != PacketPool::kNone) packets_[copy] = packets_[index];
  return copy;
}

// A packet arrives at its host: applies the faults of the receiving NIC.
void SimWorld::deliver(HostIndex host, std::uint32_t index) {
  Packet& packet = packets_[index];
  const switching::Arrived arrived =
      hops_.arrive(packet.transit, host, [&packet] { return passing(packet); });
  if (arrived.loss != switching::Loss::kNone) return drop(index, arrived.loss);
  packet.intact = packet.intact && !arrived.corrupted;
  if (arrived.duplicated) {
    if (const std::uint32_t copy = clone(index); copy != PacketPool::kNone) accept(host, copy);
  }
  if (arrived.delayed > Duration()) {
    events_.push(now_ + arrived.delayed, kDeliver << kKindShift | host, index);
    return;
  }
  accept(host, index);
}

// All faults are applied: passes the packet to the node, or stores it for a paused host.
void SimWorld::accept(HostIndex host, std::uint32_t index) {
  HostState& h = hosts_[host];
  packets_[index].arrived = now_;
  if (h.crashed || h.node == nullptr) return drop(index, counters_.drops_down);
  if (h.paused) {
    if (h.backlog->size() >= config_.host_backlog_max) return drop(index, counters_.drops_host);
    h.backlog->push_back(index);
    return;
  }
  give_to_node(host, {&index, 1});
}

// Passes packets to the node of a host, and folds them into the trace hash.
void SimWorld::give_to_node(HostIndex host, std::span<const std::uint32_t> indices) {
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

CounterTable table_of(const SimCounters& counters) {
  const auto drops = [](std::string_view reason, std::uint64_t value) {
    return Counter{"sim.drops", "packets", value, {.reason = reason}};
  };
  return {{"sim.packets_sent", "packets", counters.packets_sent},
          {"sim.packets_delivered", "packets", counters.packets_delivered},
          {"sim.packet_hops", "packets", counters.packet_hops},
          {"sim.trims", "packets", counters.trims},
          {"sim.ecn_marks", "packets", counters.ecn_marks},
          drops("queue", counters.drops_queue),
          drops("down", counters.drops_down),
          drops("fault", counters.drops_fault),
          drops("route", counters.drops_route),
          drops("host", counters.drops_host),
          {"sim.events", "events", counters.events}};
}

std::vector<MemoryPart> SimWorld::memory() const {
  std::uint64_t backlog = 0;
  for (const HostState& h : hosts_)
    backlog += h.backlog ? h.backlog->capacity() * sizeof(std::uint32_t) : 0;
  return {{"links", hops_.bytes()},
          {"hosts' ports", hosts_.capacity() * sizeof(HostState) + backlog},
          {"packets in flight", packets_.bytes()},
          {"events", events_.bytes()}};
}

}  // namespace weft::sim
