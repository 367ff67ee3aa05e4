// Any format, fields and EV: the EV must be refused with one line, or expanded by the rules. A
// second implementation in this file computes the expansion on strings of '0' and '1'. EVs of
// generated profiles must stay in their ranges.
//
// The input, in order: mode, number of fields of the format and of the profile, count, ports;
// widths; fields of 17 bytes each; the EV. After the end of the input every byte is 0.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/prng.h"
#include "fabric/ev_profile.h"

namespace weft::fabric {
namespace {

class Input {
 public:
  explicit Input(ConstBytes bytes) : bytes_(bytes) {}
  std::uint8_t byte() {
    return at_ < bytes_.size() ? std::to_integer<std::uint8_t>(bytes_[at_++]) : std::uint8_t{0};
  }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  ConstBytes bytes_;
  std::size_t at_ = 0;
};

std::string bits_of(std::uint32_t value, std::uint32_t width) {
  std::string bits;
  for (std::uint32_t i = width; i-- > 0;) bits += (value >> i & 1) != 0 ? '1' : '0';
  return bits;
}

std::string bits_of(const EvBytes& bytes) {
  std::string bits;
  for (const std::byte b : bytes) bits += bits_of(std::to_integer<std::uint32_t>(b), 8);
  return bits;
}

// The second implementation: the bits that are '1' in each mask take the EV's bits in order. Empty
// if bits of the EV remain.
std::string expand_slowly(const EvFormat& format, const std::vector<EvField>& fields,
                          const std::string& ev) {
  std::string out;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::string value = bits_of(fields[i].init_val, format.widths[i]);
    const std::string mask = bits_of(fields[i].mask, format.widths[i]);
    for (std::size_t bit = 0; bit < value.size(); ++bit) {
      if (mask[bit] == '1') value[bit] = ev[taken++];
    }
    out += value;
  }
  if (ev.find('1', taken) != std::string::npos) return "";
  out.resize(kEvBits, '0');
  return out;
}

void check_message(const Error& error) {
  WEFT_ASSERT(!error.message.empty() && error.message.size() < 200);
  WEFT_ASSERT(error.message.find('\n') == std::string::npos);
}

void check_expansion(const EvFormat& format, const std::vector<EvField>& fields,
                     const EvBytes& ev) {
  const auto expansion = EvExpansion::make(format, fields);
  if (!expansion) return check_message(expansion.error());
  const std::string expected = expand_slowly(format, fields, bits_of(ev));
  const auto expanded = expansion->expand(ev);
  WEFT_ASSERT(expanded.has_value() == !expected.empty());
  if (!expanded) return check_message(expanded.error());
  WEFT_ASSERT(bits_of(*expanded) == expected);
}

void check_profile(const EvProfileSpec& spec) {
  Prng prng(1);
  const auto profile = EvProfile::make(spec, prng);
  if (!profile) return check_message(profile.error());
  WEFT_ASSERT(profile->count() == spec.count && profile->expanded().size() == spec.count);
  std::set<EvBytes> values;
  for (std::uint32_t i = 0; i < profile->count(); ++i) {
    WEFT_ASSERT((spec.port_mask >> profile->ev(i).port & 1) != 0);
    values.insert(profile->evs()[i].value);
  }
  WEFT_ASSERT(spec.mode == EvMode::kExplicit || values.size() == spec.count);
}

void check(ConstBytes bytes) {
  Input in(bytes);
  EvProfileSpec spec;
  spec.format.mode = static_cast<EvFormatMode>(in.byte() % 5);
  const std::size_t width_count = in.byte() % 12u, field_count = in.byte() % 12u;
  spec.count = in.byte();
  spec.min_active = spec.count / 4;
  spec.port_mask = in.byte();
  for (std::size_t i = 0; i < width_count; ++i) spec.format.widths.push_back(in.byte());
  for (std::size_t i = 0; i < field_count; ++i) {
    EvField field;
    field.width = in.byte();
    field.init_val = in.word();
    field.min = in.word();
    field.max = in.word();
    field.mask = in.word();
    spec.fields.push_back(field);
  }
  EvBytes ev{};
  for (std::byte& b : ev) b = std::byte{in.byte()};

  check_expansion(spec.format, spec.fields, ev);
  spec.mode = EvMode::kGenerated;
  check_profile(spec);
  spec.mode = EvMode::kAutomatic;
  check_profile(spec);
  spec.mode = EvMode::kExplicit;
  spec.evs.assign(spec.count, {ev, static_cast<std::uint8_t>(spec.port_mask % 8)});
  check_profile(spec);
}

}  // namespace
}  // namespace weft::fabric

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fabric::check({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
