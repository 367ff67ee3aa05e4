// The descriptions of groups and regions that two ends of LibRdma exchange, as bytes. Values only;
// a peer's bytes are not trusted until parsed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace weft::mrclib {

// The largest QP number and PSN.
inline constexpr std::uint32_t kMax24 = 0xff'ffff;

// A group of QPs, all of one device.
struct GroupDescription {
  struct Qp {
    std::uint32_t qpn = 0, first_psn = 0;  // 24 bits
    friend bool operator==(const Qp&, const Qp&) = default;
  };
  std::uint32_t mtu = 4096;  // payload of a packet: 256, 512, 1024, 2048 or 4096
  // Bounds of the sender as responder. 0: the peer leaves this to the defaults of its own library.
  std::uint16_t immediates_max = 0;
  std::uint8_t mpr = 0;             // MPR, in units of 128 PSNs
  std::array<std::byte, 16> gid{};  // of the device
  std::vector<Qp> qps;              // at least one
  friend bool operator==(const GroupDescription&, const GroupDescription&) = default;

  static constexpr std::size_t kHeadSize = 32, kQpSize = 8;
  static constexpr std::size_t size_of(std::size_t qps) { return kHeadSize + qps * kQpSize; }
  std::vector<std::byte> to_bytes() const;
  // Errors: kInvalid, with a one-line message that says what is wrong.
  static Result<GroupDescription> from_bytes(ConstBytes bytes);
};

struct RegionDescription {
  std::uint64_t at = 0, size = 0;
  std::uint32_t rkey = 0;
  friend bool operator==(const RegionDescription&, const RegionDescription&) = default;

  static constexpr std::size_t kSize = 28;
  std::vector<std::byte> to_bytes() const;
  // Errors: kInvalid, with a one-line message that says what is wrong.
  static Result<RegionDescription> from_bytes(ConstBytes bytes);
};

}  // namespace weft::mrclib
