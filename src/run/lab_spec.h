// Describes a scenario's fabric as a lab. If the scenario uses trimming, which the kernel cannot
// do, the lab gets software switches.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/lab_plan.h"
#include "scenario/scenario.h"
#include "scenario/settings.h"

namespace weft::run {

inline Result<lab::LabSpec> lab_spec(const scenario::Scenario& scenario, const std::string& name) {
  WEFT_TRY(const auto topology, fabric::Topology::make(scenario.topology));
  const auto switches = scenario::resolved_switches(scenario, topology);
  const bool trims = scenario.switches.trimming_given && scenario.switches.trimming;
  return lab::LabSpec{.name = name.empty() ? "lab" : name,
                      .topology = scenario.topology,
                      .switches = trims ? lab::LabSwitches::kSoftware : lab::LabSwitches::kKernel,
                      .queue_bytes = switches.queue_bytes,
                      .last_hop_queue_bytes = switches.last_hop_queue_bytes,
                      .offloads = !trims};
}

}  // namespace weft::run
