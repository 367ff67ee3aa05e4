#include "net/host_facts.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "net/plane_facts.h"
#include "os/cpu_quota.h"
#include "os/file_descriptor.h"

namespace weft::net {
namespace {

// The text of a small file of /proc or /sys; empty if it cannot be read.
std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  std::istringstream in(read_text(path));
  std::uint64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

std::optional<std::string> read_word(const std::string& path) {
  std::istringstream in(read_text(path));
  std::string word;
  if (!(in >> word)) return std::nullopt;
  return word;
}

bool try_memfd() {
  const os::FileDescriptor fd(memfd_create("weft-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return fd.is_open() && ftruncate(fd.get(), 4096) == 0;
}

// Creates a user and a network namespace in a child process, so that this process keeps its own.
bool try_namespaces() {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) _exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool has_net_admin() {
  const std::string name = "CapEff:";
  std::istringstream in(read_text("/proc/self/status"));
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const auto set = std::strtoull(line.c_str() + name.size(), nullptr, 16);
    return (set >> CAP_NET_ADMIN & 1) != 0;
  }
  return false;
}

// /proc/cpuinfo lists the features in the line "flags" on x86 and "Features" on ARM.
std::optional<bool> has_aes() {
  std::istringstream in(read_text("/proc/cpuinfo"));
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    return (line + " ").find(" aes ") != std::string::npos;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> size_of_dev_shm() {
  struct statvfs about {};
  if (statvfs("/dev/shm", &about) != 0) return std::nullopt;
  return std::uint64_t{about.f_blocks} * about.f_frsize;
}

}  // namespace

std::optional<double> pressure_from(const std::string& text) {
  double percent = 0;
  if (std::sscanf(text.c_str(), "some avg10=%lf", &percent) != 1) return std::nullopt;
  return percent;
}

HostFacts host_facts(const FactQuestion& question) {
  HostFacts facts;
  facts.planes = plane_facts(question.planes);
  facts.rmem_max = read_number("/proc/sys/net/core/rmem_max");
  facts.wmem_max = read_number("/proc/sys/net/core/wmem_max");
  facts.receive_asked = question.receive_bytes;
  facts.send_asked = question.send_bytes;
  const SocketFacts socket =
      socket_facts({.receive_bytes = question.receive_bytes, .send_bytes = question.send_bytes});
  facts.receive_got = socket.receive_bytes;
  facts.send_got = socket.send_bytes;
  facts.udp_segment = socket.udp_segment;
  facts.udp_gro = socket.udp_gro;
  facts.dev_shm_bytes = size_of_dev_shm();
  facts.memfd = try_memfd();
  facts.cpus = static_cast<std::uint32_t>(std::max<std::size_t>(os::own_cpus().size(), 1));
  facts.own_cpus = question.cpus.empty() ? os::own_cpus() : question.cpus;
  facts.numa_nodes = os::numa_nodes(question.sysfs);
  for (PlaneFacts& plane : facts.planes)
    plane.numa_node = os::numa_node_of(plane.plane.interface, question.sysfs);
  facts.cpu_quota = os::cpu_quota();
  facts.namespaces = try_namespaces();
  facts.net_admin = has_net_admin();
  facts.aes = has_aes();
  facts.cpu_pressure = pressure_from(read_text("/proc/pressure/cpu"));
  facts.clock_source =
      read_word("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  return facts;
}

}  // namespace weft::net
