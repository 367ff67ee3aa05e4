// LinkWatch: which of our planes have a carrier. It listens to the kernel's announcements
// (rtnetlink), so that a dead link is known within microseconds, not only from lost packets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ipv6.h"
#include "base/result.h"
#include "world/world.h"

namespace weft::net {

class LinkWatch {
 public:
  // `planes`: our address in each plane. A plane counts as up if no interface has its address.
  static Result<LinkWatch> open(std::span<const Ipv6> planes);
  LinkWatch(LinkWatch&& other) noexcept;
  LinkWatch& operator=(LinkWatch&& other) = delete;
  ~LinkWatch();

  int fd() const { return fd_; }
  world::PortMask up() const { return up_; }
  // Reads the announcements since the last call. Returns the planes that changed.
  world::PortMask read_changes();

 private:
  explicit LinkWatch(std::span<const Ipv6> planes);
  void scan();
  void note(std::uint32_t interface_index, bool running);
  world::PortMask all() const { return static_cast<world::PortMask>((1u << planes_.size()) - 1); }

  int fd_ = -1;
  std::vector<Ipv6> planes_;
  std::vector<std::uint32_t> interface_of_;  // by plane: interface index; 0: none
  world::PortMask up_ = 0;
};

}  // namespace weft::net
