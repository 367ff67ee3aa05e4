// FrameSocket: the software switch's end of every host's link. One AF_PACKET socket serves all
// interfaces of this network namespace. The kernel puts the packets of all hosts into one receive
// ring; one system call sends packets to many hosts. Needs CAP_NET_RAW, which the creator of a
// namespace has in it. A ring is used because its size is our choice. The system limits a socket's
// receive buffer, by default to about fifty packets.
//
// The port of host h in plane p is the interface h<h>p<p + 1>. The hosts' ends have the addresses
// of link_mac() and a permanent neighbour entry (or `arp off`), because nothing answers neighbour
// discovery here. They have no segmentation offload: a frame of more than kPacketSizeMax bytes is
// counted as too large and dropped. Checksums that a host left to its NIC are filled in here, as a
// NIC would.
//
// All buffers are allocated by open(). One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "fabric/address.h"
#include "fabric/topology.h"
#include "softswitch/fabric_edge.h"

namespace weft::softswitch {

using Mac = std::array<std::uint8_t, 6>;
// The MAC address of the end that sends on this link. It is computed, so that the other end knows
// it without ARP.
Mac link_mac(fabric::LinkId link);
std::string to_text(const Mac& mac);
// The name of the switch's end, such as "h0p1".
std::string switch_interface(const fabric::HostPort& port);

class FrameSocket final : public FabricEdge {
 public:
  // Opens every port of every host; all interfaces must exist. Errors: kNotFound (names the first
  // missing interface), kSystem.
  static Result<FrameSocket> open(const fabric::Topology& topology);
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&& other) = delete;
  ~FrameSocket() override;

  int fd() const override { return fd_; }
  std::size_t receive(Time now, std::span<Incoming> out) override;
  void release() override;
  void send(std::span<const LiveFabric::Delivery> packets) override;
  Result<void> set_carrier(const fabric::HostPort& port, bool up) override;
  // The counters, with the kernel's count of dropped packets.
  const Counters& counters() override;

 private:
  struct Port {
    int interface = 0;
    Mac mac{};  // of the host: link_mac(), or the source of its last frame
  };
  struct Buffers;

  explicit FrameSocket(std::uint32_t planes);
  Result<void> open_ring();
  std::byte* frame(std::size_t index) const;
  std::size_t index_of(const fabric::HostPort& port) const {
    return std::size_t{port.host} * planes_ + port.plane;
  }

  int fd_ = -1;
  std::uint32_t planes_ = 1;
  std::vector<Port> ports_;                   // by index_of()
  std::vector<std::uint32_t> port_by_index_;  // by interface index; kNoPort: another interface
  std::unique_ptr<Buffers> buffers_;
  std::byte* ring_ = nullptr;
  std::size_t ring_at_ = 0;  // the next frame to read from the ring
  std::size_t handed_ = 0;   // frames before ring_at_ that are given out and not released yet
  Counters counters_;
};

}  // namespace weft::softswitch
