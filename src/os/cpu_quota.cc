#include "os/cpu_quota.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace weft::os {
namespace {

// The text of a small file of /proc or /sys; empty if it cannot be read.
std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The path of this process's control group in the hierarchy of a cgroup controller. `controller` is
// "" for cgroup version 2.
std::string group_of(const std::string& controller) {
  std::istringstream in(read_text("/proc/self/cgroup"));
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    std::string name;
    bool found = controller.empty() && first + 1 == second;
    while (std::getline(names, name, ',')) found |= !controller.empty() && name == controller;
    if (found) return line.substr(second + 1);
  }
  return "/";
}

std::string parent_of(const std::string& group) {
  const std::size_t slash = group.rfind('/');
  return slash == std::string::npos || slash == 0 ? "" : group.substr(0, slash);
}

}  // namespace

// The smallest quota of the group and its ancestors, since each of them limits the process. In a
// container the path of the group may be missing; then the root of the hierarchy counts.
std::optional<double> cpu_quota() {
  std::optional<double> least;
  const auto note = [&](std::optional<double> quota) {
    if (quota) least = std::min(least.value_or(*quota), *quota);
  };
  for (std::string group = group_of("");; group = parent_of(group)) {
    note(quota_from(read_text("/sys/fs/cgroup" + group + "/cpu.max")));
    if (group.empty() || group == "/") break;
  }
  for (const char* const root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
    for (std::string group = group_of("cpu");; group = parent_of(group)) {
      note(quota_from(read_text(root + group + "/cpu.cfs_quota_us") + " " +
                      read_text(root + group + "/cpu.cfs_period_us")));
      if (group.empty() || group == "/") break;
    }
  }
  return least;
}

std::optional<double> quota_from(const std::string& cpu_max) {
  double quota = 0, period = 0;
  if (std::sscanf(cpu_max.c_str(), "%lf %lf", &quota, &period) != 2) return std::nullopt;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace weft::os
