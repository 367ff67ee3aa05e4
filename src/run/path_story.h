// PathStory: which ports and EVs went bad and came back, between one fault and the next? It is read
// from a trace, so that the same scenario in simulation and in a lab can be compared.
//
// The story has what differs between the end of a phase and its beginning. What goes bad and comes
// back within one phase is only counted, because its timing differs between machines. EVs of a port
// that is down are ignored.
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
  // Faults change now: records that are read later belong to the next phase.
  void next_phase();

  // One line for each phase in which something changed: "phase 2: condemned host 0 plane 1 EV
  // 0x01000000, ...; revived ...; port down host 3 plane 0". Ends the last phase.
  std::vector<std::string> lines();
  // How many EVs were condemned and revived within one phase.
  std::uint32_t passing() const { return passing_; }

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
  std::uint32_t phase_ = 0, passing_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace weft::run
