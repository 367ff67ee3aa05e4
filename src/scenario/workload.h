// A workload in full detail: all QPs, and the operations of every host on them. Pure values, made
// once before a run.
//
// An operation (Op) is a whole flow: a number of bytes from this host to a peer. It is cut into
// messages only when they are posted, so that the size of a plan does not depend on the number of
// bytes. FlowIndex numbers the operations of all hosts.
//
//   Messages   message k of a flow covers [k * message_size, ...) of it and goes to QP k mod
//              qps_per_peer.
//   Order      a host starts its operations in their order. Each waits for its start time, for its
//              immediates, and until fewer than `active_max` of the host's operations are active.
//   Immediates with `signal_each` every message is a WRITE with immediate. Otherwise an operation
//              `with_immediate` signals on every QP that it used: its last min(messages,
//              qps_per_peer) messages carry an immediate. Immediates of a QP arrive in the order of
//              posting. Hence the N-th immediate on each of a peer's QPs says that all bytes of that
//              peer's first N signalled operations are in place.
//   Memory     flow f has the address flow_base(f) in the memories of its sender and its receiver.
//              The receiver registers [flow_base(f), + flow_span(f)) under the key flow_key(f).
//              Therefore a receiving memory finds the flow by the key of region(), and place(to,
//              from) is right exactly when to.at == from.at. A flow with `bad_rkey` names kBadKey,
//              under which nothing is registered.
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

// Two connected QPs, one at each host. Flows in both directions use them.
struct Connection {
  HostIndex a = 0, b = 0;  // a < b
};

// One host's end of a connection. The ends towards one peer are adjacent; there are qps_per_peer of
// them.
struct End {
  std::uint32_t connection = 0;
  std::uint32_t receives = 0;  // number of immediates that will arrive; kNoLimit if it is unknown
  bool sends = false;          // an operation of this host sends on this end
  static constexpr std::uint32_t kNoLimit = 0xffff'ffff;
};

struct Op {
  std::uint64_t bytes = 0;  // 0: messages are repeated until Plan::repeat_until
  Duration start{};
  HostIndex peer = 0;
  std::uint32_t first_end = 0;  // index in the list of the host's ends
  // The operation waits until `after_receives` immediates have arrived on each signalled end
  // towards each of these peers; after_end is the first end towards the peer.
  std::uint32_t after_end[2] = {kNoEnd, kNoEnd};
  std::uint32_t after_receives = 0;
  bool with_immediate = false;
  bool bad_rkey = false;
  bool victim = false;            // the victim of an incast: results report it separately
  std::uint32_t listed = kNoEnd;  // index in WorkloadSpec::flows; kNoEnd: the flow is not listed
};

struct Plan {
  std::uint32_t qps_per_peer = 1;
  // the most messages of an operation that are posted and not complete
  std::uint32_t outstanding = 1;
  std::uint32_t active_max = 0;  // the most operations of a host that are started and not complete
  std::uint64_t message_bytes = 0;  // 0: one message for each flow, unless that is too large
  // on how many of its qps_per_peer QPs an operation sends immediates
  std::uint32_t signalled_qps = 0;
  bool signal_each = false;
  Time repeat_until;

  std::vector<Connection> connections;
  std::vector<End> ends;  // sorted by host; see ends_from
  // host_count + 1 indices into `ends`: where each host's ends begin
  std::vector<std::uint32_t> ends_from;
  std::vector<Op> ops;  // sorted by host; the index is the FlowIndex
  std::vector<std::uint32_t> ops_from;

  // Lower bounds on this fabric (ideal.h).
  Duration ideal{};
  // the ideal is for all flows together, from first post to last completion; not for each flow
  bool ideal_of_whole = false;
  Duration ideal_rtt{};  // the part of the ideal that does not depend on the number of bytes
  // The largest goodput of all flows together except victims, after framing.
  std::uint64_t goodput_limit_bps = 0;
  std::uint64_t flow_limit_bps = 0;  // the largest goodput of one host that sends

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

// REQUIRES a scenario from parse(), which has checked that hosts and groups fit the topology.
Plan make_plan(const Scenario& scenario, const fabric::Topology& topology, Prng prng);

// The size of an operation's messages, and their number. message_count() REQUIRES op.bytes != 0.
std::uint32_t message_size(const Plan& plan, const Op& op);
std::uint64_t message_count(const Plan& plan, const Op& op);
// The size of message `k`; only the last message is shorter.
std::uint32_t message_bytes(const Plan& plan, const Op& op, std::uint64_t k);
// True if message k carries an immediate.
bool is_signalled(const Plan& plan, const Op& op, std::uint64_t k);

constexpr std::uint64_t flow_base(FlowIndex flow) { return (std::uint64_t{flow} + 1) << 40; }
constexpr std::uint32_t flow_key(FlowIndex flow) { return flow + 1; }
// The size of the operation's address range. For a repeated flow: the largest range of a flow.
std::uint64_t flow_span(const Op& op);

}  // namespace weft::scenario
