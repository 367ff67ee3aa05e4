// LabFaults: the current faults of a lab, as a value. A FaultEvent changes it. lab_text converts it
// to input for the kernel's tools, and Lab carries out the difference.
//
// The meaning of a FaultEvent in a lab:
//   kLinkDown, carrier      the upper end of the link is set down: both directions fail, and the
//                           lower end (a host, or a switch) loses its carrier
//   kLinkDown, no carrier   every packet in this direction is lost; both ends keep their carrier
//   kLinkUp                 this direction loses no packets any more; with carrier the link is also
//                           set up
//   kLinkRate               a percentage of the link's rate; REQUIRES a link whose rate is limited
//   kImpair kLoss           a share of the packets in this direction, dropped at the receiver
// The kernel refuses everything else: it does not delay, reorder, damage or duplicate packets for
// us and does not know EVs, and a lab has no processes to pause. The software switch accepts every
// impairment.
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
  std::set<fabric::LinkId> cut;                 // pairs without carrier, by their upward link
  std::set<fabric::LinkId> silent;              // directions in which all packets are lost
  std::vector<Loss> losses;                     // at most 16 per link
  std::map<fabric::LinkId, Rate> rates;         // those that differ from the plan
  std::vector<fabric::FaultEvent> impairments;  // for the software switch: all but loss; at most 64

  friend bool operator==(const LabFaults&, const LabFaults&) = default;
  bool empty() const { return *this == LabFaults(); }

  // Errors: kUnsupported for a fault that the kernel cannot produce, kInvalid for a link that does
  // not exist, kExhausted when there are too many losses.
  Result<void> apply(const LabPlan& plan, const fabric::FaultEvent& event);
  // Errors: kInvalid for a rate above kLabRateMaxBps.
  Result<void> set_rate(const LabPlan& plan, fabric::LinkId link, Rate rate);
  // Ends all faults of this direction; a cut of the pair ends too.
  void heal(const LabPlan& plan, fabric::LinkId link);
};

}  // namespace weft::lab
