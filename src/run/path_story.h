// PathStory: which ports and EVs became bad or good in each phase of a run; a phase begins whenever
// faults change. It is computed from a trace, so that a simulation and a lab run of the same
// scenario can be compared.
//
// The story reports differences between the beginning and the end of a phase. An EV that becomes
// bad and good again within one phase is only counted, because the timing differs between machines.
// EVs of a port that is down are ignored.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "base/trace.h"

namespace weft::run {

class PathStory {
 public:
  void read(std::span<const TraceRecord> records);
  // The faults change now: records that are read after this call belong to the next phase.
  void next_phase();

  // One line for each phase in which something changed: "phase 2: down host 3 port 0; condemned
  // host 0 plane 1 EV 0x1000000; revived ..." (condemned: became ASSUMED_BAD; revived: is usable
  // again). Ends the last phase.
  std::vector<std::string> lines();
  // How many times an EV became ASSUMED_BAD and was usable again within one phase.
  std::uint32_t transient_count() const { return transient_count_; }

 private:
  struct Path {
    std::uint32_t host = 0;
    std::uint8_t plane = 0;
    std::uint32_t ev = 0;
    friend auto operator<=>(const Path&, const Path&) = default;
  };
  struct Port {
    std::uint32_t host = 0;
    std::uint8_t plane = 0;
    friend auto operator<=>(const Port&, const Port&) = default;
  };
  void end_phase();

  std::set<Path> bad_, bad_before_;
  std::set<Port> down_, down_before_;
  std::uint32_t phase_ = 0, transient_count_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace weft::run
