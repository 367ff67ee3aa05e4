// SecureSession: the keys between a local and a remote QP, or between two processes for the packets
// of their endpoints. It is for one incarnation of each end: it begins with new random values of
// both ends and is never resumed.
//
// Three hellos make the keys (docs/security.md). An end accepts the peer's random value only from a
// hello that repeats its own, so an old hello proves nothing. Once there are keys they stay: a peer
// that restarts gets a new session at both ends. If the peer's incarnation was not known before,
// the hello that repeats our random value tells it.
//
// Time is an argument. Owned by a SessionTable; the KeySchedule outlives it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "seal/secure_direction.h"
#include "seal/secure_hello.h"
#include "wire/drop_reason.h"

namespace weft::seal {

class SecureSession {
 public:
  struct Config {
    EndId self{}, peer{};  // must differ; incarnation 0 of the peer: not known yet
    SessionRandom drawn{};
    std::uint32_t epoch_shift = kEpochShift;  // the same at both ends
  };
  SecureSession(const KeySchedule& keys, const Config& config);

  const EndId& self() const { return config_.self; }
  // Its incarnation is known once there are keys.
  const EndId& peer() const { return config_.peer; }
  bool is_established() const { return out_.has_value(); }

  // To be called when a packet is to be sent, or arrived, and there are no keys. Returns the hello
  // to send, at most one per millisecond.
  std::optional<SecureHello> poll_hello(Time now);
  // Handles an authentic hello. Returns the answer, if one is needed; the number of answers per
  // millisecond is limited. Errors: kNoSession if the hello is for other ends, kStale if it is from
  // an earlier peer, kNoBuffer beyond the limit.
  Result<std::optional<SecureHello>, DropReason> on_hello(Time now, const SecureHello& hello);

  // REQUIRES is_established().
  SendDirection& out() { return *out_; }
  ReceiveDirection& in() { return *in_; }

 private:
  SecureHello hello_to(const EndId& peer, const SessionRandom& echo) const;
  bool is_for_us(const SecureHello& hello) const;

  const KeySchedule* keys_;
  Config config_;
  SessionRandom peer_drawn_{};
  std::optional<SendDirection> out_;
  std::optional<ReceiveDirection> in_;
  Time hello_next_, answers_since_;
  std::uint32_t answers_ = 0;  // since answers_since_
};

}  // namespace weft::seal
