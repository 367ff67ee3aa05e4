// Work requests and completions: the application's input and output.
#pragma once

#include <cstdint>

namespace weft::transport {

// Identifies a QP at its endpoint: the 24-bit number on the wire.
using Qpn = std::uint32_t;

// The addresses of a QP's packets: its own QPN and its peer's.
struct QpEnds {
  Qpn local_qpn = 0, peer_qpn = 0;
  std::uint32_t peer = 0;  // index of the peer in this endpoint's table
};

// An RDMA write. The local range must stay valid and unchanged until the completion.
struct WriteRequest {
  std::uint64_t id = 0;        // returned in the completion
  std::uint64_t local_at = 0;  // goes into PayloadRef::at
  std::uint64_t remote_at = 0;
  std::uint32_t rkey = 0;
  std::uint32_t size = 0;       // 0 is legal: one packet without payload
  bool with_immediate = false;  // consumes a posted receive at the peer; delivered in post order
  std::uint32_t immediate = 0;
  bool signalled = true;  // false: a write that succeeds has no completion
  bool solicited = false;
};

enum class Status : std::uint8_t {
  kOk,
  kRetryExceeded,    // the peer did not answer
  kRemoteAccess,     // rkey or bounds refused by the peer
  kRemoteInvalid,    // the peer found the request invalid (as with too many immediates)
  kRemoteOperation,  // the peer could not carry it out (no posted receive)
  kLocalAccess,      // as responder: a peer's write violated our memory or limits
  kFlushed,          // the QP was in error or left RTS
};
inline constexpr std::size_t kStatusCount = 7;

enum class CompletionKind : std::uint8_t { kWrite, kReceiveImmediate };

struct Completion {
  std::uint64_t id = 0;
  Qpn qpn = 0;
  CompletionKind kind = CompletionKind::kWrite;
  Status status = Status::kOk;
  std::uint32_t size = 0;  // of a receive: size of the message
  std::uint32_t immediate = 0;
  bool solicited = false;
};

enum class QpState : std::uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kError };

}  // namespace weft::transport
