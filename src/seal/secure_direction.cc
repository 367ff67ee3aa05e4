#include "seal/secure_direction.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "seal/secure_layout.h"
#include "wire/layout.h"
#include "wire/packet.h"

namespace weft::seal {
namespace {

struct HeaderView {
  wire::Opcode opcode{};
  std::size_t size = 0;  // 0: the opcode is unknown
  std::size_t pad = 0;
};

// REQUIRES a complete BTH.
HeaderView view_header(ConstBytes packet) {
  const std::uint32_t word = base::load32(packet, wire::bth_at::kOpcodeWord);
  const std::uint32_t psn_word = base::load32(packet, wire::bth_at::kPsnWord);
  const auto opcode = static_cast<wire::Opcode>(word >> 24);
  return {.opcode = opcode,
          .size = wire::header_size(
              {.opcode = opcode, .has_timestamp = (psn_word & wire::bth_at::kTimestamp) != 0}),
          .pad = word >> wire::bth_at::kPadShift & 0x3};
}

}  // namespace

Nonce make_nonce(std::uint32_t ev, std::uint64_t counter) {
  Nonce nonce;
  base::store32(Bytes(nonce), 0, ev);
  base::store64(Bytes(nonce), 4, counter);
  return nonce;
}

// --- sending -----------------------------------------------------------------------------------

SendDirection::SendDirection(const Key& traffic_secret, std::uint32_t epoch_shift)
    : secret_(traffic_secret),
      counter_(epoch_shift),
      payload_(PacketCipher::Use::kSeal, Key{}),
      header_(PacketCipher::Use::kSeal, Key{}) {
  set_keys();
}

void SendDirection::set_keys() {
  const TrafficKeys keys = traffic_keys(secret_);
  payload_.set_key(keys.payload);
  header_.set_key(keys.header);
  key_id_ = keys.id;
}

std::size_t SendDirection::seal(const Packet& packet, Bytes out) {
  const SendCounter::Taken taken = counter_.take();
  if (taken.epoch != epoch_) {
    WEFT_ASSERT(taken.epoch == epoch_ + 1);
    epoch_ = taken.epoch;
    secret_ = next_traffic_secret(secret_);
    set_keys();
  }
  const Nonce nonce = make_nonce(packet.ev, taken.counter);
  const bool is_write = wire::is_write(static_cast<wire::Opcode>(packet.header[0]));
  const std::size_t size = sealed_size({.header_size = packet.header.size(),
                                        .payload_size = packet.payload.size(),
                                        .is_write = is_write});
  WEFT_ASSERT(size <= out.size() && (is_write || packet.payload.empty()));
  std::memcpy(out.data(), packet.header.data(), packet.header.size());
  out[wire::bth_at::kVariant] = std::byte{0};
  std::size_t at = packet.header.size();
  base::store64(out, at, taken.counter);
  at += kCounterSize;
  const std::size_t tag_size = is_write ? kHeaderTagSize : kPayloadTagSize;
  header_.seal(nonce, {.header = out.first(at)}, {}, out.subspan(at, tag_size));
  if (!is_write) return size;
  at += kHeaderTagSize;
  static constexpr std::array<std::byte, 3> kZeros{};
  const std::size_t pad = wire::pad_for(packet.payload.size());
  const std::size_t body = packet.payload.size() + pad;
  payload_.seal(nonce,
                {.header = out.first(at),
                 .payload = packet.payload,
                 .padding = ConstBytes(kZeros).first(pad)},
                out.subspan(at, body), out.subspan(at + body, kPayloadTagSize));
  return size;
}

// --- receiving ---------------------------------------------------------------------------------

ReceiveDirection::Epoch ReceiveDirection::make_epoch(std::uint64_t number, const Key& secret) {
  const TrafficKeys keys = traffic_keys(secret);
  return {.number = number,
          .key_id = keys.id,
          .payload = PacketCipher(PacketCipher::Use::kOpen, keys.payload),
          .header = PacketCipher(PacketCipher::Use::kOpen, keys.header)};
}

ReceiveDirection::ReceiveDirection(const Key& traffic_secret, std::uint32_t epoch_shift)
    : secret_(traffic_secret),
      epoch_shift_(epoch_shift),
      epochs_{make_epoch(0, traffic_secret), make_epoch(1, next_traffic_secret(traffic_secret))} {}

ReceiveDirection::Epoch* ReceiveDirection::find_epoch(std::uint64_t number) {
  if (of(number).number == number) return &of(number);
  if (number != epoch_ + 1) return nullptr;
  // The next epoch's keys replace the previous epoch's. A forged counter can cause this once per
  // epoch.
  of(number) = make_epoch(number, next_traffic_secret(secret_));
  return &of(number);
}

Result<ReceiveDirection::Opened, DropReason> ReceiveDirection::open(Bytes packet, Options options) {
  if (packet.size() < wire::bth_at::kSize) return DropReason::kTooShort;
  const HeaderView view = view_header(packet);
  if (view.size == 0) return DropReason::kBadOpcode;
  const bool is_write = wire::is_write(view.opcode);
  const bool trimmed = is_write && options.trimmed;
  const std::size_t front = view.size + kCounterSize;
  const std::size_t least = !is_write ? view.size + kSealedControlExtra
                            : trimmed ? front + kHeaderTagSize
                                      : view.size + kSealedWriteExtra;
  if (packet.size() < least) return DropReason::kTooShort;
  if (!is_write && packet.size() != least) return DropReason::kBadHeader;
  const std::uint64_t counter = base::load64(packet, view.size);
  if (!seen_.is_new(counter)) return DropReason::kReplayed;
  Epoch* const epoch = find_epoch(counter >> epoch_shift_);
  if (epoch == nullptr) return DropReason::kForged;
  const Nonce nonce = make_nonce(options.ev, counter);
  // Switches may change this byte, so no tag covers its value. No receiver reads it, and the ICRC
  // excludes it too.
  packet[wire::bth_at::kVariant] = std::byte{0};

  Opened opened{.header = packet.first(view.size)};
  bool genuine = false;
  if (!is_write || trimmed) {
    genuine = epoch->header.open(
        nonce, {.header = packet.first(front),
                .tag = packet.subspan(front, trimmed ? kHeaderTagSize : kPayloadTagSize)});
  } else {
    // The payload tag covers the header tag and all that the header tag covers.
    const std::size_t body_at = front + kHeaderTagSize;
    const Bytes body = packet.subspan(body_at, packet.size() - body_at - kPayloadTagSize);
    if (body.size() < view.pad) return DropReason::kBadHeader;
    genuine = epoch->payload.open(
        nonce,
        {.header = packet.first(body_at), .payload = body, .tag = packet.last(kPayloadTagSize)});
    opened.payload = body.first(body.size() - view.pad);
  }
  if (!genuine) return DropReason::kForged;
  seen_.take(counter);
  if (epoch->number > epoch_) {
    epoch_ = epoch->number;
    secret_ = next_traffic_secret(secret_);
  }
  return opened;
}

}  // namespace weft::seal
