// The configuration of an endpoint and its QPs: every bound and default, and its source.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/psn.h"
#include "base/rate.h"
#include "base/time.h"
#include "fabric/ev.h"
#include "transport/peer_kind.h"
#include "world/world.h"

namespace weft::transport {

using world::Address;
using world::PortIndex;
using world::PortMask;

// How the next EV is chosen. kMrc: a marked EV is skipped once. The others are for comparison.
enum class Policy : std::uint8_t { kMrc, kOblivious, kReps, kFlowHash };

// When an EV is condemned (docs/decisions/0003): when it loses more than the QP's other EVs, or at
// its first loss as in the MRC paper.
enum class Condemn : std::uint8_t { kRelative, kFirstLoss };

// NSCC. Zero means: derive from rate, base_rtt and mtu.
struct NsccConfig {
  bool enabled = true;   // false: the window stays at cwnd_bytes_max
  Rate rate;             // sum over all ports
  Duration base_rtt;     // of a full packet on the longest idle path; software peer: a lower bound
  bool trimming = true;  // the fabric trims: no quick adapt by delay, shorter default target
  bool quick_adapt = true;
  std::uint32_t cwnd_bytes_max = 0;      // default 1.5 * rate * base_rtt
  std::uint32_t cwnd_bytes_initial = 0;  // default cwnd_bytes_max
  Duration target_delay;  // default 0.75 (1.0 without trims) * base_rtt; or PeerRules::target_rtts
  Duration qa_threshold;  // default 4 * target_delay without trimming
  std::uint32_t qa_gate = 3;  // quick adapt acts only below cwnd_bytes_max >> qa_gate
  // Parameters that a controller may set (reference section 7.1).
  std::uint32_t fair_increase_bytes = 0;  // fi
  std::uint32_t eta_bytes = 0;
  std::uint32_t fast_increase_q10 = 0;  // fi_scale, in 1/1024
  std::uint32_t gamma_q10 = 0;          // default 0.8
  std::uint32_t jump_min_q10 = 0;       // max_md_jump; default 0.5
  std::uint32_t adjust_bytes = 0;       // default 8 MTU
  Duration adjust_period;               // default: the current base RTT
  friend bool operator==(const NsccConfig&, const NsccConfig&) = default;
};

struct RetryConfig {
  std::uint8_t timeout = 10;            // an interval is 1.024 us * 2^timeout
  std::uint8_t linear_count = 7;        // expiries at that interval,
  std::uint8_t exponential_count = 13;  // then doubling it; kRetryForever: never gives up
  friend bool operator==(const RetryConfig&, const RetryConfig&) = default;
};
inline constexpr std::uint8_t kRetryForever = 25;

struct EndpointConfig {
  std::uint32_t port_count = 1;
  std::array<Address, world::kPortsMax> ports{};  // our own addresses
  std::uint32_t mtu = 4096;                       // payload bytes of a full packet
  std::uint32_t burst = 1;                        // full packets in a row on one EV
  // Ports that port status updates do not cover: shared memory is up while its peer lives.
  PortMask unlisted_ports = 0;
  std::uint32_t qp_count_max = 16;
  std::uint32_t peer_count_max = 16;
  std::uint32_t ev_count_max = 4096;        // EVs of all QPs together, backups included
  std::uint32_t psn_block_count_max = 256;  // blocks of 64 PSN records in use over all QPs
  std::uint32_t send_queue_max = 16;        // work requests per QP
  std::uint32_t receive_queue_max = 16;
  std::uint32_t completion_queue_max = 64;
  std::uint32_t batch_max = 64;           // datagrams per poll_transmit; at least world::kBatchMin
  std::uint32_t control_queue_max = 256;  // control packets that wait for a port
  std::uint32_t ask_count_max = 0;        // endpoint requests of a controller in progress
  std::uint32_t ev_news_max = 0;          // EV changes kept for poll_ev_news; 0: not recorded
  std::uint32_t bad_ev_count_max = 512;   // condemned EVs that are probed, over all peers
  std::uint32_t first_qpn = 0x100;        // QPNs are numbered from here and wrap around
  std::uint32_t qpn_bits = 24;            // in this many low bits
  // For worlds in which a packet costs its sender time. Data from software peers is then
  // acknowledged after the data that goes out, on one port for each peer; while data keeps going
  // out, the answers wait for up to this time. NICs are answered at once. 0: software peers too.
  Duration answers_delay;
  bool tell_failures = false;      // record failures for poll_failure()
  bool share_path_health = false;  // beyond MRC: QPs to one peer learn bad EVs from each other
  Duration reverse_confirm = Duration::ms(1);  // then a reverse EV is probed
  std::uint64_t seed = 1;
  std::uint32_t host = 0;  // our name in the trace
};

struct QpConfig {
  PeerKind peer = PeerKind::kNic;  // kind of the peer: a NIC or software
  std::uint32_t mtu = 0;           // payload bytes of a full packet; 0: as in EndpointConfig
  std::uint32_t mtu_dest = 0;      // largest payload that we accept as responder; 0: same as mtu
  std::uint32_t mtu_dest_unlisted = 0;  // the same for packets from unlisted ports; 0: mtu_dest
  std::uint32_t sack_bytes = 0;         // a SACK after so many bytes; 0: by the kind of the peer
  std::uint32_t mpr = 32;               // our window as requestor, units of 128 PSNs
  std::uint32_t mpr_dest = 32;          // the window that we grant as responder
  bool dynamic_mpr = false;             // obey the responder's changes of the MPR in SACK.mpr
  // Between software ends SACK.mpr is the responder's receive budget. False where the link itself
  // holds the sender back (shared memory): SACK.mpr then has MRC's meaning, as with a NIC.
  bool receive_budget = true;
  std::uint16_t wimm_max = 128;       // as requestor: most immediates in flight
  std::uint16_t wimm_dest_max = 128;  // as responder: most immediates that wait for delivery
  bool trim_nack = true;              // answer trimmed packets with a NACK
  // Most work requests in the queues; 0: as in EndpointConfig.
  std::uint32_t send_queue_max = 0, receive_queue_max = 0;
  std::uint32_t domain = 0;  // whose memory the peer may write to: see Memory::region
  Policy policy = Policy::kMrc;
  Condemn condemn = Condemn::kRelative;
  std::uint32_t ev_active = 128;  // EVs in rotation; the other EVs of `evs` are backups
  std::uint32_t ev_min_active_share_percent = 25;
  std::uint32_t ev_min_active = 0;  // absolute number; 0: use the share above
  std::span<const fabric::Ev> evs;  // the QP copies them
  RetryConfig retry;
  NsccConfig nscc;
};

// How much a responder is ready to receive. Every SACK carries it to the requestor.
struct ReceiveLimit {
  std::uint8_t mpr = 0;  // units of 128 PSNs, or of the receive budget; 0: the QP's mpr_dest
  // 0: none; 64: halves the window in a round trip; 127: leaves one packet
  std::uint8_t cwnd_penalty = 0;
  bool overflow = false;  // the responder lost packets because its buffer was full
  friend bool operator==(const ReceiveLimit&, const ReceiveLimit&) = default;
};

// Address and first PSN of the peer. The two applications exchange them out of band.
struct PeerInfo {
  std::array<Address, world::kPortsMax> ports{};
  std::uint32_t host = 0xffff'ffff;  // the peer's name in the trace
  std::uint32_t qpn = 0;
  Psn first_psn;  // of the first packet that the peer sends
};

}  // namespace weft::transport
