// Scoreboard: what became of every flow, and goodput over time. The hosts of a run write it as they
// go; results.h reads it. One for a run, owned by the fleet; sized at construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "scenario/workload.h"
#include "transport/work.h"

namespace weft::scenario {

enum class FlowState : std::uint8_t {
  kWaiting,  // nothing posted yet
  kActive,
  kCompleted,  // every message, without error
  kFailed,     // the first error is in `status`
  kAbandoned,  // an end crashed: nothing is expected of it
};

struct FlowRecord {
  Time first_post = kNever;
  Time last_completion{};
  std::uint64_t bytes_completed = 0;
  // Between two messages completed, or from the first post to the first of them.
  Duration longest_pause{};
  FlowState state = FlowState::kWaiting;
  transport::Status status = transport::Status::kOk;
};

// Payload completed in each step of time, all flows together.
class Series {
 public:
  Series() = default;
  Series(Duration step, std::size_t count) : step_(step), bytes_(count, 0) {}

  // What comes after the last step counts there.
  void add(Time at, std::uint64_t bytes) {
    if (bytes_.empty()) return;
    const auto index = static_cast<std::size_t>(at.ps() / step_.ps());
    bytes_[std::min(index, bytes_.size() - 1)] += bytes;
  }
  Duration step() const { return step_; }
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }
  // Of the steps that begin in [from, until), in Gb/s; 0 if there are none.
  double gbps(Duration from, Duration until) const;

 private:
  Duration step_;
  std::vector<std::uint64_t> bytes_;
};

struct Scoreboard {
  std::vector<FlowRecord> flows;  // by FlowIndex
  Series series;
  std::uint64_t flows_left = 0;  // not yet completed, failed or abandoned
};

}  // namespace weft::scenario
