// EV formats and expansion: how the compact EV of the controller's API becomes bits on the wire.
//
// A format is the layout on the wire: a list of field widths. An EV profile says for each field
// which bits are fixed (init_val) and which come from the compact EV (mask). Compact and expanded
// EVs are byte strings in network order: bit 7 of byte 0 comes first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"

namespace weft::fabric {

inline constexpr std::size_t kEvBytes = 32;
inline constexpr std::uint32_t kEvBits = 8 * kEvBytes;

// An EV of the API, or its expansion. STEV uses the first 4 bytes, UDP the first 2, SRv6 the first
// 16 (destination address) and the next 16 (a one-segment SRH).
using EvBytes = std::array<std::byte, kEvBytes>;

// Converts between the 32 bits of a STEV and its first four bytes. The bytes are in network order
// on every machine.
EvBytes ev_bytes(std::uint32_t value);
std::uint32_t ev_first32(const EvBytes& ev);

// The packet fields that carry an expanded EV. The values are those of the API.
enum class EvFormatMode : std::uint8_t {
  kStev = 1,  // UDP source port and flow label: 32 bits
  kSrv6 = 2,  // destination address and SRH: 256 bits
  kUdp = 4,   // UDP source port: 16 bits
};
std::uint32_t bits_max(EvFormatMode mode);

struct EvFormat {
  EvFormatMode mode = EvFormatMode::kStev;
  std::vector<std::uint32_t> widths{};  // bits of each field, 1..32
};

// One field of an EV profile. A fixed field has mask = min = max = 0. Generated EVs draw the masked
// bits from min..max; min = max = 0 with a mask stands for the full range.
struct EvField {
  std::uint32_t width = 0;  // bits, 1..32
  std::uint32_t init_val = 0;
  std::uint32_t min = 0, max = 0;
  std::uint32_t mask = 0;
  friend bool operator==(const EvField&, const EvField&) = default;
};

// One field for each field of the format, with all bits taken from the EV. An explicit profile
// without fields means these.
std::vector<EvField> free_fields(const EvFormat& format);

// A format and matching profile fields. An immutable value.
class EvExpansion {
 public:
  // The error names the invalid field and the rule that it violates.
  static Result<EvExpansion> make(EvFormat format, std::vector<EvField> fields);

  const EvFormat& format() const { return format_; }
  const std::vector<EvField>& fields() const { return fields_; }
  // The number of bits that are taken from an EV: the bits of all masks together.
  std::uint32_t compact_bits() const { return compact_bits_; }

  // The bits on the wire. An error if the EV has a bit set after the first compact_bits().
  Result<EvBytes> expand(const EvBytes& ev) const;
  // The EV whose masked bits in each field form these numbers. REQUIRES one number per field, below
  // 2^popcount(mask).
  EvBytes compact(const std::vector<std::uint32_t>& field_values) const;

 private:
  EvExpansion() = default;
  EvFormat format_;
  std::vector<EvField> fields_;
  std::uint32_t compact_bits_ = 0;
};

}  // namespace weft::fabric
