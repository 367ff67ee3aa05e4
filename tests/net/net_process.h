// NetProcess: a separate process with a NetRdma, controlled by the test. It is for tests that need
// SIGKILL. It uses loopback addresses of this test alone, so that the slots are those that the test
// expects.
//
// A test creates it before it opens anything that must be closed when the test's own process closes
// it. The process ends with this object, or with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/net_rdma.h"

namespace weft {

// The planes of this test process, in one /24; its children get them as an argument.
std::vector<Ipv6> own_planes();

// All that a peer must know of a QP and of the region that it may write to.
struct QpHello {
  engine::Hello hello;
  engine::RegionHello region;
};

class NetProcess {
 public:
  enum class Does : std::uint8_t { kListens, kWrites };  // kWrites: to each peer, without end
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

// Creates one QP at each process and connects the two.
void connect(NetProcess& a, NetProcess& b);

}  // namespace weft
