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

#include "net/address.h"

namespace weft::net {
Result<LinkWatch> LinkWatch::open(std::span<const Ipv6> planes) {
  LinkWatch watch;
  watch.fd_ = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (watch.fd_ < 0 ||
      bind(watch.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error{ErrorKind::kSystem, std::string("netlink: ") + std::strerror(errno)};
  }
  // First listen, then look: a change in between is announced.
  watch.interface_of_.assign(planes.size(), 0);
  watch.up_ = static_cast<world::PortMask>((1u << planes.size()) - 1);
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return watch;
  for (const ifaddrs* a = all; a != nullptr; a = a->ifa_next) {
    if (a->ifa_addr == nullptr) continue;
    if (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6) continue;
    const Ipv6 ip = from_sockaddr(a->ifa_addr).ip;
    for (std::size_t plane = 0; plane < planes.size(); ++plane) {
      if (planes[plane] != ip) continue;
      watch.interface_of_[plane] = if_nametoindex(a->ifa_name);
      watch.note(watch.interface_of_[plane], (a->ifa_flags & IFF_RUNNING) != 0);
    }
  }
  freeifaddrs(all);
  return watch;
}

LinkWatch::LinkWatch(LinkWatch&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
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

void LinkWatch::look() {
  alignas(nlmsghdr) std::array<char, 8192> buffer;
  for (;;) {
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    auto left = static_cast<unsigned>(got);
    for (auto* m = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(m, left);
         m = NLMSG_NEXT(m, left)) {
      if (m->nlmsg_type != RTM_NEWLINK && m->nlmsg_type != RTM_DELLINK) continue;
      if (m->nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) continue;
      const auto* const info = static_cast<const ifinfomsg*>(NLMSG_DATA(m));
      note(static_cast<std::uint32_t>(info->ifi_index),
           m->nlmsg_type == RTM_NEWLINK && (info->ifi_flags & IFF_RUNNING) != 0);
    }
  }
}

}  // namespace weft::net
