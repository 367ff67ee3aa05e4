// A workload written out: which QPs there are, and what every host does on them. Pure values, made
// once before a run.
//
// An operation (Op) is a whole flow: so many bytes from this host to a peer, cut into messages as
// they are posted, so that a plan stays small whatever the flows carry. FlowIndex numbers the
// operations of all hosts.
//
//   Messages   message k of a flow covers [k * message_size, ...) of it and goes to QP k mod
//              qps_per_peer.
//   Order      a host starts its operations in their order, each when its time has come, when the
//              immediates that it waits for have arrived, and when fewer than `active_max` of the
//              host's operations are under way.
//   Immediates with `signal_each` every message is a WRITE with immediate. Otherwise an operation
//              `with_immediate` signals on every QP that it used: its last min(messages,
//              qps_per_peer) messages are. Immediates of a QP arrive in the order of posting, so
//              the N-th on each of a peer's QPs says that everything of that peer's first N
//              signalled operations is in place.
//   Memory     flow f lies at flow_base(f) in its sender's memory and at the same address in its
//              receiver's, which registers [flow_base(f), + flow_span(f)) under the key
//              flow_key(f). A receiving memory therefore finds the flow by the key of region(), and
//              place(to, from) is right exactly when to.at == from.at. A flow with `bad_rkey` names
//              kBadKey, under which nothing is registered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "fabric/topology.h"
#include "scenario/scenario.h"

namespace weft::scenario {

using fabric::HostIndex;
using FlowIndex = std::uint32_t;

inline constexpr std::uint64_t kFlowCountMax = 1u << 23;
inline constexpr std::uint32_t kBadKey = 0;
inline constexpr std::uint32_t kNoEnd = 0xffff'ffff;

// A pair of connected QPs, one at each host; traffic of both directions shares it.
struct Connection {
  HostIndex a = 0, b = 0;  // a < b
};

// A host's end of a connection. The ends towards one peer are adjacent, qps_per_peer of them.
struct End {
  std::uint32_t connection = 0;
  std::uint32_t receives = 0;  // immediates that will arrive; kNoLimit if nobody knows
  bool sends = false;          // some operation of this host uses it
  static constexpr std::uint32_t kNoLimit = 0xffff'ffff;
};

struct Op {
  std::uint64_t bytes = 0;  // 0: messages are repeated until Plan::repeat_until
  Duration start{};
  HostIndex peer = 0;
  std::uint32_t first_end = 0;  // of the host's ends
  // Starts when at least after_receives immediates have arrived on each signalled end of these
  // peers.
  std::uint32_t after_end[2] = {kNoEnd, kNoEnd};
  std::uint32_t after_receives = 0;
  bool with_immediate = false;
  bool bad_rkey = false;
  bool victim = false;            // of an incast: judged by itself
  std::uint32_t listed = kNoEnd;  // its place in WorkloadSpec::flows
};

struct Plan {
  std::uint32_t qps_per_peer = 1;
  std::uint32_t outstanding = 1;    // messages of an operation posted at a time
  std::uint32_t active_max = 0;     // operations of a host under way at a time
  std::uint64_t message_bytes = 0;  // 0: a flow is one message, if it can be
  std::uint32_t signalled_qps = 0;  // of qps_per_peer, how many an operation that signals uses
  bool signal_each = false;
  Time repeat_until;

  std::vector<Connection> connections;
  std::vector<End> ends;                 // host by host
  std::vector<std::uint32_t> ends_from;  // host_count + 1 positions in `ends`
  std::vector<Op> ops;                   // host by host: index = FlowIndex
  std::vector<std::uint32_t> ops_from;

  // What the fabric allows at best (ideal.h).
  Duration ideal{};
  bool ideal_of_whole = false;  // of everything from first post to last completion, not of a flow
  Duration ideal_rtt{};         // the part of it that does not depend on the bytes
  // Payload of all flows together but victims, framing deducted.
  std::uint64_t goodput_limit_bps = 0;
  std::uint64_t flow_limit_bps = 0;  // payload that one host can send

  std::uint32_t host_count() const { return static_cast<std::uint32_t>(ops_from.size()) - 1; }
  std::span<const End> ends_of(HostIndex host) const {
    return std::span(ends).subspan(ends_from[host], ends_from[host + 1] - ends_from[host]);
  }
  std::span<const Op> ops_of(HostIndex host) const {
    return std::span(ops).subspan(ops_from[host], ops_from[host + 1] - ops_from[host]);
  }
  HostIndex host_of(FlowIndex flow) const;
  HostIndex peer_of(HostIndex host, const End& end) const {
    const Connection& connection = connections[end.connection];
    return connection.a == host ? connection.b : connection.a;
  }
};

// REQUIRES a scenario from parse(): hosts and groups that fit the topology.
Plan make_plan(const Scenario& scenario, const fabric::Topology& topology, Prng prng);

// How an operation is cut into messages. REQUIRES a finite operation for message_count.
std::uint32_t message_size(const Plan& plan, const Op& op);
std::uint64_t message_count(const Plan& plan, const Op& op);
// Of message `k`; only the last one is shorter.
std::uint32_t message_bytes(const Plan& plan, const Op& op, std::uint64_t k);
// Message k carries an immediate.
bool is_signalled(const Plan& plan, const Op& op, std::uint64_t k);

constexpr std::uint64_t flow_base(FlowIndex flow) { return (std::uint64_t{flow} + 1) << 40; }
constexpr std::uint32_t flow_key(FlowIndex flow) { return flow + 1; }
// Of a repeated flow: as much as one address range holds.
std::uint64_t flow_span(const Op& op);

}  // namespace weft::scenario
