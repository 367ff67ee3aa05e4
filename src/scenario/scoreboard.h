// Scoreboard: the state of every flow, and goodput over time. The hosts of a run write it;
// results.h reads it. One for each run, owned by the fleet; its size is fixed at construction.
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
  kCompleted,  // all messages, without error
  kFailed,     // the first error is in `status`
  kAbandoned,  // an end crashed: no result is expected
};

struct FlowRecord {
  Time first_post = kNever;
  Time last_completion{};
  std::uint64_t bytes_completed = 0;
  // Longest time between two completed messages, or between the first post and the first
  // completion.
  Duration longest_pause{};
  FlowState state = FlowState::kWaiting;
  rdma::Status status = rdma::Status::kOk;
};

// Payload completed in each step of time, summed over all flows.
class Series {
 public:
  Series() = default;
  Series(Duration step, std::size_t count) : step_(step), bytes_(count, 0) {}

  // Bytes after the last step count in the last step.
  void add(Time at, std::uint64_t bytes) {
    if (bytes_.empty()) return;
    const auto index = static_cast<std::size_t>(at.ps() / step_.ps());
    bytes_[std::min(index, bytes_.size() - 1)] += bytes;
  }
  Duration step() const { return step_; }
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }
  // Average goodput of the steps that begin in [from, until), in Gb/s; 0 if there are none.
  double gbps(Duration from, Duration until) const;

 private:
  Duration step_;
  std::vector<std::uint64_t> bytes_;
};

struct Scoreboard {
  std::vector<FlowRecord> flows;  // indexed by FlowIndex
  Series series;
  std::uint64_t flows_left = 0;  // not completed, failed or abandoned yet
};

}  // namespace weft::scenario
