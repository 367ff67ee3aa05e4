// One direction of a session: SendDirection seals packets, ReceiveDirection opens them.
//
// Every packet that is sent, also a retransmission, carries the next value of a 64-bit counter. The
// nonce is the EV and the counter. The counter alone never repeats. The EV is included so that the
// receiver echoes the EV that the packet was really sent with. Header and payload have keys of
// their own. After 2^epoch_shift packets the keys are replaced. The counter of a packet tells its
// epoch, so late packets of the previous epoch can still be opened.
//
// No packet causes an allocation, except that new keys are allocated every 2^31 packets.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "seal/key_schedule.h"
#include "seal/packet_cipher.h"
#include "seal/replay_window.h"
#include "wire/drop_reason.h"

namespace weft::seal {

// 2^31 packets per key. This is below the limit of 2^32, with a margin for a receiver that lags
// behind.
inline constexpr std::uint32_t kEpochShift = 31;

// The only source of the counters of a direction, and so of its nonces.
class SendCounter {
 public:
  explicit SendCounter(std::uint32_t epoch_shift) : epoch_shift_(epoch_shift) {}
  struct Taken {
    std::uint64_t counter = 0, epoch = 0;
  };
  Taken take() {
    const std::uint64_t counter = next_++;
    return {.counter = counter, .epoch = counter >> epoch_shift_};
  }

 private:
  std::uint32_t epoch_shift_;
  std::uint64_t next_ = 0;
};

Nonce make_nonce(std::uint32_t ev, std::uint64_t counter);

class SendDirection {
 public:
  SendDirection(const Key& traffic_secret, std::uint32_t epoch_shift);

  struct Packet {
    ConstBytes header{};
    ConstBytes payload{};  // empty except in a write
    std::uint32_t ev = 0;
  };
  // Writes the sealed packet to `out` and returns its size. REQUIRES a header of a known opcode
  // with the padding that the payload needs, and an `out` of at least sealed_size().
  std::size_t seal(const Packet& packet, Bytes out);

  std::uint64_t key_id() const { return key_id_; }

 private:
  void set_keys();

  Key secret_;
  std::uint64_t epoch_ = 0, key_id_ = 0;
  SendCounter counter_;
  PacketCipher payload_, header_;
};

class ReceiveDirection {
 public:
  ReceiveDirection(const Key& traffic_secret, std::uint32_t epoch_shift);

  struct Options {
    std::uint32_t ev = 0;
    bool trimmed = false;
  };
  // Header and payload lie in the packet. A trimmed write has no payload.
  struct Opened {
    ConstBytes header{};
    ConstBytes payload{};
  };
  // Verifies a packet and decrypts it in place. Errors: kTooShort, kBadOpcode, kBadHeader,
  // kReplayed, kForged.
  Result<Opened, DropReason> open(Bytes packet, Options options);

  std::uint64_t key_id() const { return of(epoch_).key_id; }

 private:
  // The keys of two consecutive epochs: the current and the next, or the current and the previous.
  struct Epoch {
    std::uint64_t number = 0, key_id = 0;
    PacketCipher payload, header;
  };
  static Epoch make_epoch(std::uint64_t number, const Key& secret);
  Epoch& of(std::uint64_t number) { return epochs_[number % 2]; }
  const Epoch& of(std::uint64_t number) const { return epochs_[number % 2]; }
  // The keys of an epoch. Null unless it is the current, the next or the previous epoch.
  Epoch* find_epoch(std::uint64_t number);

  Key secret_;  // the secret of epoch_
  std::uint32_t epoch_shift_;
  std::uint64_t epoch_ = 0;
  std::array<Epoch, 2> epochs_;
  ReplayWindow seen_;
};

}  // namespace weft::seal
