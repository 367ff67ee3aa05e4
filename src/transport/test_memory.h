// For tests: a memory that records for each byte its source address and how often it was placed;
// EVs by plane; control packets as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "fabric/ev.h"
#include "transport/control_queue.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::transport::test {

// One registered region. A write outside it aborts, because the responder must ask region() first.
class TestMemory final : public world::Memory {
 public:
  struct Options {
    std::uint32_t key = 0x77;
    std::uint64_t at = 0x10'0000;
    std::uint32_t size = 1 << 20;
  };
  struct Byte {
    std::uint64_t source = 0;  // the sender's address of the byte
    std::uint32_t times = 0;
  };

  explicit TestMemory(const Options& options) : options_(options), bytes_(options.size) {}

  bool region(const world::RegionQuery& query, world::Region& out) const override {
    if (query.key != options_.key || query.access != world::Access::kRemoteWrite) return false;
    if (query.at < options_.at || query.size > options_.size) return false;
    if (query.at - options_.at > options_.size - query.size) return false;
    out = {.at = query.at, .size = query.size};
    return true;
  }
  void place(const world::Region& to, world::PayloadRef from) override {
    WEFT_ASSERT(to.size == from.size && to.at >= options_.at);
    const std::uint64_t begin = to.at - options_.at;
    WEFT_ASSERT(begin + to.size <= bytes_.size());
    for (std::uint32_t i = 0; i < to.size; ++i) {
      Byte& byte = bytes_[begin + i];
      byte.source = from.at + i;
      ++byte.times;
    }
  }

  const Options& options() const { return options_; }
  // The byte at that address. REQUIRES an address of the region.
  const Byte& at(std::uint64_t address) const { return bytes_[address - options_.at]; }
  // True if each byte of the range was placed once, from the same offset at `from`.
  bool holds(std::uint64_t address, std::uint64_t from, std::uint32_t size) const {
    for (std::uint32_t i = 0; i < size; ++i) {
      if (at(address + i).times != 1 || at(address + i).source != from + i) return false;
    }
    return true;
  }
  std::uint64_t times_placed() const {
    std::uint64_t sum = 0;
    for (const Byte& byte : bytes_) sum += byte.times;
    return sum;
  }

 private:
  Options options_;
  std::vector<Byte> bytes_;
};

struct EvShape {
  std::uint32_t ports = 1, per_port = 4;
};
// EVs that alternate between the planes, as draw_evs gives them. Value: plane << 24 | number from
// 1.
inline std::vector<fabric::Ev> make_evs(EvShape shape) {
  std::vector<fabric::Ev> evs;
  for (std::uint32_t i = 0; i < shape.per_port; ++i) {
    for (std::uint32_t port = 0; port < shape.ports; ++port) {
      evs.push_back({.value = port << 24 | (i + 1), .port = static_cast<std::uint8_t>(port)});
    }
  }
  return evs;
}

// A control packet taken from the queue, and how it was addressed.
struct Sent {
  wire::Packet packet;
  ControlPacket control;
};
inline std::vector<Sent> take_all(ControlQueue& queue) {
  std::vector<Sent> all;
  for (; !queue.empty(); queue.pop()) {
    const ControlPacket& control = queue.front();
    const auto packet = wire::parse(ConstBytes(control.header).first(control.header_size));
    WEFT_ASSERT(packet.has_value());
    all.push_back({.packet = *packet, .control = control});
  }
  return all;
}
// The bodies of type `Body` among these packets.
template <typename Body>
std::vector<Body> only(const std::vector<Sent>& all) {
  std::vector<Body> bodies;
  for (const Sent& sent : all) {
    if (const Body* body = std::get_if<Body>(&sent.packet.body)) bodies.push_back(*body);
  }
  return bodies;
}

}  // namespace weft::transport::test
