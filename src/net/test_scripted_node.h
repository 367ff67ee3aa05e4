// ScriptedNode, for tests: sends the datagrams that the test gives it and records all that arrive.
// It stands in for an endpoint, because this layer may not use the transport.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "world/world.h"

namespace weft::net::test {

class ScriptedNode final : public world::Node {
 public:
  struct Came {
    world::Datagram datagram;
    std::vector<std::byte> header, payload;
  };
  std::vector<world::Datagram> to_send;
  std::vector<Came> came;

  void on_datagrams(Time, std::span<const world::Datagram> in) override {
    for (const world::Datagram& d : in) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(d.payload.at);
      came.push_back({d, {d.header.begin(), d.header.end()}, {bytes, bytes + d.payload.size}});
    }
  }
  void on_port(Time, world::PortIndex, world::PortState) override {}
  void on_deadline(Time, Duration) override {}
  Time next_deadline() const override { return kNever; }
  std::size_t poll_transmit(Time, std::span<const world::PortRoom>,
                            std::span<world::Datagram> out) override {
    const std::size_t count = std::min(out.size(), to_send.size());
    std::copy_n(to_send.begin(), count, out.begin());
    to_send.erase(to_send.begin(), to_send.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
};

}  // namespace weft::net::test
