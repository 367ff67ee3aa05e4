// EndpointRdma: the part of Rdma that is the same in every world: posting work on the QPs of an
// endpoint, and polling its completions and failures. Memory, addresses and paths depend on the
// world, so the derived classes do the set-up: NetRdma over the real network, NodeRdma as a node of
// a simulated or real world.
//
// Bounded by the QPs and regions that are created; posting and polling do not allocate.
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
  // Of the endpoint, and gauges of its peers.
  CounterTable counters() const override;

 protected:
  // The world's number of planes, and bounds over all QPs together: the completion queue has an
  // entry for each posted request, so that it never overflows.
  struct Bounds {
    std::uint8_t planes = 1;
    std::uint32_t sends_max = 0, receives_max = 0;
  };
  struct OwnRegion {
    std::uint64_t at = 0, size = 0;  // as writes and peers name the region
    bool is_there = true;
  };
  struct OneQp {
    transport::Qpn qpn = 0;
    Psn first_psn;
    bool sends = true, receives = true;  // it takes posts
  };
  struct GroupState {
    rdma::Group group{};
    rdma::GroupRequest request{};
    bool is_connected = false, is_there = true, over_shared_memory = false;
  };

  // The endpoint outlives this object. It may be set later by use_endpoint(), before any other
  // call.
  EndpointRdma(transport::Endpoint* endpoint, const Bounds& bounds)
      : endpoint_(endpoint), bounds_(bounds) {}
  void use_endpoint(transport::Endpoint& endpoint, std::uint8_t planes) {
    endpoint_ = &endpoint;
    bounds_.planes = planes;
  }

  // Makes a group whose QPs are in INIT, with their receives posted. Each QP has the configuration
  // `config` until it is configured for its peer. Errors: as create_group().
  Result<rdma::Group> create_qps(Time now, const rdma::GroupRequest& request,
                                 transport::QpConfig config, Prng& prng);
  // Sets the queue bounds of a QP as the request asks.
  static void bound_queues(const rdma::GroupRequest& request, transport::QpConfig& config);
  rdma::QpIndex add_qp(transport::Qpn qpn, Psn first_psn);
  // Destroys the group's QPs and releases their reserved queue entries. REQUIRES that the group
  // exists.
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
  std::vector<OneQp> qps_;          // index: QpIndex
  std::vector<GroupState> groups_;  // index: GroupId
  std::vector<OwnRegion> regions_;  // index: RegionId
  std::uint32_t sends_reserved_ = 0, receives_reserved_ = 0;
};

}  // namespace weft::engine
