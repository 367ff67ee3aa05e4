// ScriptedNode, for tests: sends given packets at given times, and records every call that it gets.
// Bench: a fabric with a ScriptedNode at every host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "fabric/address.h"
#include "fabric/topology.h"
#include "sim/sim_world.h"
#include "wire/framing.h"
#include "world/world.h"

namespace weft::sim {

class ScriptedNode final : public world::Node {
 public:
  struct Send {
    Time at{};
    world::Address peer{};
    std::uint32_t size = 4096;  // payload bytes
    world::PortIndex port = 0;
    world::Dscp dscp = world::Dscp::kTrimmable;
    world::Ecn ecn = world::Ecn::kEct0;
    std::uint32_t entropy = 0;
    std::uint8_t mark = 0;  // first byte of the header, to identify the packet
  };
  struct Received {
    Time at{};
    world::Datagram datagram{};  // its header span is no longer valid
    std::uint8_t mark = 0;
    std::size_t header_size = 0;
    std::size_t batch = 0;  // number of datagrams in the same call
  };
  struct PortEvent {
    Time at{};
    world::PortIndex port = 0;
    bool up = false;
  };
  struct Deadline {
    Time at{};
    Duration late_by{};
  };
  static constexpr std::size_t kHeaderSize = 36;

  void add(const Send& send) {
    sends_.push_back(send);
    std::stable_sort(sends_.begin(), sends_.end(),
                     [](const Send& a, const Send& b) { return a.at < b.at; });
  }

  void on_datagrams(Time now, std::span<const world::Datagram> in) override {
    for (const world::Datagram& d : in) {
      received.push_back({.at = now,
                          .datagram = d,
                          .mark = std::to_integer<std::uint8_t>(d.header[0]),
                          .header_size = d.header.size(),
                          .batch = in.size()});
      received.back().datagram.header = {};
    }
  }
  void on_port(Time now, world::PortIndex port, world::PortState state) override {
    ports.push_back({.at = now, .port = port, .up = state.up});
  }
  void on_deadline(Time now, Duration late_by) override {
    EXPECT_GE(now, next_deadline());
    deadlines.push_back({.at = now, .late_by = late_by});
    due_ = now;
  }
  Time next_deadline() const override {
    for (const Send& send : sends_) {
      if (send.at > due_) return send.at;
    }
    return kNever;
  }
  std::size_t poll_transmit(Time now, std::span<const world::PortRoom> room,
                            std::span<world::Datagram> out) override {
    std::array<std::uint32_t, world::kPortsMax> left{};
    for (std::size_t i = 0; i < room.size(); ++i) left[i] = room[i].packets;
    std::size_t count = 0;
    headers_.clear();
    for (auto send = sends_.begin();
         send != sends_.end() && send->at <= now && count < out.size();) {
      if (left[send->port] == 0) {
        ++send;
        continue;
      }
      --left[send->port];
      auto& header = headers_.emplace_back();
      header.fill(std::byte{0});
      header[0] = static_cast<std::byte>(send->mark);
      out[count++] = {.port = send->port,
                      .ecn = send->ecn,
                      .dscp = send->dscp,
                      .entropy = send->entropy,
                      .peer = send->peer,
                      .header = ConstBytes(header).first(kHeaderSize),
                      .payload = {.at = 0x1000, .size = send->size}};
      send = sends_.erase(send);
    }
    return count;
  }

  std::vector<Received> received;
  std::vector<PortEvent> ports;
  std::vector<Deadline> deadlines;

 private:
  std::vector<Send> sends_;
  std::deque<std::array<std::byte, wire::kHeaderSizeMax>> headers_;
  Time due_ = Time::from_start(Duration::ps(-1));
};

constexpr Time us(std::int64_t n) { return Time::from_start(Duration::us(n)); }

class Bench {
 public:
  static SimConfig config(const fabric::TopologySpec& spec, const switching::QueueParams& queue) {
    return {.topology = fabric::Topology::make(spec).value(),
            .forwarding = fabric::Forwarding::kSrv6,
            .fabric_queue = queue,
            .last_hop_queue = queue,
            .seed = 1};
  }
  static switching::QueueParams deep_queue() {
    return {.data_bytes_max = 1u << 30,
            .control_bytes_max = 1u << 30,
            .ecn_bytes_min = 1u << 29,
            .ecn_bytes_max = 1u << 30};
  }

  explicit Bench(const fabric::TopologySpec& spec) : Bench(config(spec, deep_queue())) {}
  explicit Bench(const SimConfig& config) : topology_(config.topology), world_(config) {
    for (fabric::HostIndex host = 0; host < topology_.host_count(); ++host) {
      nodes_.push_back(std::make_unique<ScriptedNode>());
      EXPECT_TRUE(world_.attach(addresses(host), *nodes_.back()));
    }
  }

  std::vector<world::Address> addresses(fabric::HostIndex host) const {
    std::vector<world::Address> out;
    for (std::uint32_t plane = 0; plane < topology_.plane_count(); ++plane) {
      out.push_back(world::Address::of(fabric::address_of({.host = host, .plane = plane})));
    }
    return out;
  }
  ScriptedNode& node(fabric::HostIndex host) { return *nodes_[host]; }
  // Makes host `from` send a packet to host `to`. Entropy 0 names the first path of the plane.
  void send(fabric::HostIndex from, fabric::HostIndex to, ScriptedNode::Send what) {
    what.peer = world::Address::of(fabric::address_of({.host = to, .plane = what.port}));
    nodes_[from]->add(what);
    world_.poll_node(from);
  }
  void fault(const fabric::FaultEvent& event) { world_.schedule({&event, 1}); }
  const fabric::Topology& topology() const { return topology_; }
  SimWorld& world() { return world_; }

  // The serialisation time of a packet with `payload` bytes, SRv6 header included, at 100 Gb/s.
  static Duration packet_time(std::uint32_t payload = 4096) {
    return Duration::ps(static_cast<std::int64_t>(packet_size(payload)) * 80);
  }
  static std::uint32_t packet_size(std::uint32_t payload = 4096) {
    return static_cast<std::uint32_t>(wire::wire_size(
        {.header_size = ScriptedNode::kHeaderSize, .payload_size = payload, .srv6 = true}));
  }

 private:
  fabric::Topology topology_;
  std::vector<std::unique_ptr<ScriptedNode>> nodes_;
  SimWorld world_;
};

inline fabric::TopologySpec one_switch(std::uint32_t hosts, std::uint32_t planes = 1) {
  return {.shape = fabric::Shape::kSingle,
          .hosts = hosts,
          .planes = planes,
          .host_rate = Rate::gbps(100),
          .link_delay = Duration::ns(500)};
}

// Two T0s with `hosts / 2` hosts each, connected by one T1.
inline fabric::TopologySpec two_racks(std::uint32_t hosts) {
  return {.shape = fabric::Shape::kTwoTier,
          .hosts = hosts,
          .planes = 1,
          .hosts_per_t0 = hosts / 2,
          .t1_count = 1,
          .host_rate = Rate::gbps(100),
          .fabric_rate = Rate::gbps(100),
          .link_delay = Duration::ns(500)};
}

inline fabric::TopologySpec fat_tree() {
  return {.shape = fabric::Shape::kThreeTier,
          .hosts = 16,
          .planes = 1,
          .hosts_per_t0 = 2,
          .t0_per_pod = 2,
          .t1_per_pod = 2,
          .t2_per_t1 = 2,
          .host_rate = Rate::gbps(100),
          .fabric_rate = Rate::gbps(100),
          .link_delay = Duration::ns(500)};
}

}  // namespace weft::sim
