// The seam: the complete interface between the protocol and the world that drives it.
//
// A Node is passive: its world passes datagrams, port events and the time to it, and asks it for
// datagrams and its next deadline. A World drives nodes: `sim` with an event queue, `net` with
// Linux. A node never calls a world, and may wrap another node (the workload driver wraps an
// endpoint). No node asks which world it runs in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/ipv6.h"
#include "base/rate.h"
#include "base/result.h"
#include "base/time.h"

namespace weft::world {

// A device has at most this many ports (planes). Port indices count from 0; the API and the wire
// count from 1.
inline constexpr std::size_t kPortsMax = 8;
using PortIndex = std::uint8_t;
// One bit per port: bit i is the port with index i.
using PortMask = std::uint8_t;

// The address of one port of one process: the host's port, and the process on that host. An
// endpoint only compares addresses; it never interprets them.
struct Address {
  std::uint64_t high = 0, low = 0;  // as Ipv6
  std::uint16_t process = 0;        // always 0 where a host is one process
  friend auto operator<=>(const Address&, const Address&) = default;

  static constexpr Address of(const Ipv6& ip, std::uint16_t process = 0) {
    return {.high = ip.high, .low = ip.low, .process = process};
  }
  constexpr Ipv6 ip() const { return {.high = high, .low = low}; }
};

enum class Ecn : std::uint8_t { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3 };

// The traffic class of a packet in the network. Operators choose the code points; these are our
// defaults.
enum class Dscp : std::uint8_t {
  kNoTrim = 0,
  kTrimmable = 4,
  kTrimmableRetx = 8,
  kTrimmed = 12,
  kTrimmedLastHop = 16,
  kControl = 46,
};
constexpr bool is_trimmed(Dscp dscp) {
  return dscp == Dscp::kTrimmed || dscp == Dscp::kTrimmedLastHop;
}

// A range of payload bytes that the node never reads. Outgoing: an address in the sender's memory.
// Incoming: an address in the receive buffer. In a simulated memory without bytes, `at` is the
// address that the bytes would have.
struct PayloadRef {
  std::uint64_t at = 0;
  std::uint32_t size = 0;
};

struct Datagram {
  PortIndex port = 0;
  Ecn ecn = Ecn::kNotEct;
  Dscp dscp = Dscp::kControl;
  bool intact = true;         // incoming: the ICRC matches (the world checks it)
  std::uint32_t entropy = 0;  // the EV: UDP source port and flow label, and through it the path
  Time received_at{};         // incoming: when the bytes arrived, not when the node gets them
  Address peer{};             // outgoing: the destination; incoming: the source
  ConstBytes header{};        // from the BTH to the last extension header
  PayloadRef payload{};

  // An incoming notice instead of a packet: the host of `peer` reports that no process has that
  // address. The notice can be forged, so it is only a hint that the endpoint must confirm
  // (docs/decisions/0013).
  static Datagram refusal(PortIndex port, const Address& peer) {
    return {.port = port, .intact = false, .peer = peer};
  }
  bool is_refusal() const { return !intact && header.empty(); }
};

// How many packets a port accepts now; 0 if it is full or down.
struct PortRoom {
  std::uint32_t packets = 0;
};

struct PortState {
  bool up = true;
  Rate rate{};
  // The receive buffer of the port: its size (0: unlimited), and how many packets it has dropped
  // since the start because it was full.
  std::uint32_t receive_bytes = 0;
  std::uint32_t overflows = 0;
  bool singly = false;  // packets arrive one by one, not merged: each takes more receive buffer
};

// The least number of datagrams that poll_transmit returns if the node has them and ports have
// room.
inline constexpr std::size_t kBatchMin = 16;

class Node {
 public:
  virtual ~Node() = default;

  // The memory that a call will probably touch, so that a world can prefetch it. One entry per kind
  // of call; may be empty.
  enum class Call : std::uint8_t { kData, kControl, kPoll };
  struct Part {
    const void* at = nullptr;
    std::uint32_t bytes = 0;
  };
  using PrefetchParts = std::array<Part, 4>;
  using PrefetchTable = std::array<PrefetchParts, 3>;
  // Null if the node set no table.
  const PrefetchParts* prefetch(Call call) const {
    return prefetch_ == nullptr ? nullptr : &(*prefetch_)[static_cast<std::size_t>(call)];
  }

  // Headers are valid during the call only.
  virtual void on_datagrams(Time now, std::span<const Datagram> in) = 0;
  virtual void on_port(Time now, PortIndex port, PortState state) = 0;
  // REQUIRES now >= next_deadline(). `late_by`: how long the world was stopped just before the
  // call, for example because its process was paused.
  virtual void on_deadline(Time now, Duration late_by) = 0;
  // kNever when nothing is armed.
  virtual Time next_deadline() const = 0;
  // Writes datagrams to `out` and returns how many: at least kBatchMin if the node has that many,
  // and for no port more than its room. Packets of one burst (one QP, one EV) are adjacent. Headers
  // and payloads are valid until the next call of any function of this node.
  virtual std::size_t poll_transmit(Time now, std::span<const PortRoom> room,
                                    std::span<Datagram> out) = 0;

 protected:
  // Sets the table that prefetch() reads: the node's own, or that of the node it wraps.
  void set_prefetch(const PrefetchTable& table) { prefetch_ = &table; }
  void set_prefetch(const Node& wrapped) { prefetch_ = wrapped.prefetch_; }

 private:
  const PrefetchTable* prefetch_ = nullptr;
};

enum class Access : std::uint8_t { kLocal = 0, kRemoteWrite = 1 };

// A checked range of registered memory.
struct Region {
  std::uint64_t at = 0;
  std::uint32_t size = 0;
};

struct RegionQuery {
  std::uint32_t key = 0;
  std::uint64_t at = 0;
  std::uint32_t size = 0;
  Access access = Access::kRemoteWrite;
  std::uint32_t domain = 0;  // protection domain of the QP; a Memory with one domain ignores it
};

// The memory where an endpoint places payload. Given to the endpoint at construction.
class Memory {
 public:
  virtual ~Memory() = default;
  // Returns true and sets `out` if the whole range is registered under that key with that access.
  virtual bool region(const RegionQuery& query, Region& out) const = 0;
  // Copies the payload to its region. REQUIRES to.size == from.size.
  virtual void place(const Region& to, PayloadRef from) = 0;
};

class World {
 public:
  virtual ~World() = default;
  virtual Time now() const = 0;
  // From now on the world drives `node`, which has one address per port. The node outlives the
  // world.
  virtual Result<void> attach(std::span<const Address> ports, Node& node) = 0;
  // Runs until `limit`, or until nothing is left to do: then it returns false.
  virtual bool step(Time limit) = 0;
  // Makes a sleeping step() poll its nodes now. May be called from any thread.
  virtual void wake() = 0;
};

}  // namespace weft::world
