// The doctor's judgement of planes: addresses, MTUs, ports, offloads.
#pragma once

#include <span>
#include <vector>

#include "cli/doctor.h"

namespace weft::cli {

// Appends the findings to `out`: first plane by plane, then those about all planes together.
void judge_planes(std::span<const net::PlaneFacts> planes, const DoctorQuestion& question,
                  std::vector<Finding>& out);

}  // namespace weft::cli
