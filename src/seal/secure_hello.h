// The hello: a packet by which the two ends of a session exchange the random values that they drew.
// It is a UDP datagram between the same ports as MRC packets; its first byte is no opcode, which
// distinguishes it from them. A hello is not encrypted, but has a tag under a key from the job
// secret.
//
//   0 magic "WEFT"   4 version   5 flags   6 from.process   8 from.incarnation   16 from.qpn
//   20 to.qpn   24 to.incarnation   32 to.process   34 zero   36 drawn   52 echo   68 tag
#pragma once

#include <array>
#include <cstddef>

#include "base/bytes.h"
#include "base/result.h"
#include "seal/key_schedule.h"
#include "wire/drop_reason.h"

namespace weft::seal {

struct SecureHello {
  static constexpr std::size_t kSize = 84;
  static constexpr std::byte kFirstByte{0x57};
  using Packet = std::array<std::byte, kSize>;

  EndId from{}, to{};
  SessionRandom drawn{};     // the random value of this hello's sender
  SessionRandom echo{};      // the random value of this hello's receiver; zero: not known yet
  bool established = false;  // the sender has keys and needs no answer
  friend bool operator==(const SecureHello&, const SecureHello&) = default;

  Packet emit(const KeySchedule& keys) const;
};

// Errors: kTooShort, kBadHeader, kBadVersion, kForged (the tag does not match).
Result<SecureHello, DropReason> parse_hello(ConstBytes packet, const KeySchedule& keys);

// True if the first byte is that of a hello; nothing else is checked.
inline bool is_hello(ConstBytes datagram) {
  return !datagram.empty() && datagram[0] == SecureHello::kFirstByte;
}

}  // namespace weft::seal
