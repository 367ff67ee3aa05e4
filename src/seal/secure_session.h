// SecureSession: the keys between a local and a remote QP, or between two processes for the packets
// of their endpoints. A session is for one incarnation of each end. It begins with new random
// values of both ends and is never resumed.
//
// Three hellos make the keys (docs/security.md). An end accepts the peer's random value only from a
// hello that repeats the end's own random value, so a recorded hello proves nothing. The keys of a
// session never change to those of another peer: a peer that restarts gets a new session at both
// ends. An unknown incarnation of the peer is learned from the hello that repeats our random value.
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
    EndId self{}, peer{};  // must differ; the peer's incarnation is 0 until it is known
    SessionRandom drawn{};
    std::uint32_t epoch_shift = kEpochShift;  // the same at both ends
  };
  SecureSession(const KeySchedule& keys, const Config& config);

  const EndId& self() const { return config_.self; }
  // The peer; its incarnation is known once the session has keys.
  const EndId& peer() const { return config_.peer; }
  bool is_established() const { return out_.has_value(); }

  // To be called when a packet is to be sent, or has arrived, and the session has no keys. Returns
  // the hello to send, at most one per millisecond.
  std::optional<SecureHello> poll_hello(Time now);
  // Handles an authentic hello. Returns an answer, if the peer needs one; the number of answers per
  // millisecond is limited. Errors: kNoSession if the hello is for other ends, kStale if it is from
  // an earlier incarnation of the peer, kNoBuffer if the limit of answers is reached.
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
  std::uint32_t answers_ = 0;  // answers sent since answers_since_
};

}  // namespace weft::seal
