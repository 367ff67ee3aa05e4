// NetRdma: Rdma on our own transport over the real network, driven by the caller's thread.
//
// A group is the QPs to one peer (rdma/rdma.h). If the peer is on this host, of the same user, and
// both ends allow it, the group uses shared memory; otherwise it uses the planes. Each end chooses
// for the packets that it sends, so one exchange of descriptions is enough. Memory from allocate()
// is a sealed memfd, which a peer with shared memory may map. Bounded by NetRdmaOptions; posting
// and polling do not allocate.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "engine/endpoint_rdma.h"
#include "engine/net_hello.h"
#include "net/host_memory.h"
#include "net/udp_world.h"
#include "os/file_descriptor.h"

namespace weft::engine {

struct NetRdmaOptions {
  net::UdpWorldConfig world{};
  std::uint32_t mtu = 0;     // payload of a packet over planes; 0: the largest that fits
  std::uint32_t burst = 15;  // the most packets on one EV in one system call
  std::uint32_t qps_max = 16, regions_max = 64;
  // Over all QPs: the completion queue has an entry for each posted request.
  std::uint32_t sends_max = 1024, receives_max = 1024;
};

class NetRdma final : public EndpointRdma {
 public:
  static Result<std::unique_ptr<NetRdma>> open(const NetRdmaOptions& options);
  ~NetRdma() override;

  // --- for the thread that drives this object
  // Drives the world until something happened or the time is `limit`. Returns the time to pass to
  // programs.
  Time progress(Time limit);
  // Sends the acknowledgements that are due. Call it before the process exits: otherwise writes of
  // its peers would fail.
  void flush();
  // Makes a progress() that sleeps return. May be called from any thread.
  void wake() { world_->wake(); }
  net::UdpWorld& world() { return *world_; }
  const net::UdpWorld& world() const { return *world_; }
  using EndpointRdma::endpoint;
  transport::Qpn qpn(rdma::QpIndex index) const { return qp(index).qpn; }
  // Sends packets to the process that describe() of a peer's group names, to find the largest payload
  // that arrives there: up to 0.6 s. Errors: kInvalid for other bytes.
  Result<std::uint32_t> payload_that_arrives(ConstBytes peer) const;
  // From now on connect() uses no larger payload over the planes.
  void limit_payload(std::uint32_t payload) { payload_max_ = payload; }
  // The payload of a packet over planes; 0 if shared memory carries the group. REQUIRES a connected
  // group.
  std::uint32_t mtu_of(rdma::GroupId group) const { return carriers_[group].mtu; }

  // --- rdma::Rdma
  Result<rdma::Region> allocate(std::uint64_t size) override;
  Result<rdma::Region> add_region(std::span<std::byte> memory) override;
  Result<void> remove_region(rdma::RegionId region) override;
  Result<rdma::Group> create_group(const rdma::GroupRequest& request) override;
  Result<void> destroy_group(Time now, rdma::GroupId group) override;
  std::vector<std::byte> describe(rdma::GroupId group) const override;
  std::vector<std::byte> describe_region(rdma::RegionId region) const override;
  Result<void> connect(Time now, rdma::GroupId group, ConstBytes peer) override;
  Result<rdma::RemoteRegion> open_region(rdma::GroupId group, ConstBytes peer) override;
  CounterTable counters() const override;

 private:
  // What a region has in addition to its address range.
  struct Backing {
    std::uint32_t rkey = 0;
    os::FileDescriptor memory{};  // the memfd of allocate(); not open for other regions
  };
  // What carries the packets of a group: a shared memory ring, or the planes.
  struct Carrier {
    std::optional<fabric::Ev> ring{};
    std::uint32_t mtu = 0;  // payload of a packet over the planes
  };
  // A part of a peer's memory that is mapped here. The destructor of NetRdma unmaps it.
  struct Mapping {
    rdma::GroupId group = 0;
    void* at = nullptr;
    std::uint64_t size = 0;
  };

  explicit NetRdma(const NetRdmaOptions& options);
  Result<void> start();
  Result<rdma::Region> keep_region(std::span<std::byte> memory, os::FileDescriptor fd);
  Hello hello() const;
  transport::QpConfig config_for(std::span<const fabric::Ev> evs) const;
  Result<void> choose_carrier(GroupState& state, const Hello& peer);
  Result<void> connect_qp(Time now, const GroupState& state, transport::Qpn qpn, const Hello& peer);
  const std::byte* map_memory(const GroupState& group, const RegionHello& region);

  NetRdmaOptions options_;
  Prng prng_;
  // The order of these members matters for destruction: the world refers to the endpoint, and the
  // endpoint to the memory. So the world is destroyed first.
  std::unique_ptr<net::HostMemory> memory_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::unique_ptr<net::UdpWorld> world_;
  std::vector<fabric::Ev> evs_;
  std::vector<Carrier> carriers_;  // index: GroupId
  std::vector<Backing> backings_;  // index: RegionId
  std::vector<Mapping> mappings_;
  std::uint32_t payload_max_ = ~0u;
};

}  // namespace weft::engine
