// The trace: the events of a run as records, for the judge. The worlds, the transport and the
// workload driver append records and never read them. A record is a fixed struct of 120 bytes
// without pointers.
//
// The fields of each kind of record follow; all others are 0. `host` is the host where the event
// happened, `qpn` a QP of that host.
//
//   kQp        a QP reached RTR: qpn, peer (host), peer_qpn, a = MPR window in PSNs, b = WIMM
//              limit, psn = first PSN it sends, ev = first PSN it expects, c = path MTU (payload
//              bytes)
//   kSend      a datagram left the endpoint for the world: port, ev, size (payload), header; peer =
//              host it is meant for (kUnknownHost if unknown)
//   kReceive   a datagram was given to the endpoint: the same; flags bit 0 = CE, bit 1 = trimmed,
//              bit 2 = damaged
//   kPost      a work request: qpn, id, a = remote address, b = length, c = immediate,
//              flags bit 0 = with immediate, bit 1 = signalled
//   kPostRecv  a receive: qpn, id
//   kComplete  a completion was given to the application: qpn, id, a = status (0 ok), b = byte
//              length, c = immediate, flags bit 0 = a receive with immediate
//   kWindow    congestion window or inflight changed: qpn, a = cwnd bytes, b = inflight bytes
//              (two's complement)
//   kEv        an EV changed state: qpn, ev, port, a = EvTraceState
//   kPort      a port of the host: port, a = 1 up, 0 down
//   kQpError   the QP went to ERR: qpn, a = status
//   kQpGone    the QP was destroyed or reset: qpn
//   kHostDown  the endpoint crashed: from here on nothing is expected of it, nor of its peers' QPs
//              to it
//   kHealed    every fault is over: from here on every QP must make progress
//   kMemory    the receiver's memory after the run: qpn = receiver's QPN, id = work request id at
//              the sender, peer = sender, a = bytes in place with the right content, b = bytes of
//              the message
//   kEnd       the run is over
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace weft {

enum class TraceKind : std::uint8_t {
  kQp,
  kSend,
  kReceive,
  kPost,
  kPostRecv,
  kComplete,
  kWindow,
  kEv,
  kPort,
  kQpError,
  kQpGone,
  kHostDown,
  kHealed,
  kMemory,
  kEnd,
};

enum class EvTraceState : std::uint8_t { kGood, kSkip, kAssumedBad, kDenied };

struct TraceRecord {
  static constexpr std::uint32_t kUnknownHost = 0xffff'ffff;

  Time at;
  std::uint32_t host = 0;
  TraceKind kind = TraceKind::kEnd;
  std::uint8_t port = 0;
  std::uint8_t flags = 0;
  std::uint8_t header_size = 0;
  std::uint32_t qpn = 0;
  std::uint32_t peer = kUnknownHost;
  std::uint32_t peer_qpn = 0;
  std::uint32_t ev = 0;
  std::uint32_t size = 0;
  std::uint32_t psn = 0;
  std::uint64_t id = 0;
  std::uint64_t a = 0, b = 0;
  std::uint32_t c = 0;
  std::array<std::byte, 48> header{};  // as on the wire, from the BTH on

  ConstBytes header_bytes() const { return ConstBytes(header).first(header_size); }
};

// The records of a run since the last clear(). The driver of the run reads and clears them.
class Trace {
 public:
  void append(const TraceRecord& record) { records_.push_back(record); }
  const std::vector<TraceRecord>& records() const { return records_; }
  void clear() { records_.clear(); }

 private:
  std::vector<TraceRecord> records_;
};

}  // namespace weft
