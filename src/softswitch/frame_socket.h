// FrameSocket: the software switch's side of every host's link. One AF_PACKET socket for all
// interfaces of this network namespace: what any host sends lies in one ring that the kernel fills,
// what goes to any host leaves in one call. Needs CAP_NET_RAW, which every namespace that one made
// oneself gives. A ring, because its size is ours to choose: a socket's buffer is bounded by the
// system, at fifty packets on a stock machine.
//
// Host h's port in plane p is the interface h<h>p<p + 1>. Hosts' ends have the addresses of
// link_mac(), a neighbour that is set for good (or `arp off`): nobody answers neighbour discovery
// here. They have no segmentation offload: a packet of more than kPacketSizeMax bytes is counted as too large and dropped. Checksums that a
// host left to its NIC are filled in here, as a NIC would.
//
// All buffers are taken by open(). One thread at a time.
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
// Of the end that sends on this link: fixed, so that the other end knows it.
Mac link_mac(fabric::LinkId link);
std::string to_text(const Mac& mac);
// Of the switch's end: "h0p1".
std::string switch_interface(const fabric::HostPort& port);

class FrameSocket final : public FabricEdge {
 public:
  // Every port of every host, all of which must be there. Errors: kNotFound (names the first
  // interface that is missing), kSystem.
  static Result<FrameSocket> open(const fabric::Topology& topology);
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&& other) = delete;
  ~FrameSocket() override;

  int fd() const override { return fd_; }
  std::size_t receive(Time now, std::span<Incoming> out) override;
  void release() override;
  void send(std::span<const LiveFabric::Delivery> packets) override;
  Result<void> set_carrier(const fabric::HostPort& port, bool up) override;
  // Asks the kernel too.
  const Counters& counters() override;

 private:
  struct Port {
    int interface = 0;
    Mac mac{};  // the host's: as planned, or as it last said
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
  std::vector<std::uint32_t> port_by_index_;  // by interface index; kNoPort: not ours
  std::unique_ptr<Buffers> buffers_;
  std::byte* ring_ = nullptr;
  std::size_t ring_at_ = 0;  // the next frame to look at
  std::size_t handed_ = 0;   // frames before it that are not given back yet
  Counters counters_;
};

}  // namespace weft::softswitch
