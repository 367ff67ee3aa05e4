// The network interfaces of this host, and their selection by names that a user gives.
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
  std::vector<Ipv6> addresses{};  // IPv4 first, no link-local addresses
};

// All interfaces, in the kernel's order. Errors: kSystem.
Result<std::vector<Interface>> list_interfaces();

// A plane: a local address and its interface.
struct PlaneChoice {
  Ipv6 address{};
  std::string interface {};  // empty: no interface has the address

  friend bool operator==(const PlaneChoice&, const PlaneChoice&) = default;
};

// The most planes that a process may have.
inline constexpr std::size_t kPlanesMax = 8;

// Selects interfaces by `words`. Each selected interface becomes one plane, with its first address.
// A word is the name of an interface or, if there is none of that name, a prefix of names. Words
// that begin with ^ exclude interfaces; they cannot be mixed with others. An interface is selected
// only if it is up and has an address, and the loopback only if it is named in full. Errors:
// kInvalid, with a list of the existing interfaces.
Result<std::vector<PlaneChoice>> planes_on(std::span<const std::string> words,
                                           std::span<const Interface> interfaces);

// The interface that has this address; null if there is none. All of 127/8 belongs to the loopback.
const Interface* interface_of(const Ipv6& address, std::span<const Interface> interfaces);

// The planes as text, such as "10.0.1.7 (eth0), 10.0.2.7 (eth1)".
std::string text_of(std::span<const PlaneChoice> planes);

// The address as text, such as "10.0.1.7" or "fd00:1::7".
std::string text_of(const Ipv6& address);

// Four planes on the loopback, 127.0.1.1 to 127.0.4.1. They need no set-up and no privilege.
std::vector<Ipv6> loopback_planes();

}  // namespace weft::os
