// LiveFabric: the simulator's fabric for real packets. It models every link of a topology with its
// rate, queue, marks, trims and faults. It has no sockets and no clock: packets and the time are
// arguments.
//
// A packet is walked hop by hop by switching::Hops, as in sim/sim_world.cc, each hop at its own time.
// A late call delays no hop: due events are handled with their own times, in the order (time,
// arrival).
//
// Routing: a packet to an address of the plan (fabric/address.h) is hashed or follows the fields of
// its EV. A uSID carrier follows its uSIDs and arrives with only the host's uSID left, as the
// kernel's seg6local leaves it. Planes share nothing. All other packets are counted and dropped.
//
// Owned by one thread. All packet memory is allocated at construction: `packets_max` slots, and as
// many places in the event heap and the delivery ring. A packet that finds no slot is dropped and
// counted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/ring.h"
#include "base/time.h"
#include "fabric/fault.h"
#include "fabric/forward.h"
#include "fabric/topology.h"
#include "softswitch/ip_packet.h"
#include "switch/hops.h"

namespace weft::softswitch {

struct LiveFabricConfig {
  fabric::Topology topology;
  // For packets to a host's own address: kHashed or kStev. Carriers follow their uSIDs if the
  // topology has uSIDs.
  fabric::Forwarding forwarding = fabric::Forwarding::kHashed;
  std::uint32_t mtu = 4096;  // payload of a full packet
  // The bytes that a trim keeps behind the IP header. Sealed packets need
  // kSealedTrimmedSizeAfterIp, otherwise the receiver cannot authenticate the header.
  std::size_t trimmed_size_after_ip = kTrimmedIpPayload;
  switching::QueueParams fabric_queue;  // between switches; mtu_wire_size follows from mtu
  switching::QueueParams last_hop_queue;
  std::uint64_t shared_buffer_bytes = 0;
  std::uint32_t shared_alpha_percent = 100;
  // The bytes that may wait for a host's own link. A NIC would make the sender wait; a veth cannot.
  std::uint64_t nic_queue_bytes = 1u << 20;
  std::uint32_t packets_max = 8192;  // in the fabric at a time; 9 KiB each, first touched when used
  std::uint64_t seed = 1;
};

// The counters of one direction of a link.
struct LinkCounters {
  std::uint64_t packets = 0, bytes = 0;  // sent on it; bytes on the wire, framing included
  std::uint64_t trims = 0, ecn_marks = 0;
  std::uint64_t drops_queue = 0;  // full queue
  std::uint64_t drops_down = 0;   // it was down, or went down while they were on it
  std::uint64_t drops_fault = 0;  // lost by an impairment
};

struct LiveFabricCounters {
  std::uint64_t packets_in = 0, packets_out = 0;
  std::uint64_t ignored = 0;       // not an IPv6 packet to an address of this fabric
  std::uint64_t drops_route = 0;   // a switch had no path for it
  std::uint64_t drops_memory = 0;  // packets_max were in the fabric
};

class LiveFabric {
 public:
  // Larger packets are ignored.
  static constexpr std::size_t kPacketSizeMax = 9'200;

  explicit LiveFabric(LiveFabricConfig config);

  // A packet, from the IP header on, that `host` sent on its port in `plane`. The bytes are copied.
  // Time does not run backwards: an earlier `now` counts as the latest one. REQUIRES a host and
  // plane of the topology.
  void on_packet(Time now, fabric::HostIndex host, std::uint32_t plane, ConstBytes packet);

  struct Delivery {
    fabric::HostIndex host = 0;
    std::uint32_t plane = 0;
    Time at{};  // the arrival of its last byte
    ConstBytes packet{};
  };
  // The packets that have arrived at their host, in the order of arrival. Returns how many; they
  // are valid until the next poll().
  std::size_t poll(Time now, std::span<Delivery> out);
  // The next time at which poll() has something to do.
  Time next_deadline() const;

  // Starts or ends a fault now. Errors: kInvalid (no such link or share), kExhausted
  // (kImpairmentsMax are active), kUnsupported (a fault of a host, which is a process of its own).
  static constexpr std::size_t kImpairmentsMax = 4096;
  Result<void> apply(Time now, const fabric::FaultEvent& fault);
  // Ends all impairments, whatever their ids.
  void end_impairments(Time now);
  // A delay on top of the topology's, for packets that leave on `link` from now on. REQUIRES a link
  // of the topology.
  void set_extra_delay(fabric::LinkId link, Duration delay) { extra_delay_[link] = delay; }
  // Queue and mark thresholds change with the rate, as a switch sets them by the speed of a port.
  // REQUIRES a link of the topology.
  void set_rate(fabric::LinkId link, Rate rate) { hops_.set_rate(link, rate); }
  bool is_up(fabric::LinkId link) const { return hops_.is_up(link); }
  std::size_t impairment_count() const { return impairment_ids_.size(); }

  const fabric::Topology& topology() const { return config_.topology; }
  const LiveFabricCounters& counters() const { return counters_; }
  const LinkCounters& counters(fabric::LinkId link) const { return link_counters_[link]; }
  std::uint32_t packets_under_way() const { return config_.packets_max - free_count(); }

 private:
  using LinkId = fabric::LinkId;
  struct Packet {
    fabric::RouteKey route;
    switching::Transit transit;
    std::uint32_t size = 0;  // from the IP header on
    bool by_usid = false;
  };
  // A packet arrives at the queue of `link`; with kNoLink, at the host at the end of the link that it
  // is on.
  struct Event {
    Time at;
    std::uint64_t sequence = 0;
    std::uint32_t packet = 0;
    LinkId link = fabric::kNoLink;
  };
  static bool later(const Event& a, const Event& b);

  void run(Time now);
  void send(fabric::HostIndex host, std::uint32_t packet, const PacketFacts& facts);
  void forward(LinkId link, std::uint32_t packet);
  void travel(LinkId link, std::uint32_t packet, Time leaves_at);
  void deliver(std::uint32_t packet);
  bool find_route(LinkId first, Packet& packet, const PacketFacts& facts) const;

  Bytes bytes_of(std::uint32_t packet) {
    return Bytes(memory_.get() + std::size_t{packet} * kSlotSize, packets_[packet].size);
  }
  std::uint32_t free_count() const { return static_cast<std::uint32_t>(free_.size()); }
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  std::uint32_t take();
  std::uint32_t clone(std::uint32_t packet);
  void drop(std::uint32_t packet, std::uint64_t& counter);
  void drop(std::uint32_t packet, switching::Loss loss, LinkId link);
  void push(Time at, LinkId link, std::uint32_t packet);
  switching::Passing passing(std::uint32_t packet);

  static constexpr std::size_t kSlotSize = 9'216;  // kPacketSizeMax in whole cache lines
  LiveFabricConfig config_;
  fabric::Forwarder plain_;
  std::unique_ptr<fabric::Forwarder> by_usid_;  // null: this topology has no uSIDs
  Time now_;
  std::uint64_t sequence_ = 0;
  std::vector<Event> events_;  // a heap
  std::vector<Packet> packets_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<std::uint32_t> free_;
  Ring<std::uint32_t> delivered_;
  std::vector<Time> delivered_at_;     // by packet
  std::vector<std::uint32_t> handed_;  // given out by the last poll()
  switching::Hops hops_;
  std::vector<Duration> extra_delay_;  // by link
  std::vector<LinkCounters> link_counters_;
  std::vector<std::uint32_t> impairment_ids_;  // active ones
  LiveFabricCounters counters_;
};

// Totals, and one entry for each link with traffic, as one line of JSON.
std::string to_json(const LiveFabric& fabric);

}  // namespace weft::softswitch
