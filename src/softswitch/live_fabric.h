// LiveFabric: the simulator's fabric for real packets. It models every link of a topology with its
// rate, queue, marks, trims and faults. It uses no sockets and no clock: packets and the time are
// arguments.
//
// switching::Hops moves each packet hop by hop, as in sim/sim_world.cc, each hop at its own time. A
// late call delays no hop: due events are handled with their own times, in the order (time,
// arrival).
//
// Routing: a packet to an address of the address plan (fabric/address.h) is hashed to a path, or
// follows the fields of its EV. A packet to a uSID list follows its uSIDs and arrives with only the
// host's uSID left, as after the kernel's seg6local. Planes share nothing. All other packets are
// counted and dropped.
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
  // The routing of packets to a host's own address: kHashed or kStev. Packets to a uSID list follow
  // their uSIDs, if the topology has uSIDs.
  fabric::Forwarding forwarding = fabric::Forwarding::kHashed;
  std::uint32_t mtu = 4096;  // payload of a full packet
  // The bytes that a trim keeps behind the IP header. Sealed packets need
  // kSealedTrimmedSizeAfterIp: with less the receiver cannot authenticate the header.
  std::size_t trimmed_size_after_ip = kTrimmedIpPayload;
  switching::QueueParams fabric_queue;  // between switches; mtu_wire_size follows from mtu
  switching::QueueParams last_hop_queue;
  std::uint64_t shared_buffer_bytes = 0;
  std::uint32_t shared_alpha_percent = 100;
  // The most bytes that may wait for a host's own link. A NIC would make the sender wait; a veth
  // cannot.
  std::uint64_t nic_queue_bytes = 1u << 20;
  std::uint32_t packets_max = 8192;  // most packets in the fabric; 9 KiB each, touched when used
  std::uint64_t seed = 1;
};

// The counters of one direction of a link.
struct LinkCounters {
  std::uint64_t packets = 0, bytes = 0;  // sent on it; bytes on the wire, framing included
  std::uint64_t trims = 0, ecn_marks = 0;
  std::uint64_t drops_queue = 0;  // the queue was full
  std::uint64_t drops_down = 0;   // the link was down, or went down while packets were on it
  std::uint64_t drops_fault = 0;  // lost by an impairment
};

struct LiveFabricCounters {
  std::uint64_t packets_in = 0, packets_out = 0;
  std::uint64_t ignored = 0;       // not an IPv6 packet to an address of this fabric
  std::uint64_t drops_route = 0;   // a switch had no route for the packet
  std::uint64_t drops_memory = 0;  // packets_max packets were in the fabric
};

class LiveFabric {
 public:
  // Larger packets are ignored.
  static constexpr std::size_t kPacketSizeMax = 9'200;

  explicit LiveFabric(LiveFabricConfig config);

  // Takes a packet that `host` sent on its port in `plane`. The packet begins with its IP header,
  // and its bytes are copied. If `now` is earlier than in a previous call, the latest time counts.
  // REQUIRES a host and plane of the topology.
  void on_packet(Time now, fabric::HostIndex host, std::uint32_t plane, ConstBytes packet);

  struct Delivery {
    fabric::HostIndex host = 0;
    std::uint32_t plane = 0;
    Time at{};  // when the packet's last byte arrives
    ConstBytes packet{};
  };
  // Returns the number of packets that have arrived at their hosts, and writes them to `out` in the
  // order of arrival. They are valid until the next poll().
  std::size_t poll(Time now, std::span<Delivery> out);
  // The next time at which poll() has something to do.
  Time next_deadline() const;

  // Starts or ends a fault now. Errors: kInvalid (no such link or share), kExhausted
  // (kImpairmentsMax are active), kUnsupported (a fault of a host, because a host is a process of
  // its own).
  static constexpr std::size_t kImpairmentsMax = 4096;
  Result<void> apply(Time now, const fabric::FaultEvent& fault);
  // Ends all impairments, whatever their ids.
  void end_impairments(Time now);
  // Adds a delay to the topology's, for packets that leave on `link` from now on. REQUIRES a link
  // of the topology.
  void set_extra_delay(fabric::LinkId link, Duration delay) { extra_delay_[link] = delay; }
  // Sets the rate of a link. Queue size and mark thresholds change with the rate, as a switch sets
  // them by the speed of a port. REQUIRES a link of the topology.
  void set_rate(fabric::LinkId link, Rate rate) { hops_.set_rate(link, rate); }
  bool is_up(fabric::LinkId link) const { return hops_.is_up(link); }
  std::size_t impairment_count() const { return impairment_ids_.size(); }

  const fabric::Topology& topology() const { return config_.topology; }
  const LiveFabricCounters& counters() const { return counters_; }
  const LinkCounters& counters(fabric::LinkId link) const { return link_counters_[link]; }
  std::uint32_t packets_in_fabric() const { return config_.packets_max - free_count(); }

 private:
  using LinkId = fabric::LinkId;
  struct Packet {
    fabric::RouteKey route;
    switching::Transit transit;
    std::uint32_t size = 0;  // begins with the IP header
    bool by_usid = false;
  };
  // The arrival of a packet at the queue of `link`. With kNoLink it is the arrival at the host at
  // the end of the packet's last link.
  struct Event {
    Time at;
    std::uint64_t sequence = 0;
    std::uint32_t packet = 0;
    LinkId link = fabric::kNoLink;
  };
  static bool is_after(const Event& a, const Event& b);

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
  std::unique_ptr<fabric::Forwarder> by_usid_;  // null: the topology has no uSIDs
  Time now_;
  std::uint64_t sequence_ = 0;
  std::vector<Event> events_;  // heap, the earliest event first
  std::vector<Packet> packets_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<std::uint32_t> free_;
  Ring<std::uint32_t> delivered_;
  std::vector<Time> delivered_at_;     // by index of the packet
  std::vector<std::uint32_t> handed_;  // packets that the last poll() gave out
  switching::Hops hops_;
  std::vector<Duration> extra_delay_;  // by link
  std::vector<LinkCounters> link_counters_;
  std::vector<std::uint32_t> impairment_ids_;  // active ones
  LiveFabricCounters counters_;
};

// The totals, and the counters of each link that had traffic, as one line of JSON.
std::string to_json(const LiveFabric& fabric);

}  // namespace weft::softswitch
