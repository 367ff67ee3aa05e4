#include "os/cpus.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "os/system_error.h"

namespace weft::os {
namespace {

bool take_number(std::string_view& text, std::uint32_t& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  if (parsed.ec != std::errc() || out >= kCpusMax) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return true;
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> cpus_from(std::string_view text) {
  std::vector<std::uint32_t> out;
  for (;;) {
    std::uint32_t from = 0;
    if (!take_number(text, from)) return std::nullopt;
    std::uint32_t to = from;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take_number(text, to) || to < from) return std::nullopt;
    }
    for (std::uint32_t cpu = from; cpu <= to; ++cpu) out.push_back(cpu);
    if (text.empty()) break;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string text_of_cpus(std::span<const std::uint32_t> cpus) {
  std::string out;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ",", cpus[i]);
    if (last > i) out += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return out;
}

std::vector<std::uint32_t> own_cpus() {
  std::vector<std::uint32_t> out;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return out;
  for (std::uint32_t cpu = 0; cpu < kCpusMax; ++cpu) {
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  }
  return out;
}

Result<void> run_on(std::span<const std::uint32_t> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return {};
  if (errno != EINVAL) return system_error("sched_setaffinity");
  return Error{ErrorKind::kInvalid,
               fmt::format("cpus {}: this process may run on none of them; it has {}",
                           text_of_cpus(cpus), text_of_cpus(own_cpus()))};
}

std::vector<NumaNode> numa_nodes(const std::string& sysfs) {
  std::vector<NumaNode> out;
  const std::filesystem::path folder = sysfs + "/devices/system/node";
  // Node numbers have the same format as a list of CPUs.
  const auto numbers = cpus_from(first_line(folder / "online"));
  if (!numbers) return out;
  for (const std::uint32_t number : *numbers) {
    const auto cpus = cpus_from(first_line(folder / fmt::format("node{}", number) / "cpulist"));
    out.push_back({.number = number, .cpus = cpus.value_or(std::vector<std::uint32_t>{})});
  }
  return out;
}

std::optional<std::uint32_t> numa_node_of(const std::string& interface, const std::string& sysfs) {
  const std::string line =
      first_line(fmt::format("{}/class/net/{}/device/numa_node", sysfs, interface));
  // The file holds -1 when the firmware does not know the node.
  std::uint32_t node = 0;
  std::string_view text = line;
  if (!take_number(text, node) || !text.empty()) return std::nullopt;
  return node;
}

}  // namespace weft::os
