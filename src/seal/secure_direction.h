// One direction of a session: SendDirection seals packets, ReceiveDirection opens them.
//
// Every packet sent takes the next value of a 64-bit counter, a retransmission too, and carries it.
// The nonce is the EV and the counter: the counter alone never repeats, and the EV is in it so that
// what a receiver echoes as the path of a packet is the path that it was sent by. Header and payload have
// keys of their own. After 2^epoch_shift packets the keys are replaced; which epoch a packet is of
// follows from its counter, so late packets of the last epoch are still understood.
//
// Nothing is allocated for a packet; new keys, every 2^31 packets, are.
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

// 2^31 packets a key: below 2^32, with room for a receiver that lags.
inline constexpr std::uint32_t kEpochShift = 31;

// The only source of nonces.
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
    ConstBytes payload{};  // of a write only
    std::uint32_t ev = 0;
  };
  // Writes the sealed packet to `out` and returns its size. REQUIRES a header of a known opcode with
  // the padding that the payload needs, and room: sealed_size().
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
  // Spans into the packet. A trimmed write has no payload.
  struct Opened {
    ConstBytes header{};
    ConstBytes payload{};
  };
  // Decrypts in place. Says kTooShort, kBadOpcode, kBadHeader, kReplayed, or kForged.
  Result<Opened, DropReason> open(Bytes packet, Options options);

  std::uint64_t key_id() const { return of(epoch_).key_id; }

 private:
  // The keys of two epochs that follow each other: this and the next, or this and the last.
  struct Epoch {
    std::uint64_t number = 0, key_id = 0;
    PacketCipher payload, header;
  };
  static Epoch make_epoch(std::uint64_t number, const Key& secret);
  Epoch& of(std::uint64_t number) { return epochs_[number % 2]; }
  const Epoch& of(std::uint64_t number) const { return epochs_[number % 2]; }
  // Null: neither this epoch, nor the next, nor the last.
  Epoch* find_epoch(std::uint64_t number);

  Key secret_;  // of epoch_
  std::uint32_t epoch_shift_;
  std::uint64_t epoch_ = 0;
  std::array<Epoch, 2> epochs_;
  ReplayWindow seen_;
};

}  // namespace weft::seal
