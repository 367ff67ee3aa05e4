#include "seal/secure_hello.h"

#include <algorithm>

#include "wire/packet.h"

namespace weft::seal {
namespace {

namespace hello_at {
constexpr std::size_t kMagic = 0, kVersion = 4, kFlags = 5, kFromProcess = 6, kFromIncarnation = 8,
                      kFromQpn = 16, kToQpn = 20, kToIncarnation = 24, kToProcess = 32, kZero = 34,
                      kDrawn = 36, kEcho = 52, kTag = 68;
}  // namespace hello_at

constexpr std::uint32_t kMagic = 0x5745'4654;  // "WEFT"
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kEstablished = 1;

static_assert(hello_at::kTag + std::tuple_size_v<HelloTag> == SecureHello::kSize);
static_assert(wire::header_size({.opcode = wire::Opcode{kMagic >> 24}}) == 0, "not an opcode");

SessionRandom load_random(ConstBytes in, std::size_t at) {
  SessionRandom out;
  std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
  return out;
}

}  // namespace

SecureHello::Packet SecureHello::emit(const KeySchedule& keys) const {
  Packet packet{};
  const Bytes out(packet);
  base::store32(out, hello_at::kMagic, kMagic);
  base::store8(out, hello_at::kVersion, kVersion);
  base::store8(out, hello_at::kFlags, established ? kEstablished : 0);
  base::store16(out, hello_at::kFromProcess, from.process);
  base::store64(out, hello_at::kFromIncarnation, from.incarnation);
  base::store32(out, hello_at::kFromQpn, from.qpn);
  base::store32(out, hello_at::kToQpn, to.qpn);
  base::store64(out, hello_at::kToIncarnation, to.incarnation);
  base::store16(out, hello_at::kToProcess, to.process);
  std::copy(drawn.begin(), drawn.end(), packet.begin() + hello_at::kDrawn);
  std::copy(echo.begin(), echo.end(), packet.begin() + hello_at::kEcho);
  const HelloTag tag = keys.hello_tag(ConstBytes(packet).first(hello_at::kTag));
  std::copy(tag.begin(), tag.end(), packet.begin() + hello_at::kTag);
  return packet;
}

Result<SecureHello, DropReason> parse_hello(ConstBytes packet, const KeySchedule& keys) {
  if (packet.size() < SecureHello::kSize) return DropReason::kTooShort;
  if (packet.size() != SecureHello::kSize || base::load32(packet, hello_at::kMagic) != kMagic)
    return DropReason::kBadHeader;
  if (base::load8(packet, hello_at::kVersion) != kVersion) return DropReason::kBadVersion;
  const HelloTag tag = keys.hello_tag(packet.first(hello_at::kTag));
  if (!is_equal_in_constant_time(packet.subspan(hello_at::kTag), tag)) return DropReason::kForged;
  const std::uint8_t flags = base::load8(packet, hello_at::kFlags);
  if (flags > kEstablished || base::load16(packet, hello_at::kZero) != 0)
    return DropReason::kBadHeader;
  return SecureHello{.from = {.incarnation = base::load64(packet, hello_at::kFromIncarnation),
                              .process = base::load16(packet, hello_at::kFromProcess),
                              .qpn = base::load32(packet, hello_at::kFromQpn)},
                     .to = {.incarnation = base::load64(packet, hello_at::kToIncarnation),
                            .process = base::load16(packet, hello_at::kToProcess),
                            .qpn = base::load32(packet, hello_at::kToQpn)},
                     .drawn = load_random(packet, hello_at::kDrawn),
                     .echo = load_random(packet, hello_at::kEcho),
                     .established = flags == kEstablished};
}

}  // namespace weft::seal
