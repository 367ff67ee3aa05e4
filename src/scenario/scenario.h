// Scenario: a fabric, a workload, faults and expected results, as one value. parse.h reads it from
// a TOML file (docs/scenarios.md). The same value runs in the simulator and in a lab. This file has
// only values, no functions.
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
  // Size of a port's data queue. 0: one BDP of a plane with trimming, five without.
  std::uint64_t queue_bytes = 0;
  std::uint64_t last_hop_queue_bytes = 0;  // for ports towards hosts; 0: queue_bytes
  // ECN marks begin at min, and every packet is marked above max. Both 0: the default of
  // settings.h.
  std::uint64_t ecn_min_bytes = 0, ecn_max_bytes = 0;
  bool ecn = true;
  bool last_hop_ecn = false;  // in MRC false: then a mark means imbalance in the core
  bool trimming = true;
  // the file sets `trimming`: a lab then uses software switches, which can trim
  bool trimming_given = false;
  // for control packets and trimmed headers; 0: 4 * queue_bytes
  std::uint64_t control_queue_bytes = 0;
  std::uint64_t shared_buffer_bytes = 0;  // shared by all ports of a switch; 0: private queues only
  // how much one port may use, in percent of the free buffer
  std::uint32_t shared_alpha_percent = 100;
};

struct TransportSpec {
  std::uint32_t mtu = 4096;
  std::uint32_t evs = 128;  // EVs of a QP that are in rotation, in all planes together
  std::uint32_t backup_evs = 32;
  std::uint32_t ev_min_active_percent = 25;
  transport::Policy policy = transport::Policy::kMrc;
  transport::Condemn condemn = transport::Condemn::kRelative;
  bool share_path_health = false;
  bool congestion_control = true;
  bool trim_nack = true;
  std::uint64_t cwnd_max_bytes = 0;  // 0: 1.5 times the BDP
  Duration base_rtt{};               // 0: the topology's longest idle RTT
  std::uint32_t mpr = 32;
  bool dynamic_mpr = false;
  std::uint16_t wimm_max = 128;
  std::uint32_t sack_bytes = 16 * 1024;
  std::uint32_t burst = 1;
  transport::RetryConfig retry{};
  // count the outer IPv6 header as wire bytes (only with SRv6 forwarding)
  bool extra_header_srv6 = true;
};

enum class WorkloadKind : std::uint8_t {
  kPairs,        // host 2i to host 2i + 1; with `cross`: first half of the hosts to second half
  kPermutation,  // every host sends to one host and receives from one host; drawn from the seed
  kIncast,       // `senders` hosts send to host 0; with `victim`: one more flow, to host 1
  kRingAllReduce,
  kTreeAllReduce,
  kAllToAll,
  kFlows,  // the flows listed in the file
};

struct FlowSpec {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;  // 0: WorkloadSpec::bytes
  Duration start{};
  std::uint32_t qp = 0;  // flows with the same number between the same two hosts share QPs
  // use a key that is not registered: the flow must end with a remote access error
  bool bad_rkey = false;
  // The EVs of this flow use only these paths, in every plane. Empty: all paths.
  std::vector<std::uint32_t> paths{};
};

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::kPermutation;
  // of a flow; all-reduce: of the whole vector; all-to-all: of each pair of ranks
  std::uint64_t bytes = 0;
  std::uint64_t message_bytes = 0;  // a flow is cut into messages of this size; 0: one message
  // QPs between two hosts; messages of a flow are posted on them round robin
  std::uint32_t qps_per_peer = 1;
  std::uint32_t outstanding = 8;  // the most messages of a flow that are posted and not complete
  std::uint32_t hosts = 0;        // only the first `hosts` hosts take part; 0: all
  std::uint32_t senders = 0;      // incast: the number of senders; 0: all other hosts
  bool victim = false;            // incast: add a flow that shares only switches with the incast
  bool cross = false;             // pairs: the two ends are under different T0s
  bool bidirectional = false;     // pairs, flows: each flow also in the other direction
  std::uint32_t group = 0;  // all-reduce, all-to-all: ranks in a group; 0: one group of all hosts
  // all-to-all: the number of peers that a rank sends to at the same time
  std::uint32_t parallel = 8;
  bool immediate = false;  // every message is a WRITE with immediate
  // Only for pairs, permutation, incast and flows: post messages again and again until this time,
  // to study faults.
  Duration repeat_for{};
  std::vector<FlowSpec> flows{};
};

enum class FaultKind : std::uint8_t {
  kLoss,       // drops a share of the packets on the links
  kBurstLoss,  // Gilbert-Elliott: drops `share` in total, in bursts of `burst` on average
  kReorder,    // delays a share of the packets by up to `delay`
  kDuplicate,
  kCorrupt,   // packets arrive with intact == false
  kLinkDown,  // the link is down between `from` and `until`
  kLinkFlap,  // the link goes down and up every `period`
  kLinkSlow,  // the link runs at `rate_percent` of its rate
  kPlaneDown,
  kSwitchDown,
  kHostPause,    // nothing drives the endpoint; its packets wait in a buffer
  kHostCrash,    // lasts to the end of the run
  kEvLoss,       // drops a share of the packets that carry one of `evs`
  kControlLoss,  // drops the first packet of the kind `control`
};

enum class ControlKind : std::uint8_t { kFirstTransportAck, kFirstNak };

enum class LinkWhere : std::uint8_t {
  kNicReceive,  // at the receiving host, once for each packet and direction
  kAllLinks,    // on every link of the path
  kHostLink,    // host `host`'s link in `plane`
  kT0T1,        // T0 `t0` <-> T1 `t1` in `plane`
  kT1T2,
};

enum class Direction : std::uint8_t { kBoth, kUp, kDown };  // kUp: away from the host

// One fault, which lasts from `from` to `until`.
struct FaultSpec {
  FaultKind kind = FaultKind::kLoss;
  Duration from{};
  std::optional<Duration> until{};  // not set: to the end of the run
  LinkWhere where = LinkWhere::kNicReceive;
  Direction direction = Direction::kBoth;
  bool silent = false;  // a link of a host fails, but its carrier stays up
  std::uint32_t plane = 0, host = 0, t0 = 0, t1 = 0, t2 = 0;
  fabric::Tier tier = fabric::Tier::kT1;  // for switch-down
  std::uint32_t switch_index = 0;         // among the switches of its tier and plane
  std::uint32_t count = 1;  // number of links, hosts or switches, beginning with the named one
  Duration spacing{};       // time between the starts of the fault on the first, the second, ...
  std::uint32_t share_ppm = 0;
  std::uint32_t burst = 1;
  Duration delay{};
  Duration period{};
  std::uint32_t rate_percent = 100;
  std::vector<std::uint32_t> evs{};  // indices into the EV list of the first flow
  ControlKind control = ControlKind::kFirstTransportAck;
};

// Limits of the random faults. Each run draws a mix of its own from the seed.
struct RandomFaultSpec {
  std::uint32_t count_max = 0;     // number of faults: 1 to count_max
  Duration window{};               // each fault starts within this time
  Duration duration_max{};         // each fault lasts at most this long
  std::vector<FaultKind> kinds{};  // each fault has one of these kinds
};

// The expected results. If one is not met, `weft sim run` exits with 1. A member that is not set is
// not checked.
struct ExpectSpec {
  bool all_completed = true;
  // only QPs whose two hosts did not crash, and not those of `remote_access_errors`
  std::uint32_t qp_errors_max = 0;
  // Exactly so many flows must end with a remote access error; their QPs are not counted in
  // qp_errors_max.
  std::uint32_t remote_access_errors = 0;
  std::optional<double> slowest_over_ideal_max{};
  // for scenarios that show the cost of a bad policy
  std::optional<double> slowest_over_ideal_min{};
  std::optional<double> goodput_gbps_min{};  // of all flows together
  // relative to the largest goodput that framing allows: docs/scenarios.md
  std::optional<double> goodput_share_min{};
  std::optional<double> fault_free_share_min{};  // relative to the goodput of a run without faults
  std::optional<double> jain_min{};
  // the victim's goodput relative to its goodput without other flows
  std::optional<double> victim_share_min{};
  std::optional<Duration> longest_pause_max{};
  std::optional<std::uint32_t> ev_bad_max{};
  std::optional<std::uint32_t> ev_bad_min{};
  bool ev_floor_never_reached = false;
  // Goodput in a time window, relative to goodput in the baseline window. Needs `repeat_for`.
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
  Duration time_limit = Duration::s(10);  // simulated time
  MemoryKind memory = MemoryKind::kProvenance;
  bool judge = true;                   // set to false if the trace would be too large
  std::uint64_t seed = 1;              // the command line can override it
  Duration sample = Duration::us(10);  // interval of the recorded goodput over time
};

struct Scenario {
  std::string name{};  // the file's name without folder and ".toml"
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
