// The seam between the protocol and a world: all of it.
//
// A Node is passive: it is given datagrams, port events and the time, and asked for datagrams and
// its next deadline. A World drives nodes: `sim` with an event queue, `net` with Linux. A node
// never calls a world, and may wrap another node (the workload driver wraps an endpoint). Nobody
// asks which world it is in.
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
// One bit a port, bit i for index i.
using PortMask = std::uint8_t;

// Of one port of one process: the address of a host's port, and which of the host's processes. The
// endpoint compares addresses and asks no more of them.
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

// What a packet is to the network. The code points are the operator's; these are ours (reference
// section 3.10).
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

// A range of payload that is not looked at: an address in the sender's memory (going out) or in the
// receive buffer (coming in). In a simulated memory without bytes `at` names where the bytes would
// be.
struct PayloadRef {
  std::uint64_t at = 0;
  std::uint32_t size = 0;
};

struct Datagram {
  PortIndex port = 0;
  Ecn ecn = Ecn::kNotEct;
  Dscp dscp = Dscp::kControl;
  bool intact = true;         // incoming: the ICRC held (the world computes it)
  std::uint32_t entropy = 0;  // the EV: UDP source port and flow label, and through it the path
  Time received_at{};         // incoming: when the bytes came, not when we got to look
  Address peer{};             // outgoing: the destination; incoming: the source
  ConstBytes header{};        // from the BTH to the last extension header
  PayloadRef payload{};

  // Incoming, and no packet: the host of `peer` says that no process has that address. Anybody may
  // have said so in its name: a hint, to be confirmed (docs/decisions/0013).
  static Datagram refusal(PortIndex port, const Address& peer) {
    return {.port = port, .intact = false, .peer = peer};
  }
  bool is_refusal() const { return !intact && header.empty(); }
};

// What a port takes now; 0: full or down.
struct PortRoom {
  std::uint32_t packets = 0;
};

struct PortState {
  bool up = true;
  Rate rate{};
  // Where packets wait until they are looked at: how much there is (0: enough for anything), and
  // how many packets were ever lost because it was full.
  std::uint32_t receive_bytes = 0;
  std::uint32_t overflows = 0;
  bool singly = false;  // packets come one by one, and take more room each than in runs
};

// Datagrams that a node gives at a time at least, when it has them and there is room.
inline constexpr std::size_t kBatchMin = 16;

class Node {
 public:
  virtual ~Node() = default;

  // What a call will likely touch, by what it brings, for a world that fetches it ahead. May be
  // empty.
  enum class Call : std::uint8_t { kData, kControl, kPoll };
  struct Part {
    const void* at = nullptr;
    std::uint32_t bytes = 0;
  };
  using Hot = std::array<Part, 4>;
  using HotTable = std::array<Hot, 3>;
  // Null: nothing is known.
  const Hot* hot(Call call) const {
    return hot_ == nullptr ? nullptr : &(*hot_)[static_cast<std::size_t>(call)];
  }

  // Headers are valid during the call only.
  virtual void on_datagrams(Time now, std::span<const Datagram> in) = 0;
  virtual void on_port(Time now, PortIndex port, PortState state) = 0;
  // REQUIRES now >= next_deadline(). `late_by`: how long the world itself stood still just before.
  virtual void on_deadline(Time now, Duration late_by) = 0;
  // kNever when nothing is armed.
  virtual Time next_deadline() const = 0;
  // Fills `out` (kBatchMin of it at least, if it has as many), for no port more than its room; runs
  // on one EV are adjacent. Returns how many. Headers and payloads
  // are valid till the next call of any function of this node.
  virtual std::size_t poll_transmit(Time now, std::span<const PortRoom> room,
                                    std::span<Datagram> out) = 0;

 protected:
  // Where the answers to hot() stand: the node's own table, or that of a node it wraps.
  void set_hot(const HotTable& table) { hot_ = &table; }
  void set_hot(const Node& wrapped) { hot_ = wrapped.hot_; }

 private:
  const HotTable* hot_ = nullptr;
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
  std::uint32_t domain = 0;  // of the QP that asks; who has one domain only need not look
};

// Given to an endpoint at construction: where payload lands.
class Memory {
 public:
  virtual ~Memory() = default;
  // True, and `out` set, if the whole range is registered under that key with that access.
  virtual bool region(const RegionQuery& query, Region& out) const = 0;
  // Puts the payload in place. REQUIRES to.size == from.size.
  virtual void place(const Region& to, PayloadRef from) = 0;
};

class World {
 public:
  virtual ~World() = default;
  virtual Time now() const = 0;
  // From here on `node` is driven, with one address a port. The node outlives the world or is
  // detached with it.
  virtual Result<void> attach(std::span<const Address> ports, Node& node) = 0;
  // Runs until `limit` or until nothing is left to do; false in the latter case.
  virtual bool step(Time limit) = 0;
  // Makes a step() that sleeps look at its nodes again. From any thread.
  virtual void wake() = 0;
};

}  // namespace weft::world
