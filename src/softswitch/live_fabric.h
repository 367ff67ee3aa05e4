// LiveFabric: the simulator's fabric for real packets. Every link of a topology with its rate, its
// queue, its marks, trims and faults; no sockets, no clock: packets and the time are given to it.
//
// A packet of a host is walked hop by hop as sim/sim_world.cc does it, each hop at its own time:
// admitting it to a port (switching::PortQueue) says when its last byte leaves, and so when it
// arrives at the next. Being called late moves no hop: what was due happens as of its time, in the
// order (time, arrival).
//
// Where it goes: an address of the plan (fabric/address.h) is hashed or follows the EV's fields; a
// uSID carrier is followed uSID by uSID and arrives with the host's uSID alone, as the kernel's
// seg6local leaves it. Planes share nothing. Anything else is counted and dropped.
//
// Owned by one thread. All packet memory is taken at construction: `packets_max` slots; the event
// heap and the delivery ring have as many places. What finds no slot is dropped and counted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/ring.h"
#include "base/time.h"
#include "fabric/fault.h"
#include "fabric/forward.h"
#include "fabric/topology.h"
#include "softswitch/ip_packet.h"
#include "switch/impairments.h"
#include "switch/port_queue.h"
#include "switch/shared_buffer.h"

namespace weft::softswitch {

struct LiveFabricConfig {
  fabric::Topology topology;
  // Of packets to a host's own address: kHashed or kStev. Carriers go by uSID where the topology
  // has uSIDs.
  fabric::Forwarding forwarding = fabric::Forwarding::kHashed;
  std::uint32_t mtu = 4096;  // payload of a full packet
  // What a trim keeps behind the IP header. Sealed packets need kSealedTrimmedSizeAfterIp, or their
  // headers cannot be told from forged ones.
  std::size_t trimmed_size_after_ip = kTrimmedIpPayload;
  switching::QueueParams fabric_queue;  // between switches; mtu_wire_size follows from mtu
  switching::QueueParams last_hop_queue;
  std::uint64_t shared_buffer_bytes = 0;
  std::uint32_t shared_alpha_percent = 100;
  // What a host may have waiting for its own link. A NIC would hold the sender back; a veth cannot.
  std::uint64_t nic_queue_bytes = 1u << 20;
  std::uint32_t packets_max = 8192;  // under way at a time, 9 KiB each, touched when needed
  std::uint64_t seed = 1;
};

// What a link did.
struct LinkCounters {
  std::uint64_t packets = 0, bytes = 0;  // that left by it; bytes on the wire, framing included
  std::uint64_t trims = 0, ecn_marks = 0;
  std::uint64_t drops_queue = 0;  // full queue
  std::uint64_t drops_down = 0;   // it was down, or went down while they were on it
  std::uint64_t drops_fault = 0;  // lost by an impairment
};

struct LiveFabricCounters {
  std::uint64_t packets_in = 0, packets_out = 0;
  std::uint64_t ignored = 0;       // no IPv6 packet to this fabric's addresses
  std::uint64_t drops_route = 0;   // a switch had no way
  std::uint64_t drops_memory = 0;  // packets_max were under way
};

class LiveFabric {
 public:
  // A larger packet is no packet.
  static constexpr std::size_t kPacketSizeMax = 9'200;

  explicit LiveFabric(LiveFabricConfig config);

  // A packet of `host`, from the IP header on, that left it towards its port in `plane`. The bytes
  // are copied. Time does not run backwards: an earlier `now` counts as the latest one.
  // REQUIRES a host and plane of the topology.
  void on_packet(Time now, fabric::HostIndex host, std::uint32_t plane, ConstBytes packet);

  struct Delivery {
    fabric::HostIndex host = 0;
    std::uint32_t plane = 0;
    Time at{};  // when its last byte came
    ConstBytes packet{};
  };
  // Packets whose last hop is over, in the order of their arrival. Returns how many; valid till the
  // next poll().
  std::size_t poll(Time now, std::span<Delivery> out);
  // When poll() has something to do next.
  Time next_deadline() const;

  // From now on. Errors: kInvalid (no such link or share), kExhausted (kImpairmentsMax are active),
  // kUnsupported (of a host: it is a process of its own).
  static constexpr std::size_t kImpairmentsMax = 4096;
  Result<void> apply(Time now, const fabric::FaultEvent& fault);
  // All of them, whatever their ids.
  void end_impairments(Time now);
  // Added to what the topology says, for packets that leave by `link` from now on.
  // REQUIRES a link of the topology.
  void set_extra_delay(fabric::LinkId link, Duration delay) { links_[link].extra_delay = delay; }
  // Its queue and marks shrink with the rate, as a switch sets them by a port's speed.
  // REQUIRES a link of the topology.
  void set_rate(fabric::LinkId link, Rate rate);
  bool is_up(fabric::LinkId link) const { return links_[link].up; }
  std::size_t impairment_count() const { return impairment_ids_.size(); }

  const fabric::Topology& topology() const { return config_.topology; }
  const LiveFabricCounters& counters() const { return counters_; }
  const LinkCounters& counters(fabric::LinkId link) const { return links_[link].counters; }
  std::uint32_t packets_under_way() const { return config_.packets_max - free_count(); }

 private:
  using LinkId = fabric::LinkId;
  struct Link {
    switching::PortQueue queue;
    std::uint32_t epoch = 0;  // goes up each time it goes down
    bool up = true;
    bool impaired = false;
    bool last_hop = false;
    std::uint8_t percent = 100;  // of its rate
    Duration extra_delay;
    LinkCounters counters;
  };
  struct Packet {
    fabric::RouteKey route;
    LinkId via = fabric::kNoLink;  // the link it is on
    std::uint32_t via_epoch = 0;   // that link's, when it was sent
    std::uint32_t size = 0;        // from the IP header on
    bool by_usid = false;
    bool past_nic = false;  // faults of the receiving NIC have had their say
  };
  // A packet arrives at the queue of `link`, or, with kNoLink, at the host at the end of `via`.
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
  bool find_way(LinkId first, Packet& packet, const PacketFacts& facts) const;
  const switching::QueueParams& queue_params(const Link& link,
                                             switching::QueueParams& scaled) const;
  std::uint64_t queue_limit(LinkId link, const switching::QueueParams& params);
  void set_link(const fabric::FaultEvent& fault);

  Bytes bytes_of(std::uint32_t packet) {
    return Bytes(memory_.get() + std::size_t{packet} * kSlotSize, packets_[packet].size);
  }
  std::uint32_t free_count() const { return static_cast<std::uint32_t>(free_.size()); }
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  std::uint32_t take();
  std::uint32_t clone(std::uint32_t packet);
  void drop(std::uint32_t packet, std::uint64_t& counter);
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
  std::vector<std::uint32_t> handed_;  // out by the last poll()
  std::vector<Link> links_;
  std::vector<switching::SharedBuffer> buffers_;  // by switch; empty: private queues only
  std::vector<std::uint32_t> buffer_of_link_;
  switching::Impairments impairments_;
  std::vector<std::uint32_t> impairment_ids_;  // active ones
  Prng ecn_prng_;
  LiveFabricCounters counters_;
};

// Totals, and one entry for each link that did something, as one line of JSON.
std::string to_json(const LiveFabric& fabric);

}  // namespace weft::softswitch
