// Scenario: a fabric, a workload, faults, and what must come out, as one value with a TOML form
// (docs/scenarios.md). The same value runs in the simulator and, later, in the lab. Reading it is
// parse.h; nothing here has behaviour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "fabric/forward.h"
#include "fabric/topology.h"
#include "transport/config.h"

namespace weft::scenario {

struct SwitchSpec {
  // The data queue of a port; 0: one plane-BDP with trimming, five without.
  std::uint64_t queue_bytes = 0;
  std::uint64_t last_hop_queue_bytes = 0;  // host-facing ports; 0: as queue_bytes
  // Marking starts, is certain; both 0: settings.h.
  std::uint64_t ecn_min_bytes = 0, ecn_max_bytes = 0;
  bool ecn = true;
  bool last_hop_ecn = false;  // MRC: marks mean imbalance in the core
  bool trimming = true;
  bool trimming_given = false;  // the file says so itself: a lab then takes switches that can
  std::uint64_t control_queue_bytes = 0;     // control and trimmed headers; 0: 4 * queue_bytes
  std::uint64_t shared_buffer_bytes = 0;     // of a whole switch; 0: private queues only
  std::uint32_t shared_alpha_percent = 100;  // a port may take that share of what is free
};

struct TransportSpec {
  std::uint32_t mtu = 4096;
  std::uint32_t evs = 128;  // in rotation, a QP, over all planes
  std::uint32_t backup_evs = 32;
  std::uint32_t ev_min_active_percent = 25;
  transport::Policy policy = transport::Policy::kMrc;
  transport::Condemn condemn = transport::Condemn::kRelative;
  bool share_path_health = false;
  bool congestion_control = true;
  bool trim_nack = true;
  std::uint64_t cwnd_max_bytes = 0;  // 0: 1.5 BDP
  Duration base_rtt{};               // 0: the topology's longest idle RTT
  std::uint32_t mpr = 32;
  bool dynamic_mpr = false;
  std::uint16_t wimm_max = 128;
  std::uint32_t sack_bytes = 16 * 1024;
  std::uint32_t burst = 1;
  transport::RetryConfig retry{};
  bool extra_header_srv6 = true;  // count the outer IPv6 header on the wire (SRv6 forwarding only)
};

enum class WorkloadKind : std::uint8_t {
  kPairs,        // host 2i -> 2i+1 (or first half -> second half with `cross`)
  kPermutation,  // every host sends to one other and receives from one, drawn from the seed
  kIncast,       // `senders` hosts to host 0; a `victim` beside it, to host 1
  kRingAllReduce,
  kTreeAllReduce,
  kAllToAll,
  kFlows,  // listed
};

struct FlowSpec {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;  // 0: as the workload says
  Duration start{};
  std::uint32_t qp = 0;   // flows between two hosts with the same number share their QPs
  bool bad_rkey = false;  // names memory that is not registered: ends with a remote access error
  // Its EVs use only these paths in every plane; empty: drawn from all.
  std::vector<std::uint32_t> paths{};
};

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::kPermutation;
  std::uint64_t bytes = 0;          // a flow (all-reduce: the whole vector; all-to-all: each pair)
  std::uint64_t message_bytes = 0;  // a flow is cut into messages of this size; 0: one message
  std::uint32_t qps_per_peer = 1;   // messages of a flow go round robin over them
  std::uint32_t outstanding = 8;    // messages of a flow posted at a time
  std::uint32_t hosts = 0;          // the first that take part; 0: all
  std::uint32_t senders = 0;        // incast; 0: all others
  bool victim = false;              // incast: a flow beside it that shares only switches with it
  bool cross = false;               // pairs: the two ends are under different T0s
  bool bidirectional = false;       // pairs, flows: the same back
  std::uint32_t group = 0;          // all-reduce, all-to-all: ranks a group; 0: all hosts in one
  std::uint32_t parallel = 8;       // all-to-all: peers served at a time
  bool immediate = false;           // every message is a WRITE with immediate
  // Pairs, permutation, incast, flows: post messages until then, for fault studies.
  Duration repeat_for{};
  std::vector<FlowSpec> flows{};
};

enum class FaultKind : std::uint8_t {
  kLoss,       // share of packets on the links
  kBurstLoss,  // Gilbert-Elliott: `share` lost in all, in bursts of `burst` packets on average
  kReorder,    // share of packets delayed by up to `delay`
  kDuplicate,
  kCorrupt,   // arrives with intact = false
  kLinkDown,  // `from` .. `until`
  kLinkFlap,  // down and up every `period`
  kLinkSlow,  // at `rate_percent` of its rate
  kPlaneDown,
  kSwitchDown,
  kHostPause,    // the endpoint is not driven; packets wait in its buffer
  kHostCrash,    // for ever
  kEvLoss,       // share of packets that carry one of `evs`
  kControlLoss,  // the first of its kind: see `control`
};

enum class ControlKind : std::uint8_t { kFirstTransportAck, kFirstNak };

enum class LinkWhere : std::uint8_t {
  kNicReceive,  // at the receiving host, once a packet and direction
  kAllLinks,    // on every link of a path
  kHostLink,    // host `host`'s link in `plane`
  kT0T1,        // T0 `t0` <-> T1 `t1` in `plane`
  kT1T2,
};

enum class Direction : std::uint8_t { kBoth, kUp, kDown };  // up: away from the host

// When a fault acts: from `from` on, until `until`, or to the end of the run.
struct FaultSpec {
  FaultKind kind = FaultKind::kLoss;
  Duration from{};
  std::optional<Duration> until{};  // none: to the end
  LinkWhere where = LinkWhere::kNicReceive;
  Direction direction = Direction::kBoth;
  bool silent = false;  // a host link fails without loss of carrier
  std::uint32_t plane = 0, host = 0, t0 = 0, t1 = 0, t2 = 0;
  fabric::Tier tier = fabric::Tier::kT1;  // switch-down
  std::uint32_t switch_index = 0;         // in its tier and plane
  std::uint32_t count = 1;  // that many links, hosts or switches, from the named one on
  Duration spacing{};       // one after another
  std::uint32_t share_ppm = 0;
  std::uint32_t burst = 1;
  Duration delay{};
  Duration period{};
  std::uint32_t rate_percent = 100;
  std::vector<std::uint32_t> evs{};  // positions in the flow's EV list
  ControlKind control = ControlKind::kFirstTransportAck;
};

// Faults drawn from the seed, one mix a run.
struct RandomFaultSpec {
  std::uint32_t count_max = 0;     // 1 .. count_max of them
  Duration window{};               // they start within this,
  Duration duration_max{};         // last at most this long,
  std::vector<FaultKind> kinds{};  // and are of these kinds
};

// What must hold, else `weft sim run` exits 1. Unset: not asked.
struct ExpectSpec {
  bool all_completed = true;
  std::uint32_t qp_errors_max = 0;  // of QPs whose both ends live; see `remote_access_errors`
  // Exactly that many flows end so; their QPs are not counted above.
  std::uint32_t remote_access_errors = 0;
  std::optional<double> slowest_over_ideal_max{};
  std::optional<double> slowest_over_ideal_min{};  // for the counter-examples
  std::optional<double> goodput_gbps_min{};        // of all flows together
  std::optional<double> goodput_share_min{};       // of the framing limit: see docs/scenarios.md
  std::optional<double> fault_free_share_min{};    // of the goodput of the same run without faults
  std::optional<double> jain_min{};
  std::optional<double> victim_share_min{};  // of what the victim's flow gets alone
  std::optional<Duration> longest_pause_max{};
  std::optional<std::uint32_t> ev_bad_max{};
  std::optional<std::uint32_t> ev_bad_min{};
  bool ev_floor_never_reached = false;
  // Goodput in one window of time over that in another, of runs with `repeat_for`.
  Duration baseline_from{}, baseline_until{};  // what is normal
  std::optional<double> settled_share_min{};   // while the fault lasts
  std::optional<double> settled_share_max{};
  Duration settled_from{}, settled_until{};
  std::optional<double> recovered_share_min{};  // after repair
  Duration recovered_from{}, recovered_until{};
  std::optional<double> kb_per_host_max{};
};

enum class MemoryKind : std::uint8_t { kBytes, kProvenance, kNone };

struct RunSpec {
  Duration time_limit = Duration::s(10);  // simulated
  MemoryKind memory = MemoryKind::kProvenance;
  bool judge = true;                   // false: too large to trace
  std::uint64_t seed = 1;              // unless the command line gives one
  Duration sample = Duration::us(10);  // goodput over time is kept in steps of this
};

struct Scenario {
  std::string name{};  // the file's, without folder and .toml
  std::string description{};
  fabric::TopologySpec topology{};
  fabric::Forwarding forwarding = fabric::Forwarding::kSrv6;
  SwitchSpec switches{};
  TransportSpec transport{};
  WorkloadSpec workload{};
  std::vector<FaultSpec> faults{};
  RandomFaultSpec random_faults{};
  ExpectSpec expect{};
  RunSpec run{};
};

}  // namespace weft::scenario
