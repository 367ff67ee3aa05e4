#include "softswitch/live_fabric.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "fabric/address.h"
#include "wire/framing.h"

namespace weft::softswitch {

using fabric::HostIndex;
using fabric::LinkId;
using switching::QueueParams;

namespace {

// The size on the wire with FCS, preamble and gap, as wire::wire_size() counts it.
std::uint32_t wire_size_of(std::size_t ip_size) {
  constexpr std::size_t kAround = wire::kEthernetSize + wire::kEthernetFcsSize;
  return static_cast<std::uint32_t>(std::max(ip_size + kAround, wire::kEthernetFrameSizeMin) +
                                    wire::kEthernetGapSize);
}
static_assert(wire::wire_size({.header_size = 36, .trimmed = true}) ==
              wire::kIpv6Size + kTrimmedIpPayload + wire::kEthernetSize + wire::kEthernetFcsSize +
                  wire::kEthernetGapSize);

bool is_control(world::Dscp dscp) {
  return dscp == world::Dscp::kControl || world::is_trimmed(dscp);
}

bool is_trimmable(const PacketFacts& facts) {
  return facts.udp &&
         (facts.dscp == world::Dscp::kTrimmable || facts.dscp == world::Dscp::kTrimmableRetx);
}

// A number for each switch, unique over all planes and tiers.
std::uint32_t switch_number(const fabric::Topology& topology, const fabric::SwitchId& at) {
  std::uint32_t number = at.plane * (topology.switch_count() / topology.plane_count()) + at.index;
  if (at.tier != fabric::Tier::kT0) number += topology.switch_count(fabric::Tier::kT0);
  if (at.tier == fabric::Tier::kT2) number += topology.switch_count(fabric::Tier::kT1);
  return number;
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
      links_(config_.topology.link_count()),
      impairments_(Prng(config_.seed).fork("impairments")),
      ecn_prng_(Prng(config_.seed).fork("ecn")) {
  WEFT_ASSERT(config_.forwarding != fabric::Forwarding::kSrv6);
  const fabric::Topology& topology = config_.topology;
  if (topology.spec().needs_usids)
    by_usid_ = std::make_unique<fabric::Forwarder>(topology, fabric::Forwarding::kSrv6, 0);
  events_.reserve(config_.packets_max);
  handed_.reserve(config_.packets_max);
  free_.reserve(config_.packets_max);
  // Low slots are used first, so that few pages of the memory are touched.
  for (std::uint32_t i = config_.packets_max; i > 0; --i) free_.push_back(i - 1);
  for (LinkId link = 0; link < links_.size(); ++link) {
    WEFT_ASSERT(topology.rate(link).bits_per_second() > 0);
    links_[link].queue.set_rate(topology.rate(link));
    links_[link].last_hop = topology.is_last_hop(link);
  }
  config_.fabric_queue.mtu_wire_size = config_.last_hop_queue.mtu_wire_size =
      static_cast<std::uint32_t>(wire::wire_size({.header_size = 36, .payload_size = config_.mtu}));
  if (config_.shared_buffer_bytes == 0) return;
  buffer_of_link_.resize(links_.size());
  for (LinkId link = 0; link < links_.size(); ++link) {
    const fabric::NodeId from = topology.ends(link).from;
    if (from.tier != fabric::Tier::kHost) buffer_of_link_[link] = switch_number(topology, from);
  }
  buffers_.assign(topology.switch_count(), switching::SharedBuffer(config_.shared_buffer_bytes,
                                                                   config_.shared_alpha_percent));
}

// --- packets and events ------------------------------------------------------------------------

bool LiveFabric::later(const Event& a, const Event& b) {
  return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
}

void LiveFabric::push(Time at, LinkId link, std::uint32_t packet) {
  events_.push_back({.at = at, .sequence = sequence_++, .packet = packet, .link = link});
  std::push_heap(events_.begin(), events_.end(), later);
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

switching::Passing LiveFabric::passing(std::uint32_t packet) {
  const auto facts = look_at(bytes_of(packet));
  WEFT_ASSERT(facts.has_value());
  return {.entropy = facts->entropy, .header = facts->datagram};
}

void LiveFabric::run(Time now) {
  while (!events_.empty() && events_.front().at <= now) {
    std::pop_heap(events_.begin(), events_.end(), later);
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

// The path of a packet: by its destination address of the plan, or by its uSIDs. False: there is
// none inside the plane.
bool LiveFabric::find_way(LinkId first, Packet& packet, const PacketFacts& facts) const {
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
  const auto facts = look_at(bytes);
  Packet packet;
  if (!facts || facts->size > kPacketSizeMax ||
      !find_way(config_.topology.host_up(plane, host), packet, *facts)) {
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

// Queues a packet on the host's own link. That queue neither marks nor trims: it holds the packets
// that a NIC would keep in the host.
void LiveFabric::send(HostIndex host, std::uint32_t index, const PacketFacts& facts) {
  const LinkId id = config_.topology.host_up(packets_[index].route.plane, host);
  Link& link = links_[id];
  const switching::Arriving arriving{.wire_size = wire_size_of(packets_[index].size),
                                     .control = is_control(facts.dscp)};
  QueueParams nic;
  nic.control_bytes_max = config_.nic_queue_bytes;
  nic.mtu_wire_size = config_.fabric_queue.mtu_wire_size;
  nic.ecn = false;
  const auto admission = link.queue.admit(now_, arriving, nic, config_.nic_queue_bytes, ecn_prng_);
  if (admission.fate == switching::Fate::kDropped) return drop(index, link.counters.drops_queue);
  // A dead link takes the packet's transmission time too.
  if (!link.up) return drop(index, link.counters.drops_down);
  travel(id, index, admission.leaves_at);
}

// The queue and mark thresholds of a slow port shrink with its rate, but two packets always fit.
const QueueParams& LiveFabric::queue_params(const Link& link, QueueParams& scaled) const {
  const QueueParams& params = link.last_hop ? config_.last_hop_queue : config_.fabric_queue;
  if (link.percent == 100) return params;
  scaled = params;
  scaled.data_bytes_max =
      std::max(params.data_bytes_max * link.percent / 100, 2 * std::uint64_t{params.mtu_wire_size});
  scaled.ecn_bytes_min = params.ecn_bytes_min * link.percent / 100;
  scaled.ecn_bytes_max = params.ecn_bytes_max * link.percent / 100;
  return scaled;
}

std::uint64_t LiveFabric::queue_limit(LinkId link, const QueueParams& params) {
  if (buffers_.empty()) return params.data_bytes_max;
  return std::min(params.data_bytes_max, buffers_[buffer_of_link_[link]].limit(now_));
}

// Queues a packet at the output port of a switch.
void LiveFabric::forward(LinkId id, std::uint32_t index) {
  Link& link = links_[id];
  Packet& packet = packets_[index];
  Link& came_by = links_[packet.via];
  if (came_by.epoch != packet.via_epoch) return drop(index, came_by.counters.drops_down);
  if (!link.up) return drop(index, link.counters.drops_down);
  const auto facts = look_at(bytes_of(index));
  WEFT_ASSERT(facts.has_value());
  const switching::Arriving arriving{
      .wire_size = wire_size_of(packet.size),
      .trimmed_wire_size = wire_size_of(
          std::min<std::size_t>(packet.size, wire::kIpv6Size + config_.trimmed_size_after_ip)),
      .control = is_control(facts->dscp),
      .trimmable = is_trimmable(*facts),
      .ecn_capable = facts->ecn != world::Ecn::kNotEct};
  QueueParams scaled;
  const QueueParams& params = queue_params(link, scaled);
  const auto admission =
      link.queue.admit(now_, arriving, params, queue_limit(id, params), ecn_prng_);
  if (admission.fate == switching::Fate::kDropped) return drop(index, link.counters.drops_queue);
  if (admission.fate == switching::Fate::kTrimmed) {
    ++link.counters.trims;
    const auto dscp = link.last_hop ? world::Dscp::kTrimmedLastHop : world::Dscp::kTrimmed;
    packet.size = static_cast<std::uint32_t>(
        trim(bytes_of(index), {.dscp = dscp, .keep = config_.trimmed_size_after_ip}));
  }
  if (admission.marked) {
    ++link.counters.ecn_marks;
    mark_ce(bytes_of(index));
  }
  const std::uint32_t size = wire_size_of(packet.size);
  if (!buffers_.empty() && buffers_[buffer_of_link_[id]].has_room(size))
    buffers_[buffer_of_link_[id]].take(size, admission.leaves_at);
  travel(id, index, admission.leaves_at);
}

// The packet's last byte leaves on link `id` at `leaves_at`; its arrival is the next event.
void LiveFabric::travel(LinkId id, std::uint32_t index, Time leaves_at) {
  Link& link = links_[id];
  Packet& packet = packets_[index];
  ++link.counters.packets;
  link.counters.bytes += wire_size_of(packet.size);
  switching::Harm harm;
  if (link.impaired || impairments_.on_all_links()) {
    harm = impairments_.at_link(id, passing(index));
    if (harm.lost) return drop(index, link.counters.drops_fault);
    if (harm.corrupted) damage(bytes_of(index));
  }
  packet.via = id;
  packet.via_epoch = link.epoch;
  const fabric::TopologySpec& spec = config_.topology.spec();
  Time at = leaves_at + harm.delayed + link.extra_delay + spec.link_delay;
  LinkId next = fabric::kNoLink;
  if (!link.last_hop) {
    next = (packet.by_usid ? *by_usid_ : plain_).next(id, packet.route);
    if (next == fabric::kNoLink) return drop(index, counters_.drops_route);
    at += spec.switch_delay;
  }
  push(at, next, index);
  if (!harm.duplicated) return;
  if (const std::uint32_t copy = clone(index); copy != kNone) push(at, next, copy);
}

void LiveFabric::deliver(std::uint32_t index) {
  Packet& packet = packets_[index];
  Link& link = links_[packet.via];
  if (link.epoch != packet.via_epoch) return drop(index, link.counters.drops_down);
  if (impairments_.on_nics() && !packet.past_nic) {
    const HostIndex host = config_.topology.place(packet.via).lower;
    const switching::Harm harm = impairments_.at_nic(host, passing(index));
    if (harm.lost) return drop(index, link.counters.drops_fault);
    if (harm.corrupted) damage(bytes_of(index));
    packet.past_nic = true;
    if (harm.duplicated) {
      if (const std::uint32_t copy = clone(index); copy != kNone) push(now_, fabric::kNoLink, copy);
    }
    if (harm.delayed > Duration()) return push(now_ + harm.delayed, fabric::kNoLink, index);
  }
  if (packet.by_usid) readdress(bytes_of(index), fabric::address_of(packet.route.usids));
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
    const fabric::LinkPlace to = config_.topology.place(packets_[index].via);
    out[count] = {
        .host = to.lower, .plane = to.plane, .at = delivered_at_[index], .packet = bytes_of(index)};
  }
  counters_.packets_out += count;
  return count;
}

}  // namespace weft::softswitch
