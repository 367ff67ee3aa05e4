// NetProcess: a separate process with a NetRdma, controlled by the test. It is for tests that kill
// a process by SIGKILL. It uses loopback addresses that no other test uses, so that the test knows
// the slots.
//
// The child process inherits the descriptors of the test's process, so a test creates it before it
// opens anything whose closing matters. The process ends with this object, or with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/net_rdma.h"

namespace weft {

// The addresses of this test process, one for each plane, in one /24. Child processes get them as
// an argument.
std::vector<Ipv6> own_planes();

// The data that a peer needs: the QP, and the region that the peer may write to.
struct QpHello {
  engine::Hello hello;
  engine::RegionHello region;
};

class NetProcess {
 public:
  enum class Does : std::uint8_t { kListens, kWrites };  // kWrites: to each peer, endlessly
  explicit NetProcess(const engine::NetRdmaOptions& options, Does does = Does::kListens);
  ~NetProcess();
  NetProcess(const NetProcess&) = delete;
  NetProcess& operator=(const NetProcess&) = delete;

  std::uint16_t slot() const { return slot_; }
  // Creates a QP with a region of kRegion bytes. connect() applies to the newest QP.
  static constexpr std::size_t kRegion = 1u << 20;
  QpHello create_qp();
  void connect(const QpHello& peer);

  // Sends SIGKILL and waits until the process is gone.
  void kill();

 private:
  std::vector<std::byte> ask(const std::vector<std::byte>& question);

  pid_t pid_ = -1;
  int socket_ = -1;
  std::uint16_t slot_ = 0xffff;
};

// Creates one QP at each of the two processes and connects these QPs.
void connect(NetProcess& a, NetProcess& b);

}  // namespace weft
