// CPUs: as people write them, which of them this thread runs on, and which are near an interface.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::os {

inline constexpr std::uint32_t kCpusMax = 1024;

// "0-3,8": ascending, each once. Nothing: it is no such list, or has a CPU from kCpusMax on.
std::optional<std::vector<std::uint32_t>> cpus_from(std::string_view text);
// The other way round. REQUIRES ascending ones.
std::string text_of_cpus(std::span<const std::uint32_t> cpus);

// Those that this thread may run on.
std::vector<std::uint32_t> own_cpus();
// From now on this thread and those that it starts run on these only. Errors: kInvalid when it may
// run on none of them, kSystem.
Result<void> run_on(std::span<const std::uint32_t> cpus);

// --- NUMA, from sysfs; `sysfs` is "/sys" except in tests
struct NumaNode {
  std::uint32_t number = 0;
  std::vector<std::uint32_t> cpus{};
};
// Ascending; empty: the system does not say.
std::vector<NumaNode> numa_nodes(const std::string& sysfs);
// The node that an interface's device is attached to; nothing: it has none, or has no device.
std::optional<std::uint32_t> numa_node_of(const std::string& interface, const std::string& sysfs);

}  // namespace weft::os
