// A process of its own with a NetEnd, which does what the test says: for what only SIGKILL shows. On
// loopback addresses of this test alone, so that slots are what the test expects.
//
// Fork it before the test opens anything that must end with the test's own process. It ends with this
// object, or with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/net_end.h"

namespace weft {

// Of this process, in one /24; its children are told.
std::vector<Ipv6> own_planes();

class NetProcess {
 public:
  enum class Does : std::uint8_t { kListens, kWrites };  // kWrites: to each peer, without end
  explicit NetProcess(const engine::NetOptions& options, Does does = Does::kListens);
  ~NetProcess();
  NetProcess(const NetProcess&) = delete;
  NetProcess& operator=(const NetProcess&) = delete;

  std::uint16_t slot() const { return slot_; }
  // A QP with a region of kRegion bytes; what follows is about the one made last.
  static constexpr std::size_t kRegion = 1u << 20;
  engine::Hello create_qp();
  engine::Offer offer(const engine::Hello& peer);
  void connect(const engine::Hello& peer, const engine::Offer& agreed);

  // As kill -9 does; it is gone when this returns.
  void kill();

 private:
  std::vector<std::byte> ask(const std::vector<std::byte>& question);

  pid_t pid_ = -1;
  int socket_ = -1;
  std::uint16_t slot_ = 0xffff;
};

// One QP of each, connected.
void connect(NetProcess& a, NetProcess& b);

}  // namespace weft
