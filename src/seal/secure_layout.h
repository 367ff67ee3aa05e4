// The layout of a sealed packet.
//
//   write:    header | counter 8 | header tag 8 | payload and padding, encrypted | tag 16
//   control:  header | counter 8 | tag 16
//
// Headers are in clear, so that switches can trim. There is no ICRC, because the tags cover the
// same bytes. A trimmed write keeps the part up to the header tag, which still proves the header
// authentic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/framing.h"
#include "wire/packet.h"

namespace weft::seal {

inline constexpr std::size_t kCounterSize = 8;
inline constexpr std::size_t kHeaderTagSize = 8;
inline constexpr std::size_t kPayloadTagSize = 16;
// The bytes that sealing adds to header, payload and padding.
inline constexpr std::size_t kSealedWriteExtra = kCounterSize + kHeaderTagSize + kPayloadTagSize;
inline constexpr std::size_t kSealedControlExtra = kCounterSize + kPayloadTagSize;
// The bytes behind the IP header that a trimming switch must keep of a sealed write: UDP, the
// longest header of a write, counter, header tag. If a switch keeps less, the packet counts as
// lost.
inline constexpr std::size_t kSealedTrimmedSizeAfterIp =
    wire::kUdpSize +
    wire::header_size({.opcode = wire::Opcode::kWriteOnlyImm, .has_timestamp = true}) +
    kCounterSize + kHeaderTagSize;
static_assert(kSealedTrimmedSizeAfterIp == 64);

struct SealedShape {
  std::size_t header_size = 0, payload_size = 0;
  bool is_write = true;
};
// The size of a sealed packet as UDP payload.
constexpr std::size_t sealed_size(SealedShape shape) {
  if (!shape.is_write) return shape.header_size + kSealedControlExtra;
  return shape.header_size + shape.payload_size + wire::pad_for(shape.payload_size) +
         kSealedWriteExtra;
}

// The properties of a path that limit the payload. `ip_size`: size of all IP headers, which is 20
// or 40, and 40 more for SRv6 with an outer header.
struct PathShape {
  std::size_t path_mtu = 1500, ip_size = 40;
  bool secured = false;
};
constexpr std::array<std::uint32_t, 3> kPayloads{4096, 2048, 1024};
// For write_size_max(): the UDP payload size of the largest packet with this payload.
struct WriteShape {
  std::uint32_t payload = kPayloads[0];
  bool secured = false;
};
constexpr std::size_t write_size_max(WriteShape shape) {
  constexpr std::size_t kHeader =
      wire::header_size({.opcode = wire::Opcode::kWriteOnlyImm, .has_timestamp = true});
  return kHeader + shape.payload + (shape.secured ? kSealedWriteExtra : wire::kIcrcSize);
}
constexpr std::uint32_t payload_that_fits(PathShape path) {
  for (const std::uint32_t payload : kPayloads) {
    const std::size_t size = write_size_max({.payload = payload, .secured = path.secured});
    if (path.ip_size + wire::kUdpSize + size <= path.path_mtu) return payload;
  }
  return 0;
}
static_assert(payload_that_fits({.path_mtu = 4200}) == 4096);
static_assert(payload_that_fits({.path_mtu = 4200, .secured = true}) == 2048);
static_assert(payload_that_fits({.path_mtu = 4200, .ip_size = 20, .secured = true}) == 4096);
static_assert(payload_that_fits({.path_mtu = 9000, .secured = true}) == 4096);
static_assert(payload_that_fits({.path_mtu = 1500, .secured = true}) == 1024);

}  // namespace weft::seal
