// LabFaults: what is broken in a lab at the moment, as a value. A FaultEvent changes it; lab_text
// turns it into what the kernel is told, and Lab carries out the difference.
//
// How a FaultEvent is meant in a lab:
//   kLinkDown, carrier      the upper end of the link is set down: both directions are dead, and the
//                           lower end (a host, or a switch) sees that its carrier is gone
//   kLinkDown, no carrier   every packet in this direction is lost, nobody is told
//   kLinkUp                 this direction is not silent any more; with carrier the link is no
//                           longer down either
//   kLinkRate               a percentage of the link's rate; REQUIRES one that a lab holds
//   kImpair kLoss           a share of the packets in this direction, where they arrive
// Everything else is refused: a kernel does not delay, reorder, damage or duplicate packets for us,
// does not know EVs, and a lab has no processes to pause. The software switch takes every impairment.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/rate.h"
#include "base/result.h"
#include "fabric/fault.h"
#include "lab/lab_plan.h"

namespace weft::lab {

struct LabFaults {
  struct Loss {
    std::uint32_t id = 0;  // of the fault
    fabric::LinkId link = fabric::kNoLink;
    std::uint32_t ppm = 0;
    friend bool operator==(const Loss&, const Loss&) = default;
  };
  std::set<fabric::LinkId> cut;                 // pairs without carrier, by their link upward
  std::set<fabric::LinkId> silent;              // directions in which everything is lost
  std::vector<Loss> losses;                     // at most 16 a link
  std::map<fabric::LinkId, Rate> rates;         // where it is not the plan's
  std::vector<fabric::FaultEvent> impairments;  // software switch: all but loss; at most 64

  friend bool operator==(const LabFaults&, const LabFaults&) = default;
  bool empty() const { return *this == LabFaults(); }

  // Errors: kUnsupported for what a kernel cannot do, kInvalid for a link that is not there,
  // kExhausted when there are too many losses.
  Result<void> apply(const LabPlan& plan, const fabric::FaultEvent& event);
  // Errors: kInvalid for a rate above kLabRateMaxBps.
  Result<void> set_rate(const LabPlan& plan, fabric::LinkId link, Rate rate);
  // Nothing is wrong with this direction any more; a cut of the pair ends too.
  void heal(const LabPlan& plan, fabric::LinkId link);
};

}  // namespace weft::lab
