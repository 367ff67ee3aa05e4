// BenchEnd: one end of `weft bench write`: an Rdma, and what else the benchmark needs. There are
// two kinds: the engine itself (bench_engine.h), and mrc.h as other programs use it (bench_mrc.h).
// They differ in how groups of QPs are made and driven; the benchmark itself is the same.
//
// Owned by the benchmark and called from one thread. The BenchMemory is given to the function that
// opens the end; it outlives the end.
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

// `source`: the bytes that this end sends. `landing`: the region that the peer writes to.
struct BenchMemory {
  std::span<std::byte> source{}, landing{};
};

// The most writes in flight on a QP.
inline constexpr std::uint32_t kBenchDepthMax = 128;

// A connected group of this end's QPs, and what is known of its peer.
struct BenchLink {
  rdma::Group group{};
  rdma::RemoteRegion landing{};  // the peer's region that we write to
  std::vector<world::Address> peer_ports{};
  bool over_shared_memory = false;
  std::uint32_t mtu = 0;  // payload of a packet over planes; not used with shared memory
};

class BenchEnd {
 public:
  virtual ~BenchEnd() = default;

  // --- set-up
  struct Created {
    rdma::Group group{};
    std::vector<std::byte> description{};  // what the peer must know: a Hello for each QP
  };
  virtual Result<Created> create_group(std::uint32_t qps) = 0;
  // The region `landing` as a RegionHello.
  virtual std::vector<std::byte> describe_landing() const = 0;
  // The largest payload that arrives at the peer over the planes.
  virtual Result<std::uint32_t> payload_that_arrives(ConstBytes peer_group) = 0;
  // What the peer has sent, from either kind of BenchEnd; may be any bytes. connect() fails with
  // kInvalid and a one-line message if the two ends are not compatible.
  struct PeerWords {
    ConstBytes group{}, landing{};
    std::uint32_t payload_max = 0;  // that arrives at either end
  };
  virtual Result<BenchLink> connect(const rdma::Group& group, const PeerWords& peer) = 0;

  // --- measurement
  virtual rdma::Rdma& rdma() = 0;
  // The region from which writes are sent.
  virtual rdma::RegionId source() const = 0;
  // Drives the network until something may have happened, or until the time is `limit`.
  virtual void progress(Time limit) = 0;
  // Drives the network until the time is `until`, so that the peer's packets are acknowledged.
  // Meanwhile the caller posts nothing and expects no completion.
  virtual void answer(Time until) = 0;
  // The time of the last progress().
  virtual Time now() const = 0;

  // --- information
  virtual std::size_t plane_count() const = 0;
  virtual CounterTable counters() = 0;
};

}  // namespace weft::cli
