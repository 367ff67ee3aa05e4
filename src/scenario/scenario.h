// Scenario: a fabric, a workload, faults and expected results, as one value with a TOML form
// (docs/scenarios.md). The same value runs in the simulator and in the lab. parse.h reads it; this
// file has only values, no behaviour.
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
  // Size of a port's data queue; 0: one plane-BDP with trimming, five without.
  std::uint64_t queue_bytes = 0;
  std::uint64_t last_hop_queue_bytes = 0;  // host-facing ports; 0: the same as queue_bytes
  // Marking starts at min and is certain from max on; both 0: the default of settings.h.
  std::uint64_t ecn_min_bytes = 0, ecn_max_bytes = 0;
  bool ecn = true;
  bool last_hop_ecn = false;  // MRC: off, so that a mark means imbalance in the core
  bool trimming = true;
  bool trimming_given = false;  // the file sets it: a lab then uses switches that can trim
  std::uint64_t control_queue_bytes = 0;  // control and trimmed headers; 0: 4 * queue_bytes
  std::uint64_t shared_buffer_bytes = 0;  // shared by all ports of a switch; 0: private queues only
  std::uint32_t shared_alpha_percent = 100;  // the share of the free buffer that one port may use
};

struct TransportSpec {
  std::uint32_t mtu = 4096;
  std::uint32_t evs = 128;  // EVs of a QP in rotation, over all planes
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
  kPairs,        // host 2i -> 2i+1 (with `cross`: first half -> second half)
  kPermutation,  // every host sends to one and receives from one; drawn from the seed
  kIncast,       // `senders` hosts to host 0; `victim`: one more flow, to host 1
  kRingAllReduce,
  kTreeAllReduce,
  kAllToAll,
  kFlows,  // the flows listed in the file
};

struct FlowSpec {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;  // 0: the value of the workload
  Duration start{};
  std::uint32_t qp = 0;   // flows between two hosts that have the same number share QPs
  bool bad_rkey = false;  // uses an unregistered key: must end with a remote access error
  // The EVs of this flow use only these paths in every plane; empty: any path.
  std::vector<std::uint32_t> paths{};
};

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::kPermutation;
  std::uint64_t bytes = 0;  // of a flow (all-reduce: the whole vector; all-to-all: each pair)
  std::uint64_t message_bytes = 0;  // a flow is cut into messages of this size; 0: one message
  std::uint32_t qps_per_peer = 1;   // the messages of a flow are posted round robin over them
  std::uint32_t outstanding = 8;    // posted and incomplete messages of a flow, at most
  std::uint32_t hosts = 0;          // only the first `hosts` hosts take part; 0: all
  std::uint32_t senders = 0;        // incast; 0: all others
  bool victim = false;         // incast: one more flow that shares only switches with the incast
  bool cross = false;          // pairs: the two ends are under different T0s
  bool bidirectional = false;  // pairs, flows: each flow also in the other direction
  std::uint32_t group = 0;     // all-reduce, all-to-all: ranks in a group; 0: all hosts in one
  std::uint32_t parallel = 8;  // all-to-all: peers that a rank sends to at a time
  bool immediate = false;      // every message is a WRITE with immediate
  // Pairs, permutation, incast, flows: messages are posted until this time, for fault studies.
  Duration repeat_for{};
  std::vector<FlowSpec> flows{};
};

enum class FaultKind : std::uint8_t {
  kLoss,       // drops that share of the packets on the links
  kBurstLoss,  // Gilbert-Elliott: drops `share` in total, in bursts of `burst` on average
  kReorder,    // delays that share of packets by up to `delay`
  kDuplicate,
  kCorrupt,   // packets arrive with intact = false
  kLinkDown,  // down between `from` and `until`
  kLinkFlap,  // down and up every `period`
  kLinkSlow,  // the link runs at `rate_percent` of its rate
  kPlaneDown,
  kSwitchDown,
  kHostPause,    // the endpoint is not driven; its packets wait in a buffer
  kHostCrash,    // permanent
  kEvLoss,       // drops that share of the packets that carry one of `evs`
  kControlLoss,  // drops the first packet of kind `control`
};

enum class ControlKind : std::uint8_t { kFirstTransportAck, kFirstNak };

enum class LinkWhere : std::uint8_t {
  kNicReceive,  // at the receiving host, once for each packet and direction
  kAllLinks,    // on every link of the path
  kHostLink,    // host `host`'s link in `plane`
  kT0T1,        // T0 `t0` <-> T1 `t1` in `plane`
  kT1T2,
};

enum class Direction : std::uint8_t { kBoth, kUp, kDown };  // up: away from the host

// One fault, acting from `from` to `until`.
struct FaultSpec {
  FaultKind kind = FaultKind::kLoss;
  Duration from{};
  std::optional<Duration> until{};  // none: to the end of the run
  LinkWhere where = LinkWhere::kNicReceive;
  Direction direction = Direction::kBoth;
  bool silent = false;  // a host link fails without loss of carrier
  std::uint32_t plane = 0, host = 0, t0 = 0, t1 = 0, t2 = 0;
  fabric::Tier tier = fabric::Tier::kT1;  // switch-down
  std::uint32_t switch_index = 0;         // among the switches of its tier and plane
  std::uint32_t count = 1;                // links, hosts or switches, starting with the named one
  Duration spacing{};                     // delay between the starts of consecutive ones
  std::uint32_t share_ppm = 0;
  std::uint32_t burst = 1;
  Duration delay{};
  Duration period{};
  std::uint32_t rate_percent = 100;
  std::vector<std::uint32_t> evs{};  // indices into the flow's EV list
  ControlKind control = ControlKind::kFirstTransportAck;
};

// The limits of faults that are drawn from the seed, one mix for each run.
struct RandomFaultSpec {
  std::uint32_t count_max = 0;     // 1 to count_max faults,
  Duration window{};               // which start within this time,
  Duration duration_max{};         // last at most this long,
  std::vector<FaultKind> kinds{};  // and have one of these kinds
};

// The expected results. If one does not hold, `weft sim run` exits with 1. Unset: not checked.
struct ExpectSpec {
  bool all_completed = true;
  std::uint32_t qp_errors_max = 0;  // of QPs with both ends alive; see `remote_access_errors`
  // Exactly that many flows must end so; their QPs do not count as errors above.
  std::uint32_t remote_access_errors = 0;
  std::optional<double> slowest_over_ideal_max{};
  std::optional<double> slowest_over_ideal_min{};  // for scenarios that show how bad a policy is
  std::optional<double> goodput_gbps_min{};        // of all flows together
  std::optional<double> goodput_share_min{};       // of the framing limit: see docs/scenarios.md
  std::optional<double> fault_free_share_min{};    // goodput over that of the run without faults
  std::optional<double> jain_min{};
  std::optional<double> victim_share_min{};  // goodput over that of the victim alone
  std::optional<Duration> longest_pause_max{};
  std::optional<std::uint32_t> ev_bad_max{};
  std::optional<std::uint32_t> ev_bad_min{};
  bool ev_floor_never_reached = false;
  // Goodput in one window of time relative to the baseline window; needs `repeat_for`.
  Duration baseline_from{}, baseline_until{};  // before the fault
  std::optional<double> settled_share_min{};   // during the fault
  std::optional<double> settled_share_max{};
  Duration settled_from{}, settled_until{};
  std::optional<double> recovered_share_min{};  // after the repair
  Duration recovered_from{}, recovered_until{};
  std::optional<double> kb_per_host_max{};
};

enum class MemoryKind : std::uint8_t { kBytes, kProvenance, kNone };

struct RunSpec {
  Duration time_limit = Duration::s(10);  // in simulated time
  MemoryKind memory = MemoryKind::kProvenance;
  bool judge = true;                   // false if the trace would be too large
  std::uint64_t seed = 1;              // the command line can replace it
  Duration sample = Duration::us(10);  // step of the recorded goodput over time
};

struct Scenario {
  std::string name{};  // the file name without folder and .toml
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
