// EndpointRdma: what Rdma is on our own transport in every world: work on the QPs of an endpoint, and
// what comes of it. Memory, addresses and paths depend on the world, so that what derives from it
// does the set-up: NetRdma over the real network, NodeRdma as a node of a simulated or real world.
//
// Bounded by what is created; work does not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.h"
#include "base/psn.h"
#include "base/result.h"
#include "rdma/rdma.h"
#include "transport/endpoint.h"

namespace weft::engine {

class EndpointRdma : public rdma::Rdma {
 public:
  rdma::Limits limits() const override;
  std::size_t post_writes(Time now, rdma::QpIndex qp, std::span<const rdma::Write> writes) override;
  std::uint32_t post_receives(Time now, rdma::QpIndex qp, std::uint32_t count) override;
  std::size_t poll(std::span<rdma::Completion> out) override;
  bool poll_failure(rdma::Failure& out) override;
  void fail_group(Time now, rdma::GroupId group) override;
  std::uint64_t health_changes() const override { return endpoint_->path_changes(); }
  rdma::GroupHealth health(rdma::GroupId group) const override;
  bool change_plane(Time now, const PlaneChange& change) override;
  CounterTable counters() const override { return endpoint_->counters(); }

 protected:
  // Of the world that the endpoint is in. The bounds hold for all QPs together: the completion queue
  // has a place for each posted request, so that it is never full.
  struct Bounds {
    std::uint8_t planes = 1;
    std::uint32_t sends_max = 0, receives_max = 0;
  };
  struct OwnRegion {
    std::uint64_t at = 0, size = 0;  // as writes and peers name it
    bool is_there = true;
  };
  struct OneQp {
    transport::Qpn qpn = 0;
    Psn first_psn;
  };
  struct GroupState {
    rdma::Group group{};
    rdma::GroupRequest request{};
    bool is_connected = false, is_there = true, over_shared_memory = false;
  };

  // The endpoint outlives this object; it may be made later, but before any call.
  EndpointRdma(transport::Endpoint* endpoint, const Bounds& bounds)
      : endpoint_(endpoint), bounds_(bounds) {}
  void use_endpoint(transport::Endpoint& endpoint) { endpoint_ = &endpoint; }

  // A group with its QPs in INIT, their receives posted. `config` is that of each QP until it is
  // configured for its peer. Errors: as create_group.
  Result<rdma::Group> create_qps(Time now, const rdma::GroupRequest& request,
                                 transport::QpConfig config, Prng& prng);
  // What the request says of every QP.
  static void bound_queues(const rdma::GroupRequest& request, transport::QpConfig& config);
  rdma::QpIndex add_qp(transport::Qpn qpn, Psn first_psn);
  // Destroys them and gives the reserved places back. REQUIRES that it is there.
  Result<void> destroy_qps(Time now, GroupState& group);
  rdma::RegionId add_range(std::uint64_t at, std::uint64_t size);

  Result<GroupState*> find_group(rdma::GroupId group);
  Result<OwnRegion*> find_region(rdma::RegionId region);
  const GroupState& group(rdma::GroupId group) const;
  const OwnRegion& region(rdma::RegionId region) const;
  const OneQp& qp(rdma::QpIndex qp) const { return qps_[qp]; }
  transport::Endpoint& endpoint() { return *endpoint_; }
  const transport::Endpoint& endpoint() const { return *endpoint_; }
  std::size_t table_bytes() const;

 private:
  transport::WriteRequest request_for(rdma::QpIndex qp, const rdma::Write& write) const;

  transport::Endpoint* endpoint_;
  Bounds bounds_;
  std::vector<OneQp> qps_;          // by QpIndex
  std::vector<GroupState> groups_;  // by GroupId
  std::vector<OwnRegion> regions_;  // by RegionId
  std::uint32_t sends_reserved_ = 0, receives_reserved_ = 0;
};

}  // namespace weft::engine
