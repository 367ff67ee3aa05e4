// BenchEnd: one end of `weft bench write`, behind one of two interfaces: the engine itself
// (bench_engine.h), or mrc.h as any program has it (bench_mrc.h). How QPs are made, posted on and
// polled is all in which the two differ; the benchmark itself is the same.
//
// Owned by the benchmark and called from one thread. Memory is given when it is opened and outlives
// it. At most the QPs that it was opened for.
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

// What is sent, and where the other end's bytes land.
struct BenchMemory {
  std::span<std::byte> source{}, landing{};
};

// A QP of ours and the peer's region behind it.
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
    engine::Hello hello{};  // what to tell the peer of it
  };
  virtual Result<Created> create_qp() = 0;
  // As NetEnd has them.
  virtual Result<engine::Offer> offer(const engine::Hello& peer) = 0;
  virtual Result<engine::NetEnd::Carrier> connect(const BenchQp& qp,
                                                  const engine::Offer& agreed) = 0;

  // --- work
  struct Write {
    std::uint64_t offset = 0;  // in both regions
    std::uint32_t size = 0;
  };
  // Errors: kExhausted: its queue is full.
  virtual Result<void> post(const BenchQp& qp, const Write& write) = 0;
  // Drives the network until something may have changed, or `limit`.
  virtual void progress(Time limit) = 0;
  // How many writes completed. Errors: kSystem with the status of the first that failed.
  virtual Result<std::uint64_t> take() = 0;
  // Nothing is posted and nothing expected until then: peers are answered.
  virtual void answer(Time until) = 0;
  // As of the last progress.
  virtual Time now() const = 0;

  // --- what is known
  virtual std::size_t plane_count() const = 0;
  virtual CounterTable counters() = 0;
  // The congestion window, where this interface can tell it.
  virtual std::optional<std::int64_t> window_bytes(const BenchQp& qp) = 0;
  // Planes that carry nothing to that peer just now, where this interface can tell it; 0: none.
  virtual world::PortMask planes_left_out(const BenchQp& qp) = 0;
};

}  // namespace weft::cli
