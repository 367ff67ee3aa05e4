#include "net/link_watch.h"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "os/address.h"

namespace weft::net {

LinkWatch::LinkWatch(std::span<const Ipv6> planes)
    : planes_(planes.begin(), planes.end()), interface_of_(planes.size(), 0), up_(all()) {}

Result<LinkWatch> LinkWatch::open(std::span<const Ipv6> planes) {
  LinkWatch watch(planes);
  watch.fd_ = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (watch.fd_ < 0 ||
      bind(watch.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error{ErrorKind::kSystem, std::string("netlink: ") + std::strerror(errno)};
  }
  watch.scan();  // after listening began, so that no change is missed
  return watch;
}

// Finds the interfaces that have our plane addresses now, and whether each has a carrier.
void LinkWatch::scan() {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return;
  for (const ifaddrs* a = interfaces; a != nullptr; a = a->ifa_next) {
    if (a->ifa_addr == nullptr) continue;
    if (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6) continue;
    const Ipv6 ip = os::from_sockaddr(a->ifa_addr).ip;
    for (std::size_t plane = 0; plane < planes_.size(); ++plane) {
      if (planes_[plane] != ip) continue;
      interface_of_[plane] = if_nametoindex(a->ifa_name);
      note(interface_of_[plane], (a->ifa_flags & IFF_RUNNING) != 0);
    }
  }
  freeifaddrs(interfaces);
}

LinkWatch::LinkWatch(LinkWatch&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      planes_(std::move(other.planes_)),
      interface_of_(std::move(other.interface_of_)),
      up_(other.up_) {}

LinkWatch::~LinkWatch() {
  if (fd_ >= 0) close(fd_);
}

void LinkWatch::note(std::uint32_t interface_index, bool running) {
  if (interface_index == 0) return;
  for (std::size_t plane = 0; plane < interface_of_.size(); ++plane) {
    if (interface_of_[plane] != interface_index) continue;
    const auto bit = static_cast<world::PortMask>(1u << plane);
    up_ = static_cast<world::PortMask>(running ? up_ | bit : up_ & ~bit);
  }
}

world::PortMask LinkWatch::read_changes() {
  const world::PortMask before = up_;
  alignas(nlmsghdr) std::array<char, 8192> buffer;
  bool rescan = false;
  for (;;) {
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == ENOBUFS) {  // the buffer was full and announcements were lost
      rescan = true;
      continue;
    }
    if (got <= 0) break;
    auto left = static_cast<unsigned>(got);
    for (auto* m = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(m, left);
         m = NLMSG_NEXT(m, left)) {
      // A new address may belong to an interface that was removed and created anew with another
      // index.
      rescan |= m->nlmsg_type == RTM_NEWADDR && up_ != all();
      if (m->nlmsg_type != RTM_NEWLINK && m->nlmsg_type != RTM_DELLINK) continue;
      if (m->nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) continue;
      const auto* const info = static_cast<const ifinfomsg*>(NLMSG_DATA(m));
      note(static_cast<std::uint32_t>(info->ifi_index),
           m->nlmsg_type == RTM_NEWLINK && (info->ifi_flags & IFF_RUNNING) != 0);
    }
  }
  if (rescan) scan();
  return static_cast<world::PortMask>(before ^ up_);
}

}  // namespace weft::net
