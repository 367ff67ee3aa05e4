// A scenario's fabric as a lab.
#pragma once

#include <string>

#include "base/result.h"
#include "net/lab_plan.h"
#include "scenario/scenario.h"
#include "scenario/settings.h"

namespace weft::cli {

inline Result<net::LabSpec> lab_spec(const scenario::Scenario& scenario, const std::string& name) {
  WEFT_TRY(const auto topology, fabric::Topology::make(scenario.topology));
  const auto switches = scenario::resolved_switches(scenario, topology);
  return net::LabSpec{.name = name.empty() ? "lab" : name,
                      .topology = scenario.topology,
                      .queue_bytes = switches.queue_bytes,
                      .last_hop_queue_bytes = switches.last_hop_queue_bytes};
}

}  // namespace weft::cli
