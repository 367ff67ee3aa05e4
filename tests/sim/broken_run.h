// BrokenRun: simulates one message between two hosts. Wrappers around the nodes and their memory
// make one mistake on purpose. complaints() returns what the judge finds.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "../support/run_file.h"
#include "run/fleet.h"
#include "sim/flow_memory.h"
#include "sim/sim_world.h"
#include "wire/packet.h"

namespace weft::testing {

struct Break {
  bool misplace = false;      // a payload is taken from an address that is one byte too high
  bool repeat = false;        // the receiver gets one datagram twice
  bool alter = false;         // one header is changed between the hosts
  bool swallow_acks = false;  // the sender gets no Transport ACK
};

class BrokenMemory final : public world::Memory {
 public:
  BrokenMemory(world::Memory& inner, bool misplace) : inner_(inner), misplace_(misplace) {}
  bool region(const world::RegionQuery& query, world::Region& out) const override {
    return inner_.region(query, out);
  }
  void place(const world::Region& to, world::PayloadRef from) override {
    if (misplace_ && ++placed_ == 3) ++from.at;
    inner_.place(to, from);
  }

 private:
  world::Memory& inner_;
  bool misplace_;
  int placed_ = 0;
};

class BrokenNode final : public world::Node {
 public:
  BrokenNode(world::Node& inner, const Break& how) : inner_(inner), how_(how) {}

  void on_datagrams(Time now, std::span<const world::Datagram> in) override {
    for (world::Datagram d : in) {
      const auto packet = wire::parse(d.header);
      const bool data = packet && std::holds_alternative<wire::Write>(packet->body);
      if (how_.swallow_acks && packet && std::holds_alternative<wire::TransportAck>(packet->body))
        continue;
      if (data) ++data_count_;
      std::array<std::byte, wire::kHeaderSizeMax> changed;
      if (how_.alter && data && data_count_ == 3) {
        std::copy(d.header.begin(), d.header.end(), changed.begin());
        changed[d.header.size() - 1] ^= std::byte{1};  // the last byte of the length in the RETH
        d.header = ConstBytes(changed).first(d.header.size());
      }
      inner_.on_datagrams(now, {&d, 1});
      if (how_.repeat && data && data_count_ == 3) inner_.on_datagrams(now, {&d, 1});
    }
  }
  void on_port(Time now, world::PortIndex port, world::PortState state) override {
    inner_.on_port(now, port, state);
  }
  void on_deadline(Time now, Duration late_by) override { inner_.on_deadline(now, late_by); }
  Time next_deadline() const override { return inner_.next_deadline(); }
  std::size_t poll_transmit(Time now, std::span<const world::PortRoom> room,
                            std::span<world::Datagram> out) override {
    return inner_.poll_transmit(now, room, out);
  }

 private:
  world::Node& inner_;
  Break how_;
  int data_count_ = 0;
};

class BrokenRun {
 public:
  explicit BrokenRun(const Break& how)
      : scenario_(parsed("[topology]\nshape = \"single\"\nhosts = 2\nhost_rate = \"100Gbps\"\n"
                         "[transport]\nevs = 1\nbackup_evs = 0\n"
                         "[transport.retry]\nexponential_count = 25\n"
                         "[workload]\nkind = \"pairs\"\nbytes = \"64KiB\"\n",
                         "broken")) {
    const auto topology = fabric::Topology::make(scenario_.topology).value();
    fleet_ =
        run::Fleet::make(
            scenario_, topology,
            {.seed = 1,
             .memory = [&](scenario::HostIndex host, const scenario::Plan& plan) -> world::Memory& {
               return memory_of(host, plan, how.misplace);
             },
             .trace = &trace_})
            .value();
    const switching::QueueParams queue{
        .data_bytes_max = 1u << 20, .control_bytes_max = 1u << 20, .ecn = false};
    sim::SimWorld world({.topology = topology, .fabric_queue = queue, .last_hop_queue = queue});
    for (scenario::HostIndex host = 0; host < 2; ++host) {
      nodes_.push_back(std::make_unique<BrokenNode>(fleet_->node(host), how));
      EXPECT_TRUE(world.attach(fleet_->addresses(host), *nodes_.back()));
    }
    mark(world.now(), TraceKind::kHealed);
    world.step(Time::from_start(Duration::ms(2)));
    record_memory(world.now());
    mark(world.now(), TraceKind::kEnd);
  }

  std::vector<judge::Complaint> complaints() const {
    judge::Judge judge;
    judge.read(trace_.records());
    return judge.finish();
  }

 private:
  world::Memory& memory_of(scenario::HostIndex host, const scenario::Plan& plan, bool misplace) {
    if (!memory_) {
      const scenario::Op& op = plan.ops.front();
      memory_ = std::make_unique<sim::FlowMemory>(
          sim::MemoryKind::kBytes,
          std::vector<sim::FlowMemory::Range>{{.owner = op.peer,
                                               .base = scenario::flow_base(0),
                                               .span = scenario::flow_span(op),
                                               .message_size = scenario::message_size(plan, op)}},
          plan.host_count());
    }
    memories_.push_back(std::make_unique<BrokenMemory>(memory_->of(host), misplace));
    return *memories_.back();
  }
  TraceRecord& mark(Time at, TraceKind kind) {
    TraceRecord record;
    record.at = at;
    record.kind = kind;
    last_ = record;
    if (kind != TraceKind::kMemory) trace_.append(record);
    return last_;
  }
  void record_memory(Time at) {
    const scenario::Plan& plan = fleet_->plan();
    TraceRecord& record = mark(at, TraceKind::kMemory);
    record.host = plan.ops.front().peer;
    record.qpn = fleet_->host(record.host).qpn(0);
    record.peer = plan.host_of(0);
    record.b = plan.ops.front().bytes;
    record.a = memory_->correct_bytes(0, 0, static_cast<std::uint32_t>(record.b));
    trace_.append(record);
  }

  scenario::Scenario scenario_;
  Trace trace_;
  std::unique_ptr<sim::FlowMemory> memory_;
  std::vector<std::unique_ptr<BrokenMemory>> memories_;
  std::unique_ptr<run::Fleet> fleet_;
  std::vector<std::unique_ptr<BrokenNode>> nodes_;
  TraceRecord last_;
};

}  // namespace weft::testing
