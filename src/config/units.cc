#include "config/units.h"

#include <limits>
#include <span>

namespace weft::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

constexpr Unit kSizes[] = {{"", 1},
                           {"B", 1},
                           {"kB", 1'000},
                           {"KB", 1'000},
                           {"MB", 1'000'000},
                           {"GB", 1'000'000'000},
                           {"KiB", 1ull << 10},
                           {"MiB", 1ull << 20},
                           {"GiB", 1ull << 30}};
constexpr Unit kDurations[] = {
    {"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}};
constexpr Unit kRates[] = {
    {"Mbps", 1'000'000}, {"Gbps", 1'000'000'000}, {"Tbps", 1'000'000'000'000}};
constexpr Unit kShares[] = {{"%", 10'000}};

// The number in a text such as "1.5ms", and the unit behind it.
struct Parts {
  std::uint64_t digits = 0;       // without the decimal point
  std::uint64_t denominator = 1;  // 10 to the power of the number of decimals
  std::string_view unit;
  bool valid = false;
};

Parts split(std::string_view text) {
  Parts parts;
  bool point = false, any = false, small = true;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point && any) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      small = small && parts.digits < 100'000'000'000'000'000u &&
              parts.denominator < 1'000'000'000'000'000u;
      if (!small) continue;
      parts.digits = parts.digits * 10 + static_cast<std::uint64_t>(c - '0');
      if (point) parts.denominator *= 10;
    } else {
      break;
    }
  }
  while (i < text.size() && text[i] == ' ') ++i;
  parts.unit = text.substr(i);
  parts.valid = any && small && (!point || parts.denominator > 1);
  return parts;
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// Converts a text with unit to a whole number of the smallest unit.
Result<std::uint64_t, std::string> scaled(std::string_view text, std::span<const Unit> units,
                                          std::string_view smallest, std::string_view expected) {
  const Parts parts = split(text);
  if (!parts.valid) {
    const bool negative = text.starts_with('-') && split(text.substr(1)).valid;
    return quoted(text) + (negative ? " is negative" : " is not a number") + "; expected " +
           std::string(expected);
  }
  for (const Unit& unit : units) {
    if (unit.name != parts.unit) continue;
    const auto wide = static_cast<unsigned __int128>(parts.digits) * unit.scale;
    if (wide % parts.denominator != 0) {
      return quoted(text) + " is finer than " + std::string(smallest) + "; expected " +
             std::string(expected);
    }
    const auto value = wide / parts.denominator;
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return quoted(text) + " is too large; expected " + std::string(expected);
    }
    return static_cast<std::uint64_t>(value);
  }
  if (parts.unit.empty()) {
    return quoted(text) + " has no unit; expected " + std::string(expected);
  }
  return quoted(text) + " has the unknown unit " + quoted(parts.unit) + "; expected " +
         std::string(expected);
}

}  // namespace

Result<std::uint64_t, std::string> size_from(std::string_view text) {
  return scaled(text, kSizes, "one byte", kSizeExpected);
}

Result<Duration, std::string> duration_from(std::string_view text) {
  const auto ps = scaled(text, kDurations, "one picosecond", kDurationExpected);
  if (!ps) return ps.error();
  // Limits durations to 1000 s, so that sums and small multiples of them do not overflow Time.
  if (*ps > static_cast<std::uint64_t>(Duration::s(1000).ps())) {
    return quoted(text) + " is too long; expected at most 1000s";
  }
  return Duration::ps(static_cast<std::int64_t>(*ps));
}

Result<Rate, std::string> rate_from(std::string_view text) {
  const auto bps = scaled(text, kRates, "one bit a second", kRateExpected);
  if (!bps) return bps.error();
  if (*bps < 1'000'000 || *bps > 100'000'000'000'000) {
    return quoted(text) + " is out of range; expected from 1Mbps to 100Tbps";
  }
  return Rate::bps(*bps);
}

Result<std::uint32_t, std::string> ppm_from(std::string_view text) {
  const auto ppm = scaled(text, kShares, "one part in a million", kShareExpected);
  if (!ppm) return ppm.error();
  if (*ppm > 1'000'000) return quoted(text) + " is more than the whole; expected at most 100%";
  return static_cast<std::uint32_t>(*ppm);
}

}  // namespace weft::config
