// BenchEnd: one end of `weft bench write`: an Rdma, and what the benchmark needs besides. There are
// two: the engine itself (bench_engine.h), and mrc.h as any program uses it (bench_mrc.h). They
// differ in how groups of QPs are made and driven; the benchmark itself is the same.
//
// Owned by the benchmark and called from one thread. The memory is passed to the function that
// opens the end, and outlives the end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/net_hello.h"
#include "rdma/rdma.h"

namespace weft::cli {

// The bytes that this end sends, and the region where the peer's bytes land.
struct BenchMemory {
  std::span<std::byte> source{}, landing{};
};

// Writes in flight on a QP, at most.
inline constexpr std::uint32_t kBenchDepthMax = 128;

// A group of our QPs, connected to those of one peer.
struct BenchLink {
  rdma::Group group{};
  rdma::RemoteRegion landing{};  // the peer's
  std::vector<world::Address> peer_ports{};
  bool over_shared_memory = false;
  std::uint32_t mtu = 0;  // payload of a packet, if the planes carry the group
};

class BenchEnd {
 public:
  virtual ~BenchEnd() = default;

  // --- set-up
  struct Created {
    rdma::Group group{};
    std::vector<std::byte> description{};  // what the peer must learn: a Hello for each QP
  };
  virtual Result<Created> create_group(std::uint32_t qps) = 0;
  // The landing region, as a RegionHello.
  virtual std::vector<std::byte> describe_landing() const = 0;
  // The largest payload that arrives at the peer over the planes.
  virtual Result<std::uint32_t> payload_that_arrives(ConstBytes peer_group) = 0;
  // What a peer of either kind has sent: any bytes. Errors: kInvalid in one line, if the two ends do
  // not fit.
  struct PeerWords {
    ConstBytes group{}, landing{};
    std::uint32_t payload_max = 0;  // that arrives at either end
  };
  virtual Result<BenchLink> connect(const rdma::Group& group, const PeerWords& peer) = 0;

  // --- work
  virtual rdma::Rdma& rdma() = 0;
  // The region that writes leave from.
  virtual rdma::RegionId source() const = 0;
  // Drives the network until something may have changed, or until `limit`.
  virtual void progress(Time limit) = 0;
  // Answers the peer's packets until `until`. Nothing is posted and no completion is expected
  // meanwhile.
  virtual void answer(Time until) = 0;
  // The time of the last progress().
  virtual Time now() const = 0;

  // --- observation
  virtual std::size_t plane_count() const = 0;
  virtual CounterTable counters() = 0;
};

}  // namespace weft::cli
