// SecureSession: the keys between one QP here and one there, or between two processes for the
// packets of their endpoints. For one incarnation of each: it begins with fresh random values of
// both ends and is never taken up again.
//
// Three hellos make the keys (docs/security.md). An end believes what the other drew only from a
// hello that repeats what it drew itself, so an old hello proves nothing. Once there are keys they
// stay: a peer that starts over is a new session at both ends. Who the peer is, is part of that: where
// nobody told its incarnation, the hello that echoes ours does.
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
    EndId self{}, peer{};  // not the same; a peer of incarnation 0 is yet to say which it is
    SessionRandom drawn{};
    std::uint32_t epoch_shift = kEpochShift;  // the same at both ends
  };
  SecureSession(const KeySchedule& keys, const Config& config);

  const EndId& self() const { return config_.self; }
  // Once there are keys it is known who that is.
  const EndId& peer() const { return config_.peer; }
  bool is_established() const { return out_.has_value(); }

  // Packets want to go, or came, and there are no keys: the hello that says so, at most one a
  // millisecond.
  std::optional<SecureHello> poll_hello(Time now);
  // A genuine hello. The answer to it, if it needs one: a few a millisecond. Says kNoSession when it
  // is between others, kStale when it is of a peer that is not ours any more.
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
  std::uint32_t answers_ = 0;  // since then
};

}  // namespace weft::seal
