// EV formats and expansion: how the compact EV of the controller's API
// becomes bits on the wire.
//
// A format is the layout on the wire: a list of field widths. An EV profile says for each field
// which of its bits are fixed (init_val) and which are taken from the EV (mask). Both are byte
// strings in network order: bit 7 of byte 0 first.
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

// The 32 bits of a STEV as its first four bytes, and back: no EV is ever copied through a host's
// byte order.
EvBytes ev_bytes(std::uint32_t value);
std::uint32_t ev_first32(const EvBytes& ev);

// Where an expanded EV goes. The values are the API's.
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

// One field of an EV profile. Fixed: mask = min = max = 0. Generated EVs draw the masked bits from
// min..max; (0, 0) with a mask stands for the full range.
struct EvField {
  std::uint32_t width = 0;  // bits, 1..32
  std::uint32_t init_val = 0;
  std::uint32_t min = 0, max = 0;
  std::uint32_t mask = 0;
  friend bool operator==(const EvField&, const EvField&) = default;
};

// One field for each of the format's, all of its bits taken from the EV: what an explicit profile
// without fields means.
std::vector<EvField> free_fields(const EvFormat& format);

// A format and the fields of a profile that fit each other. A value; immutable.
class EvExpansion {
 public:
  // The error says which field breaks which rule.
  static Result<EvExpansion> make(EvFormat format, std::vector<EvField> fields);

  const EvFormat& format() const { return format_; }
  const std::vector<EvField>& fields() const { return fields_; }
  // How many bits of an EV are used: those of all masks.
  std::uint32_t compact_bits() const { return compact_bits_; }

  // The bits on the wire. An error if the EV has a bit set behind the first compact_bits().
  Result<EvBytes> expand(const EvBytes& ev) const;
  // The EV whose masked bits are, field by field, these numbers. REQUIRES one for each field, below
  // 2^popcount(mask).
  EvBytes compact(const std::vector<std::uint32_t>& field_values) const;

 private:
  EvExpansion() = default;
  EvFormat format_;
  std::vector<EvField> fields_;
  std::uint32_t compact_bits_ = 0;
};

}  // namespace weft::fabric
