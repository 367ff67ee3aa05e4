#include "fabric/ev_format.h"

#include <bit>
#include <string>
#include <utility>

#include "base/bytes.h"

namespace weft::fabric {
namespace {

Error invalid(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }

std::uint32_t ones(std::uint32_t mask) { return static_cast<std::uint32_t>(std::popcount(mask)); }

// REQUIRES width <= 32. Shifts 64 bits, because a shift of a 32-bit value by 32 is undefined.
bool fits(std::uint32_t value, std::uint32_t width) { return std::uint64_t{value} >> width == 0; }

// Reads the bits of an EV, the most significant first.
class BitReader {
 public:
  explicit BitReader(const EvBytes& from) : from_(from) {}
  std::uint32_t take(std::uint32_t count) {
    std::uint32_t value = 0;
    for (; count > 0; --count, ++at_) {
      const auto byte = std::to_integer<std::uint32_t>(from_[at_ / 8]);
      value = value << 1 | (byte >> (7 - at_ % 8) & 1);
    }
    return value;
  }
  bool is_rest_zero() {
    while (at_ < kEvBits) {
      if (take(1) != 0) return false;
    }
    return true;
  }

 private:
  const EvBytes& from_;
  std::size_t at_ = 0;
};

class BitWriter {
 public:
  void put(std::uint32_t value, std::uint32_t count) {
    for (; count > 0; --count, ++at_) {
      const std::uint32_t bit = value >> (count - 1) & 1;
      out_[at_ / 8] |= static_cast<std::byte>(bit << (7 - at_ % 8));
    }
  }
  const EvBytes& bytes() const { return out_; }

 private:
  EvBytes out_{};
  std::size_t at_ = 0;
};

// Spreads the bits of `value` over the set bits of `mask`, in the same order.
std::uint32_t scatter(std::uint32_t value, std::uint32_t mask) {
  std::uint32_t out = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1, value >>= 1) {
    out |= (value & 1) << std::countr_zero(left);  // the lowest bit first
  }
  return out;
}

Result<void> check_format(const EvFormat& format) {
  if (format.mode != EvFormatMode::kStev && format.mode != EvFormatMode::kSrv6 &&
      format.mode != EvFormatMode::kUdp) {
    return invalid("EV format: unknown mode " + std::to_string(static_cast<unsigned>(format.mode)));
  }
  if (format.widths.empty()) return invalid("EV format: it has no fields");
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < format.widths.size(); ++i) {
    const std::uint32_t width = format.widths[i];
    if (width == 0 || width > 32) {
      return invalid("EV format field " + std::to_string(i) + ": width " + std::to_string(width) +
                     " is not in 1..32");
    }
    total += width;
  }
  if (total > bits_max(format.mode)) {
    return invalid("EV format: " + std::to_string(total) + " bits, but this mode carries " +
                   std::to_string(bits_max(format.mode)));
  }
  return {};
}

// Checks one field of a profile against the width of the field in the format.
Result<void> check_field(const EvField& field, std::uint32_t format_width, std::size_t index) {
  const auto wrong = [index](const std::string& what) {
    return invalid("EV field " + std::to_string(index) + ": " + what);
  };
  if (field.width == 0 || field.width > 32) {
    return wrong("width " + std::to_string(field.width) + " is not in 1..32");
  }
  if (field.width > format_width) {
    return wrong("width " + std::to_string(field.width) + " is more than the format's " +
                 std::to_string(format_width));
  }
  if (!fits(field.init_val, field.width)) {
    return wrong("init_val " + std::to_string(field.init_val) + " needs more than " +
                 std::to_string(field.width) + " bits");
  }
  if (!fits(field.mask, field.width)) {
    return wrong("mask has bits beyond width " + std::to_string(field.width));
  }
  if (field.mask != 0 && !fits(field.max, ones(field.mask))) {
    return wrong("max " + std::to_string(field.max) + " needs more than the mask's " +
                 std::to_string(ones(field.mask)) + " bits");
  }
  if (field.min > field.max) {
    return wrong("min " + std::to_string(field.min) + " is more than max " +
                 std::to_string(field.max));
  }
  return {};
}

}  // namespace

EvBytes ev_bytes(std::uint32_t value) {
  EvBytes bytes{};
  base::store32(bytes, 0, value);
  return bytes;
}

std::uint32_t ev_first32(const EvBytes& ev) { return base::load32(ev, 0); }

std::uint32_t bits_max(EvFormatMode mode) {
  switch (mode) {
    case EvFormatMode::kStev:
      return 32;
    case EvFormatMode::kSrv6:
      return kEvBits;
    case EvFormatMode::kUdp:
      return 16;
  }
  return 0;
}

std::vector<EvField> free_fields(const EvFormat& format) {
  std::vector<EvField> fields;
  for (const std::uint32_t width : format.widths) {
    // A width above 32 is not an error here: EvExpansion::make refuses it.
    const std::uint32_t mask = width < 32 ? (1u << width) - 1 : 0xffff'ffff;
    fields.push_back({.width = width, .mask = mask});
  }
  return fields;
}

Result<EvExpansion> EvExpansion::make(EvFormat format, std::vector<EvField> fields) {
  WEFT_CHECK(check_format(format));
  // No total to check: with no more fields than the format, none of them wider, the sum of widths
  // cannot exceed that of the format.
  if (fields.size() > format.widths.size()) {
    return invalid("EV profile: " + std::to_string(fields.size()) + " fields, but the format has " +
                   std::to_string(format.widths.size()));
  }
  EvExpansion expansion;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    WEFT_CHECK(check_field(fields[i], format.widths[i], i));
    expansion.compact_bits_ += ones(fields[i].mask);
  }
  expansion.format_ = std::move(format);
  expansion.fields_ = std::move(fields);
  return expansion;
}

Result<EvBytes> EvExpansion::expand(const EvBytes& ev) const {
  BitReader in(ev);
  BitWriter out;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const EvField& field = fields_[i];
    const std::uint32_t taken = scatter(in.take(ones(field.mask)), field.mask);
    out.put((field.init_val & ~field.mask) | taken, format_.widths[i]);
  }
  if (!in.is_rest_zero()) {
    return invalid("EV: a bit is set beyond the " + std::to_string(compact_bits_) +
                   " that the profile uses");
  }
  return out.bytes();
}

EvBytes EvExpansion::compact(const std::vector<std::uint32_t>& field_values) const {
  WEFT_ASSERT(field_values.size() == fields_.size());
  BitWriter out;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    WEFT_ASSERT(fits(field_values[i], ones(fields_[i].mask)));
    out.put(field_values[i], ones(fields_[i].mask));
  }
  return out.bytes();
}

}  // namespace weft::fabric
