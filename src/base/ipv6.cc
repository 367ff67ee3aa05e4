#include "base/ipv6.h"

namespace weft::base {
namespace {

struct Run {
  std::size_t at = kIpv6Groups, size = 0;
};

// The first of the longest runs of at least two zero groups.
Run longest_zero_run(const Ipv6Groups& groups) {
  Run best, run;
  for (std::size_t i = 0; i < kIpv6Groups; ++i) {
    if (groups[i] != 0) {
      run = {};
      continue;
    }
    if (run.size == 0) run.at = i;
    if (++run.size > best.size) best = run;
  }
  return best.size >= 2 ? best : Run{};
}

std::string hex_text(std::uint32_t group) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 12; shift >= 0; shift -= 4) {
    const std::uint32_t digit = group >> shift & 0xf;
    if (digit != 0 || !text.empty() || shift == 0) text += kDigits[digit];
  }
  return text;
}

std::string ipv4_text(std::uint64_t address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += std::to_string(address >> shift & 0xff);
    if (shift > 0) text += '.';
  }
  return text;
}

}  // namespace

Ipv6Groups groups_of(const Ipv6& address) {
  Ipv6Groups groups{};
  for (std::size_t i = 0; i < kIpv6Groups; ++i) {
    const std::uint64_t half = i < 4 ? address.high : address.low;
    groups[i] = static_cast<std::uint16_t>(half >> (48 - 16 * (i % 4)));
  }
  return groups;
}

Ipv6 from_groups(const Ipv6Groups& groups) {
  Ipv6 address;
  for (std::size_t i = 0; i < kIpv6Groups; ++i) {
    std::uint64_t& half = i < 4 ? address.high : address.low;
    half = half << 16 | groups[i];
  }
  return address;
}

std::string to_text(const Ipv6& address) {
  if (is_ipv4(address)) return "::ffff:" + ipv4_text(address.low);
  const Ipv6Groups groups = groups_of(address);
  const Run zeros = longest_zero_run(groups);
  std::string text;
  for (std::size_t i = 0; i < kIpv6Groups; ++i) {
    if (i == zeros.at) {
      text += "::";
      i += zeros.size - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += hex_text(groups[i]);
  }
  return text;
}

}  // namespace weft::base
