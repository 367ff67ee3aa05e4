#include "fabric/address.h"

#include <array>
#include <cstddef>

namespace weft::fabric {
namespace {

using base::from_groups;
using base::groups_of;
using Groups = base::Ipv6Groups;

constexpr std::size_t kGroups = base::kIpv6Groups;
constexpr std::uint64_t kHostPrefix = 0xfd00;  // first group; the second is plane + 1

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads groups from left to right; `gap_` is the index of the group that "::" stands for.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Ipv6> parse() {
    if (take("::")) gap_ = 0;
    while (at_ < text_.size()) {
      WEFT_CHECK(parse_group());
      if (at_ == text_.size()) break;
      if (!take(":")) return wrong("expected ':'");
      if (take(":")) {
        if (gap_ != kNoGap) return wrong("a second '::'");
        gap_ = count_;
      } else if (at_ == text_.size()) {
        return wrong("expected a group after ':'");
      }
    }
    return finish();
  }

 private:
  static constexpr std::size_t kNoGap = kGroups + 1;

  Error wrong(const std::string& what) const {
    // Only the start of the text is shown, so that the message stays one short line.
    std::string shown(text_.substr(0, 64));
    for (char& c : shown) {
      if (c < ' ' || c > '~') c = '?';
    }
    return {ErrorKind::kInvalid,
            "IPv6 address '" + shown + "': " + what + " at column " + std::to_string(at_ + 1)};
  }

  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Result<void> push(std::uint32_t group) {
    if (count_ == kGroups) return wrong("more than eight groups");
    groups_[count_++] = static_cast<std::uint16_t>(group);
    return {};
  }

  Result<void> parse_group() {
    const std::size_t start = at_;
    std::uint32_t group = 0;
    for (; at_ < text_.size() && hex_digit(text_[at_]) >= 0; ++at_) {
      if (at_ - start == 4) return wrong("a group of more than four digits");
      group = group << 4 | static_cast<std::uint32_t>(hex_digit(text_[at_]));
    }
    if (at_ == start) return wrong("expected a hexadecimal digit");
    if (at_ == text_.size() || text_[at_] != '.') return push(group);
    at_ = start;
    return parse_ipv4();
  }

  // Parses an IPv4 address in the place of the last two groups.
  Result<void> parse_ipv4() {
    std::uint32_t address = 0;
    for (int i = 0; i < 4; ++i) {
      if (i > 0 && !take(".")) return wrong("expected '.'");
      WEFT_TRY(const std::uint32_t number, parse_decimal());
      address = address << 8 | number;
    }
    if (at_ != text_.size()) return wrong("expected the end after an IPv4 address");
    WEFT_CHECK(push(address >> 16));
    return push(address & 0xffff);
  }

  Result<std::uint32_t> parse_decimal() {
    const std::size_t start = at_;
    std::uint32_t number = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (at_ > start && number == 0) return wrong("a decimal number with a leading zero");
      number = number * 10 + static_cast<std::uint32_t>(text_[at_] - '0');
      if (number > 255) return wrong("a decimal number above 255");
    }
    if (at_ == start) return wrong("expected a decimal digit");
    return number;
  }

  Result<Ipv6> finish() const {
    if (gap_ == kNoGap) {
      if (count_ != kGroups) return wrong("fewer than eight groups and no '::'");
      return from_groups(groups_);
    }
    if (count_ == kGroups) return wrong("'::' beside eight groups");
    Groups groups{};
    for (std::size_t i = 0; i < count_; ++i) {
      groups[i < gap_ ? i : i + kGroups - count_] = groups_[i];
    }
    return from_groups(groups);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::size_t gap_ = kNoGap;
  Groups groups_{};
};

}  // namespace

Result<Ipv6> parse_ipv6(std::string_view text) { return Parser(text).parse(); }

Ipv6 address_of(const HostPort& port) {
  return with_plane({kHostPrefix << 48, std::uint64_t{port.host} + 1}, port.plane);
}

std::optional<HostPort> port_of(const Ipv6& address) {
  const std::uint64_t plane = (address.high >> 32 & 0xffff) - 1;  // 0 wraps, and is refused below
  if (address.high >> 48 != kHostPrefix || (address.high & 0xffff'ffff) != 0) return std::nullopt;
  if (plane >= kPlaneCountMax || address.low - 1 > 0xffff'ffff) return std::nullopt;
  return HostPort{static_cast<HostIndex>(address.low - 1), static_cast<std::uint32_t>(plane)};
}

Ipv6 with_plane(const Ipv6& address, std::uint32_t plane) {
  WEFT_ASSERT(plane < kPlaneCountMax);
  constexpr std::uint64_t kField = std::uint64_t{0xffff} << 32;
  return {(address.high & ~kField) | (std::uint64_t{plane} + 1) << 32, address.low};
}

Ipv6 address_of(const UsidList& usids) {
  Groups groups{kUsidBlock >> 16, kUsidBlock & 0xffff};
  for (std::size_t i = 0; i < usids.usid.size(); ++i) groups[i + 2] = usids.usid[i];
  return from_groups(groups);
}

std::optional<UsidList> usids_of(const Ipv6& address) {
  if (address.high >> 32 != kUsidBlock) return std::nullopt;
  const Groups groups = groups_of(address);
  if (groups[2] == 0) return std::nullopt;
  UsidList list;
  for (std::size_t i = 0; i < list.usid.size(); ++i) {
    if (groups[i + 2] != 0 && groups[i + 1] == 0) return std::nullopt;
    list.usid[i] = groups[i + 2];
  }
  return list;
}

Ipv6 shift_usid(const Ipv6& address) {
  const std::uint64_t block = address.high >> 32 << 32;
  return {block | (address.high << 16 & 0xffff'0000) | address.low >> 48, address.low << 16};
}

}  // namespace weft::fabric
