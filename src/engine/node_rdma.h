// NodeRdma: an Rdma that is a passive node of a world, together with the program that uses it.
//
// Any world can drive it; the simulator does so in virtual time. Each call of the world goes to the
// endpoint, and afterwards the program is stepped if there is news for it. So a thousand ranks run
// in one process. Paths and addresses follow from a topology. Memory is a sim::ByteMemory, or any
// other memory in which the owner registers regions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/prng.h"
#include "engine/endpoint_rdma.h"
#include "fabric/topology.h"
#include "rdma/program.h"
#include "sim/byte_memory.h"
#include "world/world.h"

namespace weft::engine {

struct NodeRdmaOptions {
  const fabric::Topology* topology = nullptr;  // outlives the node
  fabric::Forwarding forwarding = fabric::Forwarding::kSrv6;
  fabric::HostIndex host = 0;
  transport::EndpointConfig endpoint{};
  transport::QpConfig qp{};         // `evs` is not used: EVs follow from the peer
  std::uint32_t evs_per_plane = 0;  // EVs of each QP in each plane
  std::uint32_t sends_max = 0, receives_max = 0;
  // The number of hosts in a machine: they can map each other's memory. Hosts 0 .. n - 1 are the
  // first machine.
  std::uint32_t machine_hosts = 1;
  Rate core{};  // bytes per time that the host's one core processes in spend(); 0: takes no time
};

// Options for a node with `qps_max` QPs in a fabric of that topology, with the topology's link
// rates.
struct NodeBounds {
  std::uint32_t qps_max = 4;
  std::uint32_t sends_max = 64, receives_max = 64;  // over all QPs
  std::uint32_t evs_per_plane = 16;
  std::uint64_t seed = 1;
};
NodeRdmaOptions node_options(const fabric::Topology& topology, fabric::HostIndex host,
                             const NodeBounds& bounds);

class NodeRdma final : public EndpointRdma, public world::Node {
 public:
  // `memory` outlives the node.
  NodeRdma(const NodeRdmaOptions& options, sim::ByteMemory& memory, Trace* trace);
  // For an owner that chooses paths and memory itself, with create_qp() and declare_source(): the
  // set-up functions of Rdma then fail with kInvalid. `memory` outlives the node.
  NodeRdma(const transport::EndpointConfig& config, world::Memory& memory, Trace* trace);

  // Sets the program, which must outlive the node. REQUIRES this call before a world drives the
  // node.
  void run(rdma::Program& program) { program_ = &program; }
  using EndpointRdma::endpoint;

  // --- for an owner that chooses paths and memory itself
  // Errors: as Endpoint::create_qp.
  Result<rdma::QpIndex> create_qp(const transport::QpConfig& config, Psn first_psn);
  transport::Qpn qpn(rdma::QpIndex index) const { return qp(index).qpn; }
  // A range of addresses for the payload of writes; peers cannot write there.
  rdma::RegionId declare_source(std::uint64_t at, std::uint64_t size) {
    return add_range(at, size);
  }
  // Bytes of heap that this object holds, without its endpoint's.
  std::size_t heap_bytes() const { return table_bytes(); }

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
  // The host has one core: while it is busy, further work waits.
  Time spend(Time now, std::uint64_t bytes) override;

  // --- world::Node
  void on_datagrams(Time now, std::span<const world::Datagram> in) override;
  void on_port(Time now, world::PortIndex port, world::PortState state) override;
  void on_deadline(Time now, Duration late_by) override;
  Time next_deadline() const override;
  std::size_t poll_transmit(Time now, std::span<const world::PortRoom> room,
                            std::span<world::Datagram> out) override;

 private:
  // Needed only for the set-up functions of Rdma.
  struct SetUp {
    NodeRdmaOptions options;
    sim::ByteMemory& memory;
    Prng prng;
    std::vector<std::uint32_t> keys{};  // index: RegionId
    struct Mapped {
      rdma::GroupId group = 0;
      std::shared_ptr<const std::byte> bytes{};
    };
    std::vector<Mapped> mapped{};
  };
  Result<SetUp*> set_up();
  Result<rdma::Region> keep_region(SetUp& set_up, const sim::ByteMemory::Range& range);
  void step_if_news(Time now);

  rdma::Program* program_ = nullptr;
  std::uint64_t health_seen_ = 0;
  Time stepped_at_{};
  std::unique_ptr<SetUp> set_up_;
  Time core_free_at_{};
  transport::Endpoint endpoint_;
};

}  // namespace weft::engine
