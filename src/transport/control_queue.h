// ControlQueue: the control packets of an endpoint that wait for a port: SACKs, NACKs, Transport
// ACKs, probes, port status updates and their answers. Bounded: when the queue is full the newest
// packet is dropped and counted. That is safe, because timers repeat every control packet that
// matters.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/ring.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::transport {

// The rule by which a control packet gets its port.
struct PortChoice {
  enum class PortRule : std::uint8_t {
    kInTurn,       // any port: the planes take turns
    kOnly,         // only `port`; when that port is down the packet is dropped
    kPrefer,       // `port`; when it is full or its reverse EV in doubt, the planes in turn
    kPreferHeard,  // like kPrefer, with the port on which the peer was last heard
    kCopy,         // a port other than that of the previous packet; dropped when there is none
  };
  PortRule rule;
  world::PortIndex port;  // for kOnly and kPrefer

  static constexpr PortChoice in_turn() { return {PortRule::kInTurn, 0}; }
  static constexpr PortChoice only(world::PortIndex port) { return {PortRule::kOnly, port}; }
  static constexpr PortChoice prefer(world::PortIndex port) { return {PortRule::kPrefer, port}; }
  static constexpr PortChoice prefer_heard() { return {PortRule::kPreferHeard, 0}; }
  static constexpr PortChoice copy() { return {PortRule::kCopy, 0}; }
  friend bool operator==(const PortChoice&, const PortChoice&) = default;
};

// A control packet and its destination: a known peer on a plane's reverse EV, or a given address on
// a given EV and port.
struct ControlPacket {
  static constexpr std::uint32_t kNoPeer = 0xffff'ffff;
  std::array<std::byte, wire::kHeaderSizeMax> header;
  std::uint8_t header_size;
  PortChoice port;
  bool fixed_ev;  // true: `entropy` is the EV; false: the peer's reverse EV of the chosen port
  // A probe in the data class shares the queues of data. A full queue trims it, which does no harm:
  // it has no payload.
  bool data_class;
  std::uint32_t entropy;
  std::uint32_t peer;  // index of the peer; kNoPeer: the packet goes to the address `to`
  std::uint32_t qpn;   // the QP that sends it, for the trace; 0: the endpoint
  std::uint64_t to_high, to_low;
  std::uint16_t to_process;
  std::uint16_t ask;  // id of the controller's request that this packet carries; 0: none

  world::Address to() const { return {.high = to_high, .low = to_low, .process = to_process}; }
  void set_to(const world::Address& address) {
    to_high = address.high;
    to_low = address.low;
    to_process = address.process;
  }
};
static_assert(std::is_trivially_default_constructible_v<
              ControlPacket>);  // the ring is not cleared before use

class ControlQueue {
 public:
  explicit ControlQueue(std::uint32_t capacity) : ring_(capacity) {}

  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }
  std::uint64_t dropped() const { return dropped_; }
  std::size_t bytes() const { return ring_.bytes(); }
  // REQUIRES !empty(); so does pop().
  ControlPacket& front() { return ring_.front(); }
  void pop() { ring_.pop(); }
  // Drops the queued packets to this peer. Call before its index is reused for another peer.
  void forget_peer(std::uint32_t peer) {
    for (std::size_t left = ring_.size(); left > 0; --left) {
      const ControlPacket packet = ring_.front();
      ring_.pop();
      if (packet.peer != peer) ring_.push(packet);
    }
  }
  // Adds a packet for the caller to fill. Null when the queue is full (counted).
  ControlPacket* add() {
    if (ring_.full()) {
      ++dropped_;
      return nullptr;
    }
    ControlPacket& packet = ring_.push_slot();
    packet.port = PortChoice::in_turn();
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
