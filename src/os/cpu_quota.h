// The CPU quota of this process's control group.
#pragma once

#include <optional>
#include <string>

namespace weft::os {

// The quota in CPUs; nullopt: there is no limit.
std::optional<double> cpu_quota();

// Parses the text of cpu.max; public for tests: "50000 100000" gives 0.5 CPUs, and "max 100000"
// gives no quota.
std::optional<double> quota_from(const std::string& cpu_max);

}  // namespace weft::os
