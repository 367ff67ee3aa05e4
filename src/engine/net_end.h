// NetEnd: one end of connections over the real network: a world of sockets, an endpoint, registered
// memory. What the two ends tell each other before they can talk: net_hello.h.
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

  // A QP and what to tell the peer of it: `region` is what the peer may write to.
  Result<Hello> create_qp(std::span<std::byte> region);
  // What this end can do towards that peer: it is reached over shared memory where both want to and
  // may. Errors: kInvalid when the two ends do not fit, in one line.
  Result<Offer> offer(const Hello& peer);
  // What both can do.
  static Offer agree(const Offer& ours, const Offer& theirs);
  // What carries a QP.
  enum class Carrier : std::uint8_t { kPlanes, kSharedMemory };
  // As the two ends agreed. REQUIRES that this end offered as much. Errors: kInvalid where no payload
  // fits, or not the one that was said outright.
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
