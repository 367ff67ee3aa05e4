#include "softswitch/live_fabric.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/prng.h"
#include "fabric/address.h"
#include "wire/framing.h"

namespace weft::softswitch {

using fabric::HostIndex;
using fabric::LinkId;
using switching::Loss;

namespace {

// The size of a packet on the wire: with FCS, preamble and gap, as wire::wire_size() counts.
std::uint32_t wire_size_of(std::size_t ip_size) {
  constexpr std::size_t kAround = wire::kEthernetSize + wire::kEthernetFcsSize;
  return static_cast<std::uint32_t>(std::max(ip_size + kAround, wire::kEthernetFrameSizeMin) +
                                    wire::kEthernetGapSize);
}
static_assert(wire::wire_size({.header_size = 36, .trimmed = true}) ==
              wire::kIpv6Size + kTrimmedIpPayload + wire::kEthernetSize + wire::kEthernetFcsSize +
                  wire::kEthernetGapSize);

switching::HopsConfig hops_config(const LiveFabricConfig& config) {
  switching::HopsConfig out{.fabric_queue = config.fabric_queue,
                            .last_hop_queue = config.last_hop_queue,
                            .nic_bytes_max = config.nic_queue_bytes,
                            .shared_buffer_bytes = config.shared_buffer_bytes,
                            .shared_alpha_percent = config.shared_alpha_percent,
                            .seed = config.seed};
  out.fabric_queue.mtu_wire_size = out.last_hop_queue.mtu_wire_size =
      static_cast<std::uint32_t>(wire::wire_size({.header_size = 36, .payload_size = config.mtu}));
  return out;
}

}  // namespace

LiveFabric::LiveFabric(LiveFabricConfig config)
    : config_(std::move(config)),
      plain_(config_.topology, config_.forwarding, Prng(config_.seed).fork("salt").next()),
      packets_(config_.packets_max),
      memory_(std::make_unique_for_overwrite<std::byte[]>(std::size_t{config_.packets_max} *
                                                          kSlotSize)),
      delivered_(config_.packets_max),
      delivered_at_(config_.packets_max),
      hops_(config_.topology, hops_config(config_)),
      extra_delay_(config_.topology.link_count()),
      link_counters_(config_.topology.link_count()) {
  WEFT_ASSERT(config_.forwarding != fabric::Forwarding::kSrv6);
  if (config_.topology.spec().needs_usids) {
    by_usid_ = std::make_unique<fabric::Forwarder>(config_.topology, fabric::Forwarding::kSrv6, 0);
  }
  events_.reserve(config_.packets_max);
  handed_.reserve(config_.packets_max);
  free_.reserve(config_.packets_max);
  // take() uses low slots first, so that few pages of the memory are touched.
  for (std::uint32_t i = config_.packets_max; i > 0; --i) free_.push_back(i - 1);
}

// --- packets and events ------------------------------------------------------------------------

bool LiveFabric::is_after(const Event& a, const Event& b) {
  return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
}

void LiveFabric::push(Time at, LinkId link, std::uint32_t packet) {
  events_.push_back({.at = at, .sequence = sequence_++, .packet = packet, .link = link});
  std::push_heap(events_.begin(), events_.end(), is_after);
}

std::uint32_t LiveFabric::take() {
  if (free_.empty()) return kNone;
  const std::uint32_t packet = free_.back();
  free_.pop_back();
  return packet;
}

std::uint32_t LiveFabric::clone(std::uint32_t packet) {
  const std::uint32_t copy = take();
  if (copy == kNone) {
    ++counters_.drops_memory;
    return copy;
  }
  packets_[copy] = packets_[packet];
  std::memcpy(bytes_of(copy).data(), bytes_of(packet).data(), packets_[packet].size);
  return copy;
}

void LiveFabric::drop(std::uint32_t packet, std::uint64_t& counter) {
  ++counter;
  free_.push_back(packet);
}

// Drops a packet and counts the loss. A packet lost in transit counts for the link that it was on;
// other packets count for `link`, by which they arrived or were to leave.
void LiveFabric::drop(std::uint32_t packet, Loss loss, LinkId link) {
  switch (loss) {
    case Loss::kNone:
      WEFT_ASSERT(false);
      return;
    case Loss::kInTransit:
      return drop(packet, link_counters_[packets_[packet].transit.link].drops_down);
    case Loss::kLinkDown:
      return drop(packet, link_counters_[link].drops_down);
    case Loss::kQueueFull:
      return drop(packet, link_counters_[link].drops_queue);
    case Loss::kImpairment:
      return drop(packet, link_counters_[link].drops_fault);
    case Loss::kNoRoute:
      return drop(packet, counters_.drops_route);
  }
}

switching::Passing LiveFabric::passing(std::uint32_t packet) {
  const auto facts = read_facts(bytes_of(packet));
  WEFT_ASSERT(facts.has_value());
  return {.entropy = facts->entropy, .header = facts->datagram};
}

void LiveFabric::run(Time now) {
  while (!events_.empty() && events_.front().at <= now) {
    std::pop_heap(events_.begin(), events_.end(), is_after);
    const Event event = events_.back();
    events_.pop_back();
    now_ = std::max(now_, event.at);
    if (event.link == fabric::kNoLink) {
      deliver(event.packet);
    } else {
      forward(event.link, event.packet);
    }
  }
  now_ = std::max(now_, now);
}

Time LiveFabric::next_deadline() const {
  if (!delivered_.empty()) return now_;
  return events_.empty() ? kNever : events_.front().at;
}

// --- the path of a packet --------------------------------------------------------------------

// Sets the packet's route, by its destination address in the fabric's address plan or by its uSIDs.
// False: there is no route inside the plane.
bool LiveFabric::find_route(LinkId first, Packet& packet, const PacketFacts& facts) const {
  const fabric::LinkPlace from = config_.topology.place(first);
  packet.route = {.from = from.lower, .entropy = facts.entropy, .plane = from.plane};
  if (const auto to = fabric::port_of(facts.destination)) {
    packet.route.to = to->host;
    return to->host < config_.topology.host_count() && to->plane == from.plane;
  }
  const auto usids = fabric::usids_of(facts.destination);
  if (!usids || by_usid_ == nullptr) return false;
  packet.by_usid = true;
  packet.route.usids = *usids;
  return true;
}

void LiveFabric::on_packet(Time now, HostIndex host, std::uint32_t plane, ConstBytes bytes) {
  WEFT_ASSERT(host < config_.topology.host_count() && plane < config_.topology.plane_count());
  run(now);
  const auto facts = read_facts(bytes);
  Packet packet;
  if (!facts || facts->size > kPacketSizeMax ||
      !find_route(config_.topology.host_up(plane, host), packet, *facts)) {
    ++counters_.ignored;
    return;
  }
  ++counters_.packets_in;
  const std::uint32_t index = take();
  if (index == kNone) {
    ++counters_.drops_memory;
    return;
  }
  packet.size = static_cast<std::uint32_t>(facts->size);
  packets_[index] = packet;
  std::memcpy(bytes_of(index).data(), bytes.data(), packet.size);
  send(host, index, *facts);
}

void LiveFabric::send(HostIndex host, std::uint32_t index, const PacketFacts& facts) {
  const LinkId id = config_.topology.host_up(packets_[index].route.plane, host);
  const switching::Admitted admitted = hops_.send(now_, id,
                                                  {.wire_size = wire_size_of(packets_[index].size),
                                                   .control = switching::is_control(facts.dscp)});
  if (admitted.loss != Loss::kNone) return drop(index, admitted.loss, id);
  travel(id, index, admitted.leaves_at);
}

// Queues a packet at the output port of a switch.
void LiveFabric::forward(LinkId id, std::uint32_t index) {
  Packet& packet = packets_[index];
  const auto facts = read_facts(bytes_of(index));
  WEFT_ASSERT(facts.has_value());
  const switching::Arriving arriving{
      .wire_size = wire_size_of(packet.size),
      .trimmed_wire_size = wire_size_of(
          std::min<std::size_t>(packet.size, wire::kIpv6Size + config_.trimmed_size_after_ip)),
      .control = switching::is_control(facts->dscp),
      .trimmable = facts->udp && switching::is_trimmable(facts->dscp),
      .ecn_capable = facts->ecn != world::Ecn::kNotEct};
  const switching::Admitted admitted = hops_.admit(now_, packet.transit, id, arriving);
  if (admitted.loss != Loss::kNone) return drop(index, admitted.loss, id);
  if (admitted.trimmed) {
    ++link_counters_[id].trims;
    packet.size = static_cast<std::uint32_t>(trim(
        bytes_of(index), {.dscp = hops_.trimmed_dscp(id), .keep = config_.trimmed_size_after_ip}));
  }
  if (admitted.marked) {
    ++link_counters_[id].ecn_marks;
    mark_ce(bytes_of(index));
  }
  hops_.occupy(id, wire_size_of(packet.size), admitted.leaves_at);
  travel(id, index, admitted.leaves_at);
}

// The packet's last byte leaves on link `id` at `leaves_at`. Schedules its arrival at the other
// end.
void LiveFabric::travel(LinkId id, std::uint32_t index, Time leaves_at) {
  Packet& packet = packets_[index];
  ++link_counters_[id].packets;
  link_counters_[id].bytes += wire_size_of(packet.size);
  const switching::Departed departed =
      hops_.depart({.link = id,
                    .leaves_at = leaves_at + extra_delay_[id],
                    .forwarder = packet.by_usid ? *by_usid_ : plain_,
                    .route = packet.route,
                    .transit = packet.transit},
                   [this, index] { return passing(index); });
  if (departed.loss != Loss::kNone) return drop(index, departed.loss, id);
  if (departed.corrupted) damage(bytes_of(index));
  push(departed.arrives_at, departed.next, index);
  if (!departed.duplicated) return;
  if (const std::uint32_t copy = clone(index); copy != kNone)
    push(departed.arrives_at, departed.next, copy);
}

void LiveFabric::deliver(std::uint32_t index) {
  Packet& packet = packets_[index];
  const LinkId via = packet.transit.link;
  const switching::Arrived arrived = hops_.arrive(packet.transit, config_.topology.place(via).lower,
                                                  [this, index] { return passing(index); });
  if (arrived.loss != Loss::kNone) return drop(index, arrived.loss, via);
  if (arrived.corrupted) damage(bytes_of(index));
  if (arrived.duplicated) {
    if (const std::uint32_t copy = clone(index); copy != kNone) push(now_, fabric::kNoLink, copy);
  }
  if (arrived.delayed > Duration()) return push(now_ + arrived.delayed, fabric::kNoLink, index);
  if (packet.by_usid) set_destination(bytes_of(index), fabric::address_of(packet.route.usids));
  delivered_at_[index] = now_;
  delivered_.push(index);
}

std::size_t LiveFabric::poll(Time now, std::span<Delivery> out) {
  for (const std::uint32_t index : handed_) free_.push_back(index);
  handed_.clear();
  run(now);
  std::size_t count = 0;
  for (; count < out.size() && !delivered_.empty(); ++count) {
    const std::uint32_t index = delivered_.front();
    delivered_.pop();
    handed_.push_back(index);
    const fabric::LinkPlace to = config_.topology.place(packets_[index].transit.link);
    out[count] = {
        .host = to.lower, .plane = to.plane, .at = delivered_at_[index], .packet = bytes_of(index)};
  }
  counters_.packets_out += count;
  return count;
}

}  // namespace weft::softswitch
