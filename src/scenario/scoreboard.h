// Scoreboard: the state of every flow, and goodput over time. The hosts of a run write to it, and
// results.h reads it. There is one for each run, owned by the fleet; its size is fixed at
// construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "rdma/rdma.h"
#include "scenario/workload.h"

namespace weft::scenario {

enum class FlowState : std::uint8_t {
  kWaiting,  // nothing is posted yet
  kActive,
  kCompleted,  // all messages completed without error
  kFailed,     // `status` has the first error
  kAbandoned,  // the host or the peer crashed: no result is expected
};

struct FlowRecord {
  Time first_post = kNever;
  Time last_completion{};
  std::uint64_t bytes_completed = 0;
  // The longest time without a completed message, between the first post and the last completion.
  Duration longest_pause{};
  FlowState state = FlowState::kWaiting;
  rdma::Status status = rdma::Status::kOk;
};

// Payload that completed in each interval, summed over all flows.
class Series {
 public:
  Series() = default;
  Series(Duration step, std::size_t count) : step_(step), bytes_(count, 0) {}

  // Bytes after the last interval are added to the last interval.
  void add(Time at, std::uint64_t bytes) {
    if (bytes_.empty()) return;
    const auto index = static_cast<std::size_t>(at.ps() / step_.ps());
    bytes_[std::min(index, bytes_.size() - 1)] += bytes;
  }
  Duration step() const { return step_; }
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }
  // Average goodput, in Gb/s, of the intervals that begin in [from, until); 0 if there are none.
  double gbps(Duration from, Duration until) const;

 private:
  Duration step_;
  std::vector<std::uint64_t> bytes_;
};

struct Scoreboard {
  std::vector<FlowRecord> flows;  // indexed by FlowIndex
  Series series;
  std::uint64_t flows_left = 0;  // flows that have not yet completed, failed or been abandoned
};

}  // namespace weft::scenario
