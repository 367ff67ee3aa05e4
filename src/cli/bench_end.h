// BenchEnd: one end of `weft bench write`, behind one of two interfaces: the engine itself
// (bench_engine.h), or mrc.h as any program uses it (bench_mrc.h). The two differ only in how QPs
// are made, posted on and polled; the benchmark itself is the same.
//
// Owned by the benchmark and called from one thread. The memory is passed to the function that
// opens the end, and outlives the end. An end has at most the number of QPs for which it was
// opened.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/counters.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/net_end.h"

namespace weft::cli {

// The bytes that this end sends, and the region where the peer's bytes land.
struct BenchMemory {
  std::span<std::byte> source{}, landing{};
};

// One of our QPs and the region of its peer.
struct BenchQp {
  std::uint32_t index = 0;  // in order of creation
  engine::Hello peer{};
};

class BenchEnd {
 public:
  virtual ~BenchEnd() = default;

  // --- set-up
  struct Created {
    std::uint32_t index = 0;
    engine::Hello hello{};  // what the peer must learn about this QP
  };
  virtual Result<Created> create_qp() = 0;
  // offer() and connect() do the same as those of NetEnd.
  virtual Result<engine::Offer> offer(const engine::Hello& peer) = 0;
  virtual Result<engine::NetEnd::Carrier> connect(const BenchQp& qp,
                                                  const engine::Offer& agreed) = 0;

  // --- work
  struct Write {
    std::uint64_t offset = 0;  // in both regions
    std::uint32_t size = 0;
  };
  // Errors: kExhausted: the send queue is full.
  virtual Result<void> post(const BenchQp& qp, const Write& write) = 0;
  // Drives the network until something may have changed, or until `limit`.
  virtual void progress(Time limit) = 0;
  // How many writes completed. Errors: kSystem with the status of the first write that failed.
  virtual Result<std::uint64_t> take() = 0;
  // Answers the peer's packets until `until`. Nothing is posted and no completion is expected
  // meanwhile.
  virtual void answer(Time until) = 0;
  // The time of the last progress().
  virtual Time now() const = 0;

  // --- observation
  virtual std::size_t plane_count() const = 0;
  virtual CounterTable counters() = 0;
  // The congestion window, if this interface can read it.
  virtual std::optional<std::int64_t> window_bytes(const BenchQp& qp) = 0;
  // Planes that carry nothing to that peer at the moment; 0: none, or this interface cannot tell.
  virtual world::PortMask planes_left_out(const BenchQp& qp) = 0;
};

}  // namespace weft::cli
