// RunShape: do data packets arrive joined in runs, or one by one? A packet that arrives alone takes
// more space in the receive buffer. The answer is updated after every kRunsJudged runs. A value.
#pragma once

#include <cstdint>

namespace weft::net {

class RunShape {
 public:
  static constexpr std::uint64_t kRunsJudged = 256;

  bool packets_arrive_singly() const { return is_single_; }
  // `runs.count` runs of data arrived, with `runs.packets` packets. True: packets_arrive_singly() has changed.
  struct Runs {
    std::uint64_t count = 0, packets = 0;
  };
  bool note(const Runs& runs) {
    runs_ += runs.count;
    packets_ += runs.packets;
    if (runs_ < kRunsJudged) return false;
    const bool single = packets_ < 2 * runs_;
    runs_ = packets_ = 0;
    const bool changed = single != is_single_;
    is_single_ = single;
    return changed;
  }

 private:
  std::uint64_t runs_ = 0, packets_ = 0;  // since the last decision
  bool is_single_ = false;
};

}  // namespace weft::net
