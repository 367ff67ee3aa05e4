// The part of the doctor's judgement that is about planes: addresses, MTUs, ports, offloads.
#pragma once

#include <span>
#include <vector>

#include "cli/doctor.h"

namespace weft::cli {

// Appends to `out`, plane by plane, and what they have in common last.
void judge_planes(std::span<const net::PlaneFacts> planes, const DoctorQuestion& question,
                  std::vector<Finding>& out);

}  // namespace weft::cli
