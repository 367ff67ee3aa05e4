// The part of `weft doctor` that judges planes: addresses, MTUs, ports, offloads.
#pragma once

#include <span>
#include <vector>

#include "cli/doctor.h"

namespace weft::cli {

// Appends findings to `out`: first for each plane, then for all planes together.
void judge_planes(std::span<const net::PlaneFacts> planes, const DoctorQuestion& question,
                  std::vector<Finding>& out);

}  // namespace weft::cli
