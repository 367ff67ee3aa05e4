// Runs a scenario's hosts on real sockets. In a scenario, memory is only addresses without bytes.
// Here a pattern defines the byte at each address, so that received bytes can be checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/prng.h"
#include "scenario/workload.h"
#include "world/world.h"

namespace weft::run {

// The byte at each address, from a table that repeats after a prime number of bytes.
class AddressPattern {
 public:
  explicit AddressPattern(std::uint64_t seed) : table_(kPeriod + kPieceMax) {
    Prng prng(seed);
    for (std::size_t i = 0; i < kPeriod; ++i) table_[i] = static_cast<std::byte>(prng.next() >> 56);
    for (std::size_t i = 0; i < kPieceMax; ++i) table_[kPeriod + i] = table_[i];
  }
  // The bytes at `address` and after it, enough for one packet.
  const std::byte* at(std::uint64_t address) const { return &table_[address % kPeriod]; }

 private:
  static constexpr std::size_t kPeriod = 1'048'573, kPieceMax = 65'536;
  std::vector<std::byte> table_;
};

// The memory of a host: the target ranges of the flows to it. It stores nothing: place() compares
// each packet's payload with the pattern.
class LabMemory final : public world::Memory {
 public:
  LabMemory(const scenario::Plan& plan, scenario::HostIndex host, const AddressPattern& pattern)
      : plan_(&plan), host_(host), pattern_(&pattern) {}

  bool region(const world::RegionQuery& query, world::Region& out) const override {
    if (query.key == 0 || query.key > plan_->ops.size()) return false;
    const scenario::FlowIndex flow = query.key - 1;
    const scenario::Op& op = plan_->ops[flow];
    const std::uint64_t base = scenario::flow_base(flow), span = scenario::flow_span(op);
    if (op.peer != host_ || query.at < base || query.at - base > span) return false;
    if (query.size > span - (query.at - base)) return false;
    out = {.at = query.at, .size = query.size};
    return true;
  }
  void place(const world::Region& to, world::PayloadRef from) override {
    const bool right =
        std::memcmp(pattern_->at(to.at), reinterpret_cast<const void*>(from.at), from.size) == 0;
    bytes_wrong_ += right ? 0 : from.size;
  }
  std::uint64_t bytes_wrong() const { return bytes_wrong_; }

 private:
  const scenario::Plan* plan_;
  scenario::HostIndex host_;
  const AddressPattern* pattern_;
  std::uint64_t bytes_wrong_ = 0;
};

// Wraps a scenario's host and gives the payloads that it sends their bytes.
class LabNode final : public world::Node {
 public:
  LabNode(world::Node& host, const AddressPattern& pattern) : host_(&host), pattern_(&pattern) {}

  void on_datagrams(Time now, std::span<const world::Datagram> in) override {
    host_->on_datagrams(now, in);
  }
  void on_port(Time now, world::PortIndex port, world::PortState state) override {
    host_->on_port(now, port, state);
  }
  void on_deadline(Time now, Duration late_by) override { host_->on_deadline(now, late_by); }
  Time next_deadline() const override { return host_->next_deadline(); }
  std::size_t poll_transmit(Time now, std::span<const world::PortRoom> room,
                            std::span<world::Datagram> out) override {
    const std::size_t count = host_->poll_transmit(now, room, out);
    for (world::Datagram& d : out.first(count)) {
      if (d.payload.size == 0) continue;
      d.payload.at = reinterpret_cast<std::uintptr_t>(pattern_->at(d.payload.at));
    }
    return count;
  }

 private:
  world::Node* host_;
  const AddressPattern* pattern_;
};

}  // namespace weft::run
