// One measurement of RDMA writes between two ends that are connected: how fast, how long.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/timeline.h"
#include "cli/bench_end.h"
#include "cli/bench_silence.h"
#include "os/stream.h"

namespace weft::cli {

// What one end tells the other before each size, and the answer. No iterations: it is over. An end
// that is interrupted says so at any time, with a size.
struct Round {
  std::uint64_t size = 0, iterations = 0;
  bool is_interruption() const { return iterations == 0 && size != 0; }
};
inline constexpr Round kInterruption{.size = 1};
// What is said of it at the end that hears it.
Error other_interrupted();
Result<void> tell(os::Stream& stream, const Round& round);
Result<Round> hear(os::Stream& stream);

// Whether a measurement is to end before its time: Ctrl-C here, or the other end says that it is
// over. An end that died is not noticed here; the transport does that.
class EarlyEnd {
 public:
  // Null: there is no other end.
  explicit EarlyEnd(const os::Stream* stream) : stream_(stream) {}
  // Cheap; looks at the stream now and then only.
  bool is_here(Time now);
  // The other end said so in another way.
  void set() { is_here_ = true; }

 private:
  const os::Stream* stream_;
  Time look_next_{};
  bool is_here_ = false;
};

// What is looked at during measurements.
struct Watch {
  EarlyEnd early;
  Silence silence;
};

struct BandwidthPlan {
  std::uint32_t size = 65536;
  std::uint64_t iterations = 1000;  // over all QPs
  std::uint32_t depth = 64;         // writes under way on a QP
  Duration time{};                  // as many as fit into that time, instead of `iterations`
};

struct Bandwidth {
  double seconds = 0;
  std::uint64_t bytes = 0, messages = 0;
  double longest_pause_us = 0;               // between two completions
  std::optional<base::Timeline> timeline{};  // of completions, where a time was given
  double gbps() const { return static_cast<double>(bytes) * 8e-9 / seconds; }
  double mpps() const { return static_cast<double>(messages) * 1e-6 / seconds; }
};

// Writes plan.iterations messages and waits for all of them; less when it is ended early. Errors:
// kSystem with the status of the first write that failed.
Result<Bandwidth> measure_bandwidth(BenchEnd& end, std::span<const BenchQp> qps,
                                    const BenchMemory& memory, const BandwidthPlan& plan,
                                    Watch& watch);

// Sends `size` bytes and waits until as many came back, plan times or until it is ended early: half
// of each round trip, in us.
// The last byte of a message counts the rounds, so that it shows when it is there. `begins`: this
// end sends first. `completions`: a round is over when our own write is complete, too.
struct LatencyPlan {
  std::uint32_t size = 8;
  std::uint64_t iterations = 1000;
  bool begins = true, completions = false;
};
Result<std::vector<double>> measure_latency(BenchEnd& end, const BenchQp& qp,
                                            const BenchMemory& memory, const LatencyPlan& plan,
                                            Watch& watch);

}  // namespace weft::cli
