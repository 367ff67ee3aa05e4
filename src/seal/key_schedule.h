// KeySchedule: the keys and tags that are derived from the job secret, by OpenSSL's HKDF-SHA256 and
// HMAC-SHA256. No OpenSSL type leaves the .cc file. docs/security.md describes the schedule.
//
// All processes of a job share the job secret. The secret itself is never used as a key. Each
// purpose has its own derived key, so that a leaked key says nothing about the others.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace weft::seal {

using Key = std::array<std::byte, 32>;
// The random value that each end of a session draws for that session.
using SessionRandom = std::array<std::byte, 16>;
using HelloTag = std::array<std::byte, 16>;

// Draws 16 unpredictable bytes. Errors: kSystem.
Result<SessionRandom> draw_random();

// One end of a session. The process draws `incarnation` when it starts. The incarnation
// distinguishes it from a killed predecessor with the same slot and, by chance, the same QPN.
struct EndId {
  std::uint64_t incarnation = 0;
  std::uint16_t process = 0;
  std::uint32_t qpn = 0;
  friend auto operator<=>(const EndId&, const EndId&) = default;
};

// One end and the random value that it drew.
struct SessionEnd {
  EndId id{};
  SessionRandom random{};
};

// The keys of one direction in one epoch. From the secret of an epoch the next epoch's secret can
// be computed, but not the previous one's.
struct TrafficKeys {
  Key payload{}, header{};
  std::uint64_t id = 0;  // identifies the keys without revealing anything about them
};

class KeySchedule {
 public:
  static constexpr std::size_t kSecretSizeMin = 32;
  // Errors: kInvalid for a job secret that is too short.
  static Result<KeySchedule> from_secret(ConstBytes job_secret);

  // Equal for processes with the same job secret; never 0.
  std::uint32_t fingerprint() const { return fingerprint_; }
  HelloTag hello_tag(ConstBytes hello) const;
  // The secret of epoch 0 for packets that `from` sends to `to`. Both ends compute the same value.
  Key traffic_secret(const SessionEnd& from, const SessionEnd& to) const;

 private:
  KeySchedule() = default;
  Key session_{}, hello_{};
  std::uint32_t fingerprint_ = 0;
};

TrafficKeys traffic_keys(const Key& traffic_secret);
Key next_traffic_secret(const Key& traffic_secret);

// Compares in constant time: the time does not depend on the content. False for different sizes.
bool is_equal_in_constant_time(ConstBytes a, ConstBytes b);

}  // namespace weft::seal
