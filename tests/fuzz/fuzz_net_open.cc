// An end with a job secret receives any bytes. It may accept a packet only if the other end sealed
// it, and then must deliver the same contents. The first byte of the input selects what the rest
// is. 0: a whole packet. 1: a trimmed packet. Otherwise: changes to a genuine packet, as pairs of a
// position and a value.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "seal/secure_layout.h"
#include "seal/secure_session.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

constexpr std::uint32_t kEv = 15'104;

struct Genuine {
  std::vector<std::byte> header, payload, sealed;
};

struct Pair {
  seal::Key secret{};
  std::vector<Genuine> packets;

  Pair() {
    const std::vector<std::byte> job_secret(seal::KeySchedule::kSecretSizeMin, std::byte{7});
    const seal::KeySchedule keys = seal::KeySchedule::from_secret(job_secret).value();
    secret = keys.traffic_secret({.id = {.incarnation = 1}}, {.id = {.incarnation = 2}});
    seal::SendDirection out(secret, seal::kEpochShift);
    for (const std::size_t size : {0u, 5u, 64u}) {
      Genuine g;
      g.payload.assign(size, std::byte{0x5a});
      g.header.resize(wire::kHeaderSizeMax);
      g.header.resize(wire::emit({.opcode = wire::Opcode::kWriteOnlyImm,
                                  .pad = wire::pad_for(size),
                                  .dest_qpn = 0x123,
                                  .psn = Psn(9)},
                                 wire::Write{.va = 0x1000, .rkey = 5}, g.header));
      packets.push_back(std::move(g));
    }
    Genuine nack;
    nack.header.resize(wire::kHeaderSizeMax);
    nack.header.resize(
        wire::emit({.opcode = wire::Opcode::kNack, .dest_qpn = 0x123}, wire::Nack{}, nack.header));
    packets.push_back(std::move(nack));
    for (Genuine& g : packets) {
      g.sealed.resize(300);
      g.sealed.resize(out.seal({.header = g.header, .payload = g.payload, .ev = kEv}, g.sealed));
    }
  }
};

bool is_same(ConstBytes a, ConstBytes b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void check(const Pair& pair, std::vector<std::byte> packet, bool trimmed) {
  seal::ReceiveDirection in(pair.secret, seal::kEpochShift);
  const auto opened = in.open(packet, {.ev = kEv, .trimmed = trimmed});
  if (!opened) {
    WEFT_ASSERT(to_string(opened.error()) != "unknown");
    return;
  }
  const bool known = std::any_of(pair.packets.begin(), pair.packets.end(), [&](const Genuine& g) {
    const bool cut = trimmed && !g.payload.empty() && opened->payload.empty();
    return is_same(opened->header, g.header) && (cut || is_same(opened->payload, g.payload));
  });
  WEFT_ASSERT(known);
}

}  // namespace
}  // namespace weft::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::net;
  static const Pair pair;
  if (size == 0) return 0;
  const std::uint8_t kind = data[0];
  if (kind < 2) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    check(pair, {bytes + 1, bytes + size}, kind == 1);
    return 0;
  }
  std::vector<std::byte> packet = pair.packets[kind / 2 % pair.packets.size()].sealed;
  for (std::size_t at = 1; at + 1 < size; at += 2)
    packet[data[at] % packet.size()] ^= static_cast<std::byte>(data[at + 1]);
  if (size % 2 == 0) packet.resize(std::min<std::size_t>(packet.size(), data[size - 1]));
  check(pair, std::move(packet), kind % 2 == 1);
  return 0;
}
