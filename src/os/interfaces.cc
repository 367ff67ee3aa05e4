#include "os/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "os/address.h"
#include "os/file_descriptor.h"

namespace weft::os {
namespace {

bool is_link_local(const Ipv6& ip) {
  if (base::is_ipv4(ip)) return (ip.low >> 16 & 0xffff) == 0xa9fe;
  return ip.high >> 54 == 0xfe80 >> 6;
}

std::uint32_t mtu_of(int socket, const std::string& name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (ioctl(socket, SIOCGIFMTU, &request) != 0) return 0;
  return static_cast<std::uint32_t>(std::max(request.ifr_mtu, 0));
}

bool begins_with(const std::string& name, const std::string& word) {
  return name.compare(0, word.size(), word) == 0;
}

bool is_usable(const Interface& i) { return i.up && !i.addresses.empty(); }

Error none_of(const std::string& word, std::span<const Interface> interfaces) {
  std::string there;
  for (const Interface& i : interfaces) {
    if (!is_usable(i)) continue;
    there += (there.empty() ? "" : ", ") + i.name;
  }
  return {ErrorKind::kInvalid, word + ": no interface of that name is up and has an address; " +
                                   (there.empty() ? "there is none at all" : "there are " + there)};
}

// The usable interfaces whose names begin with none of the prefixes, without the loopback.
std::vector<const Interface*> all_but(std::span<const std::string> prefixes,
                                      std::span<const Interface> interfaces) {
  std::vector<const Interface*> out;
  for (const Interface& i : interfaces) {
    const bool excluded =
        std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
          return begins_with(i.name, prefix[0] == '^' ? prefix.substr(1) : prefix);
        });
    if (!excluded && !i.loopback && is_usable(i)) out.push_back(&i);
  }
  return out;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0)
    return Error{ErrorKind::kSystem, std::string("getifaddrs: ") + std::strerror(errno)};
  const FileDescriptor asking(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::vector<Interface> out;
  // Lists the families in this order, so that IPv4 addresses come first.
  for (const int family : {AF_PACKET, AF_INET, AF_INET6}) {
    for (const ifaddrs* a = all; a != nullptr; a = a->ifa_next) {
      if (a->ifa_addr == nullptr || a->ifa_addr->sa_family != family) continue;
      auto found = std::find_if(out.begin(), out.end(),
                                [&](const Interface& i) { return i.name == a->ifa_name; });
      if (found == out.end()) {
        out.push_back({.name = a->ifa_name,
                       .mtu = mtu_of(asking.get(), a->ifa_name),
                       .up = (a->ifa_flags & IFF_UP) != 0,
                       .running = (a->ifa_flags & IFF_RUNNING) != 0,
                       .loopback = (a->ifa_flags & IFF_LOOPBACK) != 0});
        found = out.end() - 1;
      }
      if (family == AF_PACKET) continue;
      const Ipv6 ip = from_sockaddr(a->ifa_addr).ip;
      if (!is_link_local(ip)) found->addresses.push_back(ip);
    }
  }
  freeifaddrs(all);
  return out;
}

Result<std::vector<PlaneChoice>> planes_on(std::span<const std::string> words,
                                           std::span<const Interface> interfaces) {
  std::vector<const Interface*> chosen;
  if (!words.empty() && words[0][0] == '^') {
    chosen = all_but(words, interfaces);
    if (chosen.empty()) return none_of(words[0], interfaces);
  } else {
    for (const std::string& word : words) {
      const std::size_t before = chosen.size();
      const auto take = [&](const Interface& i) {
        if (is_usable(i) && std::find(chosen.begin(), chosen.end(), &i) == chosen.end())
          chosen.push_back(&i);
      };
      const auto exact = std::find_if(interfaces.begin(), interfaces.end(),
                                      [&](const Interface& i) { return i.name == word; });
      if (exact != interfaces.end()) {
        take(*exact);
      } else {
        for (const Interface& i : interfaces) {
          if (begins_with(i.name, word) && !i.loopback) take(i);
        }
      }
      if (chosen.size() > before) continue;
      const bool again = std::any_of(chosen.begin(), chosen.end(), [&](const Interface* i) {
        return exact != interfaces.end() ? i == &*exact : begins_with(i->name, word);
      });
      if (again) return Error{ErrorKind::kInvalid, word + ": named twice; expected each once"};
      return none_of(word, interfaces);
    }
  }
  if (chosen.size() > kPlanesMax) {
    return Error{ErrorKind::kInvalid, std::to_string(chosen.size()) +
                                          " interfaces are meant; expected 1 to 8, name them"};
  }
  std::vector<PlaneChoice> out;
  for (const Interface* i : chosen) out.push_back({i->addresses[0], i->name});
  return out;
}

const Interface* interface_of(const Ipv6& address, std::span<const Interface> interfaces) {
  for (const Interface& i : interfaces) {
    if (std::find(i.addresses.begin(), i.addresses.end(), address) != i.addresses.end()) return &i;
    if (i.loopback && base::is_loopback(address)) return &i;
  }
  return nullptr;
}

std::string text_of(const Ipv6& address) {
  const SocketAddress raw = to_sockaddr(address, 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const at =
      base::is_ipv4(address)
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&raw.storage)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(&raw.storage)->sin6_addr;
  inet_ntop(base::is_ipv4(address) ? AF_INET : AF_INET6, at, text.data(), text.size());
  return text.data();
}

std::string text_of(std::span<const PlaneChoice> planes) {
  std::string text;
  for (const PlaneChoice& plane : planes) {
    text += (text.empty() ? "" : ", ") + text_of(plane.address) +
            (plane.interface.empty() ? " (no interface)" : " (" + plane.interface + ")");
  }
  return text;
}

std::vector<Ipv6> loopback_planes() {
  std::vector<Ipv6> planes;
  for (std::uint8_t p = 1; p <= 4; ++p) planes.push_back(base::ipv4(127, 0, p, 1));
  return planes;
}

}  // namespace weft::os
