// Keys: everything that is derived from the job secret. HKDF-SHA256 and HMAC-SHA256 of OpenSSL; no
// type of OpenSSL leaves the .cc file. The schedule in words: docs/security.md.
//
// The job secret is what all processes of a job share. It is never used as a key: each purpose has
// its own, so that what one leaks says nothing about another.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace weft::seal {

using Key = std::array<std::byte, 32>;
// What each end draws afresh for a session.
using SessionRandom = std::array<std::byte, 16>;
using HelloTag = std::array<std::byte, 16>;

// 16 bytes nobody can guess. Errors: kSystem.
Result<SessionRandom> draw_random();

// One end of a session. `incarnation` is drawn when a process starts, so that a process that takes
// the slot, and by chance the QPN, of one that was killed is somebody else.
struct EndId {
  std::uint64_t incarnation = 0;
  std::uint16_t process = 0;
  std::uint32_t qpn = 0;
  friend auto operator<=>(const EndId&, const EndId&) = default;
};

// One end and what it drew.
struct SessionEnd {
  EndId id{};
  SessionRandom random{};
};

// The keys of one direction in one epoch. The secret of the next epoch follows from this one's, not
// the other way round.
struct TrafficKeys {
  Key payload{}, header{};
  std::uint64_t id = 0;  // says which keys these are and nothing about them
};

class KeySchedule {
 public:
  static constexpr std::size_t kSecretSizeMin = 32;
  // Errors: kInvalid for a secret that is too short.
  static Result<KeySchedule> from_secret(ConstBytes job_secret);

  // Says whether two processes have the same secret; never 0.
  std::uint32_t fingerprint() const { return fingerprint_; }
  HelloTag hello_tag(ConstBytes hello) const;
  // The secret of epoch 0 of the direction that `from` sends in. Both ends compute the same.
  Key traffic_secret(const SessionEnd& from, const SessionEnd& to) const;

 private:
  KeySchedule() = default;
  Key session_{}, hello_{};
  std::uint32_t fingerprint_ = 0;
};

TrafficKeys traffic_keys(const Key& traffic_secret);
Key next_traffic_secret(const Key& traffic_secret);

// Takes as long for bytes that differ early as for equal ones. False for different sizes.
bool is_same_secretly(ConstBytes a, ConstBytes b);

}  // namespace weft::seal
