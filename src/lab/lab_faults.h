// LabFaults: the current faults of a lab, as a value. A FaultEvent changes it. lab_text converts it
// to input for the kernel's tools, and Lab carries out the difference.
//
// The effect of each kind of FaultEvent in a lab:
//   kLinkDown, carrier      the upper end of the link is set down: both directions fail, and the
//                           lower end (a host, or a switch) loses its carrier
//   kLinkDown, no carrier   every packet in this direction is lost; both ends keep their carrier
//   kLinkUp                 this direction loses no packets any more; with carrier the link is also
//                           set up
//   kLinkRate               a percentage of the link's rate; REQUIRES a link whose rate is limited
//   kImpair kLoss           a share of the packets in this direction, dropped at the receiver
// With switches of the kernel everything else is refused: the kernel's tools used here do not
// delay, reorder, damage or duplicate packets and know no EVs, and a lab has no processes to pause.
// The software switch accepts every impairment.
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
  std::set<fabric::LinkId> silent;              // directions that lose all packets
  std::vector<Loss> losses;                     // at most 16 per link
  std::map<fabric::LinkId, Rate> rates;         // rates that differ from the plan
  std::vector<fabric::FaultEvent> impairments;  // for the software switch: all but loss; at most 64

  friend bool operator==(const LabFaults&, const LabFaults&) = default;
  bool empty() const { return *this == LabFaults(); }

  // Applies an event. Errors: kUnsupported for a fault that the switches cannot produce, kInvalid
  // for a link that does not exist, kExhausted when there are too many losses or impairments.
  Result<void> apply(const LabPlan& plan, const fabric::FaultEvent& event);
  // Limits a link to a rate. Errors: kInvalid for a rate above kLabRateMaxBps.
  Result<void> set_rate(const LabPlan& plan, fabric::LinkId link, Rate rate);
  // Ends all faults of this direction of a link. If the link is cut, both directions are repaired.
  void heal(const LabPlan& plan, fabric::LinkId link);
};

}  // namespace weft::lab
