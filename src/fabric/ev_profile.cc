#include "fabric/ev_profile.h"

#include <bit>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace weft::fabric {
namespace {

Error invalid(const std::string& message) {
  return {ErrorKind::kInvalid, "EV profile: " + message};
}

Result<void> check_spec(const EvProfileSpec& spec) {
  if (spec.mode != EvMode::kAutomatic && spec.mode != EvMode::kExplicit &&
      spec.mode != EvMode::kGenerated) {
    return invalid("unknown mode " + std::to_string(static_cast<unsigned>(spec.mode)));
  }
  if (spec.count == 0 || spec.count > kEvCountMax) {
    return invalid("count " + std::to_string(spec.count) + " is not in 1.." +
                   std::to_string(kEvCountMax));
  }
  if (spec.min_active > spec.count) {
    return invalid("min_active " + std::to_string(spec.min_active) + " is more than count " +
                   std::to_string(spec.count));
  }
  if (spec.port_mask == 0) return invalid("port_mask has no port");
  if (spec.mode == EvMode::kExplicit) {
    if (spec.evs.size() != spec.count) {
      return invalid(std::to_string(spec.evs.size()) + " EVs are given, count says " +
                     std::to_string(spec.count));
    }
  } else if (!spec.evs.empty()) {
    return invalid("EVs are given, but only an explicit profile takes them");
  }
  return {};
}

Result<void> check_automatic(const EvProfileSpec& spec) {
  if (spec.format.mode == EvFormatMode::kSrv6) {
    return invalid(
        "automatic EVs are for fabrics that hash; SRv6 needs explicit or generated ones");
  }
  if (!spec.fields.empty() || !spec.format.widths.empty()) {
    return invalid("an automatic profile has no fields");
  }
  const auto ports = static_cast<std::uint32_t>(std::popcount(spec.port_mask));
  if (spec.count % ports != 0) {
    return invalid("count " + std::to_string(spec.count) + " does not divide evenly over " +
                   std::to_string(ports) + " ports");
  }
  return {};
}

// The numbers that a field's masked bits may take.
struct Range {
  std::uint32_t min = 0;
  std::uint64_t size = 1;  // 1..2^32
};

Range range_of(const EvField& field) {
  if (field.mask == 0) return {};
  if (field.min == 0 && field.max == 0) return {0, std::uint64_t{1} << std::popcount(field.mask)};
  return {field.min, std::uint64_t{field.max} - field.min + 1};
}

// The number of EVs that the ranges allow, at most kEvCountMax * 2 + 1.
std::uint32_t combinations(const std::vector<Range>& ranges) {
  constexpr std::uint64_t kMany = std::uint64_t{kEvCountMax} * 2 + 1;
  std::uint64_t product = 1;
  for (const Range& range : ranges) {
    if (range.size >= kMany) return kMany;
    product *= range.size;  // both below 2^18
    if (product >= kMany) return kMany;
  }
  return static_cast<std::uint32_t>(product);
}

// Combination number `index`; the last field changes fastest. REQUIRES index <
// combinations(ranges).
std::vector<std::uint32_t> combination(const std::vector<Range>& ranges, std::uint32_t index) {
  std::vector<std::uint32_t> values(ranges.size());
  for (std::size_t i = ranges.size(); i-- > 0;) {
    const auto size = static_cast<std::uint32_t>(ranges[i].size);
    values[i] = ranges[i].min + index % size;
    index /= size;
  }
  return values;
}

std::vector<std::uint32_t> draw_combination(const std::vector<Range>& ranges, Prng& prng) {
  std::vector<std::uint32_t> values;
  for (const Range& range : ranges) {
    // Multiplying the upper 32 bits of a draw scales it to the range. range.size is at most 2^32,
    // so the product fits into 64 bits.
    const std::uint64_t offset = (prng.next() >> 32) * range.size >> 32;
    values.push_back(static_cast<std::uint32_t>(range.min + offset));
  }
  return values;
}

// Draws `count` different EVs. If at most twice as many exist, it shuffles all of them. Otherwise
// it draws until a value is new, which takes less than two draws on average.
std::vector<EvBytes> draw_values(const EvExpansion& expansion, const std::vector<Range>& ranges,
                                 std::uint32_t count, Prng& prng) {
  std::vector<EvBytes> values;
  values.reserve(count);
  const std::uint32_t total = combinations(ranges);
  if (total <= 2 * count) {
    std::vector<std::uint32_t> order(total);
    std::iota(order.begin(), order.end(), 0u);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::swap(order[i], order[i + prng.below(total - i)]);
      values.push_back(expansion.compact(combination(ranges, order[i])));
    }
    return values;
  }
  std::set<EvBytes> seen;
  while (values.size() < count) {
    const EvBytes value = expansion.compact(draw_combination(ranges, prng));
    if (seen.insert(value).second) values.push_back(value);
  }
  return values;
}

Result<std::vector<ProfileEv>> generate(const EvExpansion& expansion, std::uint32_t count,
                                        std::uint8_t port_mask, Prng& prng) {
  std::vector<Range> ranges;
  for (const EvField& field : expansion.fields()) ranges.push_back(range_of(field));
  if (count > combinations(ranges)) {
    return invalid("count " + std::to_string(count) + " is more than the " +
                   std::to_string(combinations(ranges)) + " EVs that the fields' ranges allow");
  }
  std::vector<ProfileEv> evs;
  evs.reserve(count);
  unsigned ports_left = port_mask;
  for (const EvBytes& value : draw_values(expansion, ranges, count, prng)) {
    if (ports_left == 0) ports_left = port_mask;
    evs.push_back({value, static_cast<std::uint8_t>(std::countr_zero(ports_left))});
    ports_left &= ports_left - 1;
  }
  return evs;
}

Result<void> check_port(const ProfileEv& ev, std::uint8_t port_mask, std::size_t index) {
  if (ev.port < 8 && (port_mask >> ev.port & 1) != 0) return {};
  return invalid("EV " + std::to_string(index) + " is on port " + std::to_string(ev.port) +
                 ", which port_mask does not allow");
}

}  // namespace

Result<EvProfile> EvProfile::make(EvProfileSpec spec, Prng& prng) {
  WEFT_CHECK(check_spec(spec));
  if (spec.mode == EvMode::kAutomatic) {
    WEFT_CHECK(check_automatic(spec));
    spec.format.widths = {bits_max(spec.format.mode)};
  }
  if (spec.fields.empty()) {
    if (spec.mode == EvMode::kGenerated) {
      return invalid("a generated profile needs fields to generate from");
    }
    spec.fields = free_fields(spec.format);
  }
  WEFT_TRY(const EvExpansion expansion,
           EvExpansion::make(std::move(spec.format), std::move(spec.fields)));

  EvProfile profile;
  profile.mode_ = spec.mode;
  profile.format_mode_ = expansion.format().mode;
  profile.min_active_ = spec.min_active;
  if (spec.mode == EvMode::kExplicit) {
    profile.evs_ = std::move(spec.evs);
  } else {
    WEFT_TRY(profile.evs_, generate(expansion, spec.count, spec.port_mask, prng));
  }
  for (std::size_t i = 0; i < profile.evs_.size(); ++i) {
    WEFT_CHECK(check_port(profile.evs_[i], spec.port_mask, i));
    const Result<EvBytes> expanded = expansion.expand(profile.evs_[i].value);
    if (!expanded) return invalid("entry " + std::to_string(i) + ": " + expanded.error().message);
    profile.expanded_.push_back(*expanded);
  }
  return profile;
}

Ev EvProfile::ev(std::uint32_t index) const {
  WEFT_ASSERT(index < count());
  const std::uint8_t port = evs_[index].port;
  switch (format_mode_) {
    case EvFormatMode::kStev:
      return {ev_first32(expanded_[index]), port};
    case EvFormatMode::kUdp:
      return {ev_first32(expanded_[index]) >> 16, port};
    case EvFormatMode::kSrv6:
      break;
  }
  return {index, port};
}

}  // namespace weft::fabric
