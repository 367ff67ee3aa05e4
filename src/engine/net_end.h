// NetEnd: one end of connections over the real network: a world of sockets, an endpoint, registered
// memory. The values that two ends exchange before they connect are in net_hello.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "engine/net_hello.h"
#include "net/host_memory.h"
#include "net/udp_world.h"
#include "transport/endpoint.h"

namespace weft::engine {

struct NetOptions {
  net::UdpWorldConfig world{};
  std::uint32_t mtu = 0;     // payload of a packet; 0: the largest that fits
  std::uint32_t burst = 15;  // packets of one EV in one system call
  std::uint32_t qps_max = 16;
};

class NetEnd {
 public:
  static Result<std::unique_ptr<NetEnd>> open(const NetOptions& options);

  net::UdpWorld& world() { return *world_; }
  transport::Endpoint& endpoint() { return *endpoint_; }

  // Creates a QP. Returns the Hello for the peer, which may write to `region`.
  Result<Hello> create_qp(std::span<std::byte> region);
  // The abilities of this end towards that peer. Shared memory is offered if both ends want it and
  // may use it. Errors: kInvalid in one line, if the two ends do not fit.
  Result<Offer> offer(const Hello& peer);
  // The intersection of both offers.
  static Offer agree(const Offer& ours, const Offer& theirs);
  // The carrier of a QP's packets.
  enum class Carrier : std::uint8_t { kPlanes, kSharedMemory };
  // Connects the QP by the agreed offer. REQUIRES that this end offered at least that. Errors:
  // kInvalid if no payload fits the planes, or not the MTU that was set.
  Result<Carrier> connect(transport::Qpn qpn, const Hello& peer, const Offer& agreed);

 private:
  explicit NetEnd(const NetOptions& options) : options_(options) {}
  Hello hello() const;
  bool shares_memory() const { return world_->port_count() > world_->addresses().size(); }

  NetOptions options_;
  std::unique_ptr<net::UdpWorld> world_;
  std::unique_ptr<net::HostMemory> memory_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  Prng prng_{0};
};

}  // namespace weft::engine
