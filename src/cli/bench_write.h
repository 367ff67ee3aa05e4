// One measurement of RDMA writes between two connected ends: bandwidth or latency.
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

// The message that one end sends before each size, and the reply to it. No iterations: the run is
// over. An interrupted end may send it at any time, then with a size.
struct Round {
  std::uint64_t size = 0, iterations = 0;
  bool is_interruption() const { return iterations == 0 && size != 0; }
};
inline constexpr Round kInterruption{.size = 1};
// The error at the end that receives the peer's interruption.
Error other_interrupted();
Result<void> send_round(os::Stream& stream, const Round& round);
Result<Round> receive_round(os::Stream& stream);

// Whether a measurement must end early: after Ctrl-C here, or when the other end says that the run
// is over. A peer that died is not noticed here but by the transport.
class EarlyEnd {
 public:
  // Null: there is no other end.
  explicit EarlyEnd(const os::Stream* stream) : stream_(stream) {}
  // Cheap: reads the stream only at intervals.
  bool is_here(Time now);
  // Call it when another message of the other end ends the run.
  void set() { is_here_ = true; }

 private:
  const os::Stream* stream_;
  Time look_next_{};
  bool is_here_ = false;
};

// Conditions that are checked during a measurement.
struct Watch {
  EarlyEnd early;
  Silence silence;
};

struct BandwidthPlan {
  std::uint32_t size = 65536;
  std::uint64_t iterations = 1000;  // over all QPs
  std::uint32_t depth = 64;         // writes in flight on a QP
  Duration time{};  // if set, it replaces `iterations`: as many writes as fit into that time
};

struct Bandwidth {
  double seconds = 0;
  std::uint64_t bytes = 0, messages = 0;
  double longest_pause_us = 0;               // between two consecutive completions
  std::optional<base::Timeline> timeline{};  // of completions, if `time` was set
  double gbps() const { return static_cast<double>(bytes) * 8e-9 / seconds; }
  double mpps() const { return static_cast<double>(messages) * 1e-6 / seconds; }
};

// Writes plan.iterations messages and waits for all of them; fewer if the run is ended early.
// Errors: kSystem with the status of the first write that failed.
Result<Bandwidth> measure_bandwidth(BenchEnd& end, const BenchLink& link, const BenchMemory& memory,
                                    const BandwidthPlan& plan, Watch& watch);

// Ping-pong: sends `size` bytes and waits until as many came back, `iterations` times or until the
// run is ended early. Returns half of each round trip, in us. The last byte of each message is the
// number of the round, so that its arrival is visible in memory. `begins`: this end sends first.
// `completions`: a round also waits for the completion of our own write.
struct LatencyPlan {
  std::uint32_t size = 8;
  std::uint64_t iterations = 1000;
  bool begins = true, completions = false;
};
Result<std::vector<double>> measure_latency(BenchEnd& end, const BenchLink& link,
                                            const BenchMemory& memory, const LatencyPlan& plan,
                                            Watch& watch);

}  // namespace weft::cli
