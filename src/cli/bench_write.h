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

// A message of the leading end before each size; the following end sends it back as its reply. With
// iterations == 0 the run is over: with size == 0 at its regular end, otherwise after an
// interruption. An interrupted end may send the latter at any time.
struct Round {
  std::uint64_t size = 0, iterations = 0;
  bool is_interruption() const { return iterations == 0 && size != 0; }
};
inline constexpr Round kInterruption{.size = 1};
// The error of the end whose peer was interrupted.
Error other_interrupted();
Result<void> send_round(os::Stream& stream, const Round& round);
Result<Round> receive_round(os::Stream& stream);

// Whether a measurement must end early: after Ctrl-C in this process, or when the other end says
// that the run is over. The death of the peer is not detected here, but by the transport.
class EarlyEnd {
 public:
  // `stream`: to the other end; null if both ends are in this process.
  explicit EarlyEnd(const os::Stream* stream) : stream_(stream) {}
  // Cheap: reads the stream only every 50 ms.
  bool must_end(Time now);
  // Call this when a message that was read elsewhere ends the run.
  void set() { must_end_ = true; }

 private:
  const os::Stream* stream_;
  Time look_next_{};
  bool must_end_ = false;
};

// What is checked during a measurement.
struct Watch {
  EarlyEnd early;
  Silence silence;
};

struct BandwidthPlan {
  std::uint32_t size = 65536;
  std::uint64_t iterations = 1000;  // over all QPs
  std::uint32_t depth = 64;         // the most writes in flight on a QP
  Duration time{};                  // if set, replaces `iterations`: post writes for this long
};

struct Bandwidth {
  double seconds = 0;
  std::uint64_t bytes = 0, messages = 0;
  double longest_pause_us = 0;               // the longest time between two consecutive completions
  std::optional<base::Timeline> timeline{};  // of completions; only if `time` was set
  double gbps() const { return static_cast<double>(bytes) * 8e-9 / seconds; }
  double mpps() const { return static_cast<double>(messages) * 1e-6 / seconds; }
};

// Posts plan.iterations writes and waits for all completions; fewer writes if the run must end
// early. Errors: kSystem with the status of the first write that failed.
Result<Bandwidth> measure_bandwidth(BenchEnd& end, const BenchLink& link, const BenchMemory& memory,
                                    const BandwidthPlan& plan, Watch& watch);

// Ping-pong: each end in turn sends `size` bytes and waits for the other end's bytes, `iterations`
// times or until the run must end early. Returns half of each round trip, in us. The last byte of
// each message is the number of the round, so that its arrival can be seen in memory. `begins`:
// this end sends first. `completions`: each round also waits for the completion of this end's
// write.
struct LatencyPlan {
  std::uint32_t size = 8;
  std::uint64_t iterations = 1000;
  bool begins = true, completions = false;
};
Result<std::vector<double>> measure_latency(BenchEnd& end, const BenchLink& link,
                                            const BenchMemory& memory, const LatencyPlan& plan,
                                            Watch& watch);

}  // namespace weft::cli
