#include "capture_reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "fabric/address.h"
#include "seal/secure_direction.h"
#include "seal/secure_hello.h"
#include "seal/secure_layout.h"
#include "wire/layout.h"

namespace weft::hostile {

std::uint64_t CaptureReader::least_sealed() const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& [process, count] : sealed_by_) least = std::min(least, count);
  return least;
}

std::size_t CaptureReader::key_count() const {
  return static_cast<std::size_t>(
      std::count_if(directions_.begin(), directions_.end(),
                    [](const auto& d) { return !d.second.counters.empty(); }));
}

void CaptureReader::take_hello(ConstBytes packet) {
  const auto hello = seal::parse_hello(packet, keys_);
  if (!hello) {
    ++unattributed_;
    return;
  }
  // The first hello of a session: its sender does not know the receiver's random value yet.
  if (hello->echo == seal::SessionRandom{}) return;
  const seal::SessionEnd from{.id = hello->from, .random = hello->drawn};
  const seal::SessionEnd to{.id = hello->to, .random = hello->echo};
  add(from, to);
  add(to, from);
}

void CaptureReader::add(const seal::SessionEnd& from, const seal::SessionEnd& to) {
  const seal::TrafficKeys keys = seal::traffic_keys(keys_.traffic_secret(from, to));
  directions_.try_emplace(
      keys.payload,
      Direction{.from = from.id,
                .to = to.id,
                .payload = seal::PacketCipher(seal::PacketCipher::Use::kOpen, keys.payload),
                .header = seal::PacketCipher(seal::PacketCipher::Use::kOpen, keys.header)});
}

// Whether both tags of a write are valid (a control packet has one). Header and payload have
// separate keys and share the nonce.
bool CaptureReader::opens(Direction& direction, const PacketShape& shape, const seal::Nonce& nonce,
                          std::vector<std::byte> packet) {
  packet[wire::bth_at::kVariant] = std::byte{0};
  const Bytes all(packet);
  const std::size_t front = shape.header_size + seal::kCounterSize;
  const std::size_t tag = shape.is_write ? seal::kHeaderTagSize : seal::kPayloadTagSize;
  if (!direction.header.open(nonce, {.header = all.first(front), .tag = all.subspan(front, tag)}))
    return false;
  if (!shape.is_write) return true;
  const std::size_t body = front + tag;
  return direction.payload.open(
      nonce, {.header = all.first(body),
              .payload = all.subspan(body, all.size() - body - seal::kPayloadTagSize),
              .tag = all.last(seal::kPayloadTagSize)});
}

void CaptureReader::take(const PacketTap::Seen& packet) {
  const ConstBytes in(packet.bytes);
  if (seal::is_hello(in)) return take_hello(in);
  PacketShape shape;
  if (in.size() >= wire::bth_at::kSize) {
    const auto opcode = static_cast<wire::Opcode>(in[0]);
    const std::uint32_t psn_word = base::load32(in, wire::bth_at::kPsnWord);
    shape = {.header_size = wire::header_size(
                 {.opcode = opcode, .has_timestamp = (psn_word & wire::bth_at::kTimestamp) != 0}),
             .is_write = wire::is_write(opcode),
             .dest_qpn = base::load32(in, wire::bth_at::kQpnWord) & wire::kQpnMask};
  }
  const std::size_t extra = shape.is_write ? seal::kSealedWriteExtra : seal::kSealedControlExtra;
  if (shape.header_size == 0 || in.size() < shape.header_size + extra) {
    ++unattributed_;
    return;
  }
  const std::uint64_t counter = base::load64(in, shape.header_size);
  // In these tests the EV is the source port.
  const seal::Nonce nonce = seal::make_nonce(
      fabric::entropy_of_fields({.source_port = packet.from_port, .flow_label = 0}), counter);
  for (auto& [key, direction] : directions_) {
    if (direction.from.process != wire::process_of(packet.from_port) ||
        wire::listen_port(direction.to.process) != packet.to_port ||
        direction.to.qpn != shape.dest_qpn)
      continue;
    if (!opens(direction, shape, nonce, packet.bytes)) continue;
    ++attributed_;
    ++sealed_by_[{direction.from.process, direction.from.incarnation}];
    const bool new_counter = direction.counters.insert(counter).second;
    const bool new_nonce = direction.nonces.insert(nonce).second;
    if (!new_counter || !new_nonce) {
      repeated_.push_back(fmt::format("slot {} to slot {}, QP {:#x}: counter {} again{}",
                                      direction.from.process, direction.to.process,
                                      direction.to.qpn, counter,
                                      new_nonce ? " on another EV" : ", the whole nonce"));
    }
    return;
  }
  ++unattributed_;
}

}  // namespace weft::hostile
