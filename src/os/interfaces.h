// The network interfaces of this host, and which of them are meant by the names that people give.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "base/result.h"

namespace weft::os {

struct Interface {
  std::string name;
  std::uint32_t mtu = 0;  // 0: unknown
  bool up = false, running = false, loopback = false;
  std::vector<Ipv6> addresses{};  // IPv4 first; link-local ones are left out
};

// In the kernel's order. Errors: kSystem.
Result<std::vector<Interface>> list_interfaces();

// A plane: an address of ours and the interface that it is on.
struct PlaneChoice {
  Ipv6 address{};
  std::string interface {};  // empty: on none

  friend bool operator==(const PlaneChoice&, const PlaneChoice&) = default;
};

// How many planes a process may have.
inline constexpr std::size_t kPlanesMax = 8;

// One plane for each interface that a word means, its first address: a word is the name of one, or
// else what names begin with. Words that begin with ^ say which not to take, and come alone. Only
// interfaces that are up and have an address count; the loopback only where it is named. Errors:
// kInvalid with what there is.
Result<std::vector<PlaneChoice>> planes_on(std::span<const std::string> words,
                                           std::span<const Interface> interfaces);

// The interface that has this address; null if none has. All of 127/8 is the loopback's.
const Interface* interface_of(const Ipv6& address, std::span<const Interface> interfaces);

// "10.0.1.7 (eth0), 10.0.2.7 (eth1)".
std::string text_of(std::span<const PlaneChoice> planes);

// "10.0.1.7", "fd00:1::7".
std::string text_of(const Ipv6& address);

}  // namespace weft::os
