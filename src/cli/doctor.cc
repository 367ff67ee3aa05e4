#include "cli/doctor.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "cli/doctor_planes.h"

namespace weft::cli {
namespace {

using Level = FindingLevel;

// With a smaller buffer, packets are lost when two or three senders send a burst before the process
// reads.
constexpr std::uint64_t kReceiveBytesMin = 1u << 20;
// From this share on a note is made: the share of the last ten seconds in which some thread waited
// for a core, in per cent.
constexpr double kPressureMax = 10;

std::string kib(std::uint64_t bytes) { return fmt::format("{} KiB", bytes / 1024); }

Finding judge_receive_buffer(const net::HostFacts& f) {
  Finding out{
      .name = "receive-buffer",
      .found = fmt::format("a UDP socket gets {} of {}", kib(f.receive_got), kib(f.receive_asked))};
  out.mend = fmt::format("sysctl -w net.core.rmem_max={}", f.receive_asked);
  if (f.receive_got < f.receive_asked) {
    out.level = f.receive_got < kReceiveBytesMin ? Level::kProblem : Level::kNote;
    out.cost = "bursts are dropped in the host and sent again; windows are kept small";
  } else if (f.rmem_max && *f.rmem_max < f.receive_asked) {
    out.level = Level::kNote;
    out.cost =
        fmt::format("this user is privileged; others get {} and drop bursts", kib(*f.rmem_max));
  } else {
    out.mend.clear();
  }
  return out;
}

Finding judge_send_buffer(const net::HostFacts& f) {
  Finding out{
      .name = "send-buffer",
      .found = fmt::format("a UDP socket gets {} of {}", kib(f.send_got), kib(f.send_asked))};
  if (f.send_got >= f.send_asked) return out;
  // The sender can fill 64 KiB in one system call, and the kernel adds its overhead. A buffer with
  // room for less than two such calls stalls the sender.
  out.level = f.send_got < (128u << 10) ? Level::kProblem : Level::kNote;
  out.cost = "senders wait more often for the kernel";
  out.mend = fmt::format("sysctl -w net.core.wmem_max={}", f.send_asked);
  return out;
}

Finding judge_runs(const net::HostFacts& f) {
  if (f.udp_segment && f.udp_gro)
    return {.name = "udp-runs", .found = "UDP_SEGMENT and UDP_GRO are supported"};
  const char* const lacking = f.udp_segment ? "UDP_GRO"
                              : f.udp_gro   ? "UDP_SEGMENT"
                                            : "UDP_SEGMENT and UDP_GRO";
  return {.level = Level::kProblem,
          .name = "udp-runs",
          .found = fmt::format("the kernel does not know {}", lacking),
          .cost = f.udp_segment ? "each packet is received by itself: about half the speed"
                                : "each packet is sent by itself: about a quarter of the speed",
          .mend = "uname -r  # Linux 5.0 or later has both; sandboxes such as gVisor do not"};
}

void judge_memory(const net::HostFacts& f, std::vector<Finding>& out) {
  if (f.memfd) {
    out.push_back({.name = "shared-memory", .found = "memfd works: processes here share memory"});
  } else {
    out.push_back({.level = Level::kNote,
                   .name = "shared-memory",
                   .found = "memfd_create fails",
                   .cost = "processes of this host talk over UDP, several times slower",
                   .mend = "docker run --security-opt seccomp=unconfined ...  # or a profile that "
                           "allows memfd_create"});
  }
  const std::string size =
      f.dev_shm_bytes ? fmt::format("{} MiB", *f.dev_shm_bytes >> 20) : "absent or unreadable";
  out.push_back(
      {.name = "dev-shm",
       .found = fmt::format("/dev/shm: {}; weft uses memfd, its size does no harm", size)});
}

Finding judge_cpus(const net::HostFacts& f) {
  Finding out{.name = "cpus", .found = fmt::format("{} CPUs", f.cpus)};
  if (f.cpu_quota && *f.cpu_quota < f.cpus) {
    out.found += fmt::format(", the control group gives {:.2f} of them", *f.cpu_quota);
    out.level = *f.cpu_quota < 1 ? Level::kProblem : Level::kNote;
    out.cost =
        "who has used up a period's quota stands still for the rest of it, up to 100 ms: "
        "peers take its paths for dead";
    out.mend =
        "docker update --cpus N CONTAINER  # or systemctl set-property UNIT CPUQuota=N00%; "
        "nothing spins under a quota unless --spin asks for it";
  } else if (f.cpus == 1) {
    out.level = Level::kNote;
    out.cost = "two ends on one CPU take turns; spinning only delays the other";
    out.mend = "weft ... --spin 0us";
  }
  return out;
}

// A process on another NUMA node than its NIC moves every packet between the nodes.
Finding judge_numa(const net::HostFacts& f) {
  Finding out{.name = "numa"};
  if (f.numa_nodes.size() < 2) {
    out.found = f.numa_nodes.empty() ? "unknown: the system names no NUMA nodes" : "one NUMA node";
    return out;
  }
  out.found = fmt::format("{} nodes; no plane is far from this process", f.numa_nodes.size());
  for (const net::PlaneFacts& plane : f.planes) {
    if (!plane.numa_node) continue;
    const auto node = std::find_if(f.numa_nodes.begin(), f.numa_nodes.end(),
                                   [&](const auto& n) { return n.number == *plane.numa_node; });
    if (node == f.numa_nodes.end() || node->cpus.empty()) continue;
    const bool near = std::any_of(f.own_cpus.begin(), f.own_cpus.end(), [&](std::uint32_t cpu) {
      return std::binary_search(node->cpus.begin(), node->cpus.end(), cpu);
    });
    if (near) continue;
    out.level = Level::kNote;
    out.found = fmt::format("{} is at node {} (CPUs {}), this process runs on CPUs {}",
                            plane.plane.interface, node->number, os::text_of_cpus(node->cpus),
                            os::text_of_cpus(f.own_cpus));
    out.cost = "every packet crosses from one node's memory to the other's";
    out.mend = fmt::format("weft ... --cpus {}", os::text_of_cpus(node->cpus));
    return out;
  }
  return out;
}

Finding judge_pressure(const net::HostFacts& f) {
  if (!f.cpu_pressure) {
    return {.name = "cpu-contention",
            .found = "unknown: no /proc/pressure/cpu (a kernel without PSI, or psi=0)"};
  }
  Finding out{.name = "cpu-contention",
              .found = fmt::format("in {:.1f} % of the last 10 s somebody waited for a CPU",
                                   *f.cpu_pressure)};
  if (*f.cpu_pressure > kPressureMax) {
    out.level = Level::kNote;
    out.cost = "measurements made now are worth little, latencies least";
    out.mend = "top -b -n 1 | head -20  # who runs";
  }
  return out;
}

Finding judge_clock(const net::HostFacts& f) {
  // Clock sources that a process reads without a system call.
  static const std::set<std::string> kFast = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                              "arch_sys_counter"};
  if (!f.clock_source) return {.name = "clock", .found = "unknown: the clock source is unreadable"};
  Finding out{.name = "clock", .found = *f.clock_source};
  if (!kFast.contains(*f.clock_source)) {
    out.level = Level::kNote;
    out.cost = "reading the time is a system call, several for each run of packets";
    out.mend = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
  }
  return out;
}

Finding judge_aes(const net::HostFacts& f, const DoctorQuestion& question) {
  if (!f.aes) return {.name = "aes", .found = "unknown: /proc/cpuinfo does not say"};
  if (*f.aes) return {.name = "aes", .found = "the CPU has instructions for AES"};
  return {.level = question.secured ? Level::kProblem : Level::kNote,
          .name = "aes",
          .found = "the CPU has no instructions for AES",
          .cost = "a job secret costs tens of cycles a byte, and its timing may leak the key",
          .mend = "qemu ... -cpu host  # where the CPU is virtual; else leave --secret-file out"};
}

Finding judge_lab(const net::HostFacts& f, const DoctorQuestion& question) {
  if (!question.lab_tools_missing.empty()) {
    return {.level = Level::kNote,
            .name = "lab",
            .found = fmt::format("not installed: {}", fmt::join(question.lab_tools_missing, ", ")),
            .cost = "`weft lab` cannot make its networks; all else works",
            .mend = "apt-get install iproute2 nftables  # or tools/install-deps network"};
  }
  if (f.net_admin) return {.name = "lab", .found = "CAP_NET_ADMIN: `weft lab` works"};
  if (f.namespaces)
    return {.name = "lab", .found = "user and network namespaces are allowed: `weft lab` works"};
  return {.level = Level::kNote,
          .name = "lab",
          .found = "no CAP_NET_ADMIN, and user namespaces are not allowed",
          .cost = "`weft lab` cannot make its networks; all else works",
          .mend =
              "sysctl -w user.max_user_namespaces=1000 "
              "kernel.apparmor_restrict_unprivileged_userns=0  # those that there are"};
}

}  // namespace

std::vector<Finding> diagnose(const net::HostFacts& facts, const DoctorQuestion& question) {
  std::vector<Finding> out;
  out.push_back(judge_receive_buffer(facts));
  out.push_back(judge_send_buffer(facts));
  out.push_back(judge_runs(facts));
  judge_planes(facts.planes, question, out);
  judge_memory(facts, out);
  out.push_back(judge_cpus(facts));
  out.push_back(judge_numa(facts));
  out.push_back(judge_pressure(facts));
  out.push_back(judge_clock(facts));
  out.push_back(judge_aes(facts, question));
  out.push_back(judge_lab(facts, question));
  return out;
}

}  // namespace weft::cli
