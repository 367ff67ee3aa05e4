// SimWorld: a world in virtual time. It drives nodes through a simulated fabric: links with rate,
// delay and faults, switches with queues, ECN and trimming. The seed determines the whole run;
// events are handled in the order (time, insertion).
//
// Each hop of a packet is one event: switching::Hops returns the fate of the packet at a switch and
// on a link, and when it arrives at the next node. The port of a host takes a few packets at a time,
// and polls its node for more shortly before they have left.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/hash.h"
#include "fabric/fault.h"
#include "fabric/forward.h"
#include "fabric/topology.h"
#include "sim/event_queue.h"
#include "sim/packet_pool.h"
#include "switch/hops.h"
#include "world/world.h"

namespace weft::sim {

struct SimConfig {
  fabric::Topology topology;
  fabric::Forwarding forwarding = fabric::Forwarding::kSrv6;
  bool srv6_header = true;  // count the outer IPv6 header (SRv6 only)
  std::uint32_t mtu = 4096;
  switching::QueueParams fabric_queue;  // of ports between switches
  switching::QueueParams last_hop_queue;
  std::uint64_t shared_buffer_bytes = 0;
  std::uint32_t shared_alpha_percent = 100;
  std::uint32_t packets_max = 1u << 26;   // in flight at the same time
  std::uint32_t host_backlog_max = 4096;  // packets stored for a paused host
  std::uint64_t seed = 1;
};

struct SimCounters {
  std::uint64_t packets_sent = 0;  // sent by hosts
  std::uint64_t packets_delivered = 0;
  std::uint64_t packet_hops = 0;  // packets leaving a port of a host or switch
  std::uint64_t trims = 0, ecn_marks = 0;
  std::uint64_t drops_queue = 0;  // the queue was full
  std::uint64_t drops_down = 0;   // the link or host was down
  std::uint64_t drops_fault = 0;  // lost by an impairment
  std::uint64_t drops_route = 0;  // a switch had no link towards the destination
  std::uint64_t drops_host = 0;   // the backlog of a paused host was full
  std::uint64_t events = 0;
  std::uint64_t drops() const {
    return drops_queue + drops_down + drops_fault + drops_route + drops_host;
  }
};

// The same counters as a table: sim.*, with drops by reason.
CounterTable table_of(const SimCounters& counters);

// The memory of one part of a run. Tests compare it with the memory budget.
struct MemoryPart {
  std::string_view name;
  std::uint64_t bytes = 0;
};

class SimWorld final : public world::World {
 public:
  explicit SimWorld(SimConfig config);
  ~SimWorld() override;

  // --- world::World
  Time now() const override { return now_; }
  // REQUIRES the addresses fabric::address_of() of all ports of one host.
  Result<void> attach(std::span<const world::Address> ports, world::Node& node) override;
  bool step(Time limit) override;
  void wake() override {}

  // Adds future faults in any order. REQUIRES that none is before now().
  void schedule(std::span<const fabric::FaultEvent> faults);
  // Polls a node now, because the caller has posted something to it.
  void poll_node(fabric::HostIndex host);

  const SimCounters& counters() const { return counters_; }
  std::uint64_t trace_hash() const { return hash_.value(); }
  std::vector<MemoryPart> memory() const;
  bool is_crashed(fabric::HostIndex host) const { return hosts_[host].crashed; }
  // Starts counting the packets sent on each link, by LinkId.
  void count_links() { link_packets_.assign(config_.topology.link_count(), 0); }
  const std::vector<std::uint64_t>& link_packets() const { return link_packets_; }

  // One packet that a host sent while capture was on, for pcap files.
  struct Captured {
    Time at;
    fabric::RouteKey route;  // as sent, with all its uSIDs
    world::Dscp dscp;
    world::Ecn ecn;
    std::uint8_t header_size;
    std::array<std::byte, wire::kHeaderSizeMax> header;
    world::PayloadRef payload;
  };
  void set_capture(bool on) { capture_ = on; }
  std::vector<Captured> take_captured() { return std::move(captured_); }

 private:
  // The kind of an event, in the top bits of Event::what.
  enum Kind : std::uint32_t { kForward = 0, kDeliver = 1, kPoll = 2, kDeadline = 3, kFault = 4 };
  static constexpr std::uint32_t kKindShift = 29;
  static constexpr std::uint32_t kTargetMask = (1u << kKindShift) - 1;

  struct HostState {
    world::Node* node = nullptr;
    Time poll_at = kNever;      // time of the pending poll event
    Time deadline_at = kNever;  // time of the pending deadline event
    world::PortMask ports_up = 0xff;
    bool paused = false, crashed = false;
    Time paused_since;
    std::unique_ptr<std::vector<std::uint32_t>> backlog;  // packets stored while it is paused
  };

  void forward(fabric::LinkId link, std::uint32_t packet);
  void travel(fabric::LinkId link, std::uint32_t packet, Time leaves_at);
  void deliver(fabric::HostIndex host, std::uint32_t packet);
  void accept(fabric::HostIndex host, std::uint32_t packet);
  void give_to_node(fabric::HostIndex host, std::span<const std::uint32_t> packets);
  void drop(std::uint32_t packet, std::uint64_t& counter);
  void drop(std::uint32_t packet, switching::Loss loss);
  std::uint32_t clone(std::uint32_t packet);
  void trim(Packet& packet, world::Dscp dscp);
  // The size of a trimmed packet that keeps `header_size` bytes of its MRC header.
  std::uint32_t trimmed_wire_size(std::size_t header_size) const;

  void poll_host(fabric::HostIndex host);
  void send(fabric::HostIndex host, const world::Datagram& datagram);
  void arm_deadline(fabric::HostIndex host);
  void on_deadline(fabric::HostIndex host, Time at);

  void carry_out(const fabric::FaultEvent& fault);
  void notify_carrier(fabric::LinkId link);
  void pause(fabric::HostIndex host);
  void resume(fabric::HostIndex host);
  void prefetch() const;

  SimConfig config_;
  fabric::Forwarder forwarder_;
  Time now_;
  EventQueue events_;
  PacketPool packets_;
  switching::Hops hops_;
  std::vector<HostState> hosts_;
  std::vector<fabric::FaultEvent> faults_;
  Duration mtu_time_;
  SimCounters counters_;
  TraceHash hash_;
  bool capture_ = false;
  std::vector<Captured> captured_;
  std::vector<std::uint64_t> link_packets_;
  std::array<world::Datagram, 64> out_;
  std::vector<world::Datagram> in_;
};

}  // namespace weft::sim
