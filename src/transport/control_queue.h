// ControlQueue: the control packets of an endpoint that wait for a port: SACKs, NACKs, Transport
// ACKs, probes, port status updates and their answers. Bounded; when it is full the newest is
// dropped and counted: each of them is repeated by its sender's timers.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/ring.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::transport {

// Where a control packet goes: to a known peer over its plane's reverse EV, or to a given address
// over a given EV.
struct ControlPacket {
  static constexpr std::uint8_t kAnyPort = 0xff;
  static constexpr std::uint8_t kHeardPort = 0xfe;  // as `near`: where the peer was last heard
  static constexpr std::uint8_t kOtherPort = 0xfd;  // as `near`: a copy, elsewhere or not at all
  static constexpr std::uint32_t kNoPeer = 0xffff'ffff;
  std::array<std::byte, wire::kHeaderSizeMax> header;
  std::uint8_t header_size;
  std::uint8_t port;  // the only one it may take
  // If it may take any: the one that it takes unless that is in doubt or full. kAnyPort: in turn.
  std::uint8_t near;
  bool fixed_ev;  // `entropy` is the EV; else the peer's reverse EV of the port taken
  // A probe that travels with the data; a full queue trims it, which does it no harm.
  bool data_class;
  std::uint32_t entropy;
  std::uint32_t peer;  // index of the peer; kNoPeer: the address `to` is meant
  std::uint32_t qpn;   // whose packet this is, for the trace; 0: the endpoint's
  std::uint64_t to_high, to_low;
  std::uint16_t to_process;
  std::uint16_t ask;  // number of the controller's request that this is; 0: none
};
static_assert(std::is_trivially_default_constructible_v<
              ControlPacket>);  // no ring is filled before it is used

class ControlQueue {
 public:
  explicit ControlQueue(std::uint32_t capacity) : ring_(capacity) {}

  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }
  std::uint64_t dropped() const { return dropped_; }
  std::size_t bytes() const { return ring_.bytes(); }
  ControlPacket& front() { return ring_.front(); }
  void pop() { ring_.pop(); }
  // What waits for that peer is dropped: its index is given to another.
  void forget_peer(std::uint32_t peer) {
    for (std::size_t left = ring_.size(); left > 0; --left) {
      const ControlPacket packet = ring_.front();
      ring_.pop();
      if (packet.peer != peer) ring_.push(packet);
    }
  }
  // A place to write the next packet to; null when full (counted).
  ControlPacket* add() {
    if (ring_.full()) {
      ++dropped_;
      return nullptr;
    }
    ControlPacket& packet = ring_.push_slot();
    packet.port = ControlPacket::kAnyPort;
    packet.near = ControlPacket::kAnyPort;
    packet.fixed_ev = false;
    packet.data_class = false;
    packet.entropy = 0;
    packet.peer = ControlPacket::kNoPeer;
    packet.qpn = 0;
    packet.ask = 0;
    return &packet;
  }

 private:
  Ring<ControlPacket> ring_;
  std::uint64_t dropped_ = 0;
};

template <typename Body>
void write_header(ControlPacket& packet, const wire::Bth& bth, const Body& body) {
  packet.header_size = static_cast<std::uint8_t>(wire::emit(bth, body, packet.header));
}

}  // namespace weft::transport
