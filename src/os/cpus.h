// CPUs: lists of CPUs as text, the CPUs of the calling thread, and the CPUs near a network
// interface.
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

// Parses a list such as "0-3,8". The result is ascending, without duplicates. nullopt: the text is
// not such a list, or it names a CPU of kCpusMax or above.
std::optional<std::vector<std::uint32_t>> cpus_from(std::string_view text);
// The list as text; the inverse of cpus_from(). REQUIRES CPUs in ascending order.
std::string text_of_cpus(std::span<const std::uint32_t> cpus);

// The CPUs that the calling thread may run on.
std::vector<std::uint32_t> own_cpus();
// Restricts the calling thread, and threads that it starts later, to these CPUs. Errors: kInvalid
// when the thread may run on none of them, kSystem.
Result<void> run_on(std::span<const std::uint32_t> cpus);

// --- NUMA nodes, read from sysfs; `sysfs` is "/sys" except in tests
struct NumaNode {
  std::uint32_t number = 0;
  std::vector<std::uint32_t> cpus{};
};
// All NUMA nodes, by ascending number. Empty: the system does not say.
std::vector<NumaNode> numa_nodes(const std::string& sysfs);
// The NUMA node of a network interface's device. nullopt: the node is unknown, or the interface has
// no device.
std::optional<std::uint32_t> numa_node_of(const std::string& interface, const std::string& sysfs);

}  // namespace weft::os
