// HostFacts: the resources and limits of this host that concern a Weft process, as values. Facts
// that no file tells are found by trying: sockets, memfd, and namespaces in a child process.
// Nothing is judged and nothing is changed. A fact that cannot be determined is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "os/cpus.h"
#include "os/interfaces.h"

namespace weft::net {

// The result of sending a packet to this host itself.
enum class PortCheck : std::uint8_t { kReached, kTaken, kRefused, kLost };

struct PlaneFacts {
  os::PlaneChoice plane{};
  bool is_ipv4 = true;
  std::uint32_t mtu = 0;                        // of the interface; 0: unknown
  bool running = false;                         // the interface has a carrier
  PortCheck first_port = PortCheck::kRefused;   // UDP 4791, the port of slot 0
  PortCheck other_ports = PortCheck::kRefused;  // UDP ports of the first free slot above 0
  std::uint16_t other_port = 0;                 // the listening port of that slot
  std::string refusal{};                        // the system's error message, for kRefused
  std::optional<bool> gro{}, gso{};
  std::string driver{};                      // of the interface; empty: unknown
  std::optional<std::uint32_t> numa_node{};  // of the interface's device
};

struct HostFacts {
  std::vector<PlaneFacts> planes{};
  // Socket buffers: the limit (net.core), the size requested, and the size given. The kernel
  // reports twice the size given; here it is halved, to be compared with the request.
  std::optional<std::uint64_t> rmem_max{}, wmem_max{};
  std::uint64_t receive_asked = 0, receive_got = 0;
  std::uint64_t send_asked = 0, send_got = 0;
  bool udp_segment = false, udp_gro = false;
  std::optional<std::uint64_t> dev_shm_bytes{};
  bool memfd = false;
  std::uint32_t cpus = 1;                  // CPUs that this process may run on
  std::vector<std::uint32_t> own_cpus{};   // their numbers, or those of the settings
  std::vector<os::NumaNode> numa_nodes{};  // empty: unknown
  std::optional<double> cpu_quota{};       // CPUs that the control group allows; absent: no limit
  bool namespaces = false;                 // a user and a network namespace can be made
  bool net_admin = false;                  // CAP_NET_ADMIN
  std::optional<bool> aes{};               // the CPU has AES instructions
  // Per cent of the last 10 s in which some thread waited for a CPU.
  std::optional<double> cpu_pressure{};
  std::optional<std::string> clock_source{};
};

struct FactQuestion {
  std::vector<Ipv6> planes{};
  std::uint32_t receive_bytes = 4u << 20, send_bytes = 256u << 10;
  std::vector<std::uint32_t> cpus{};  // named in the settings; empty: those of this process
  std::string sysfs = "/sys";
};
HostFacts host_facts(const FactQuestion& question);

// Parses the text of /proc/pressure/cpu; public for tests: "some avg10=2.60 avg60=..." gives 2.6.
std::optional<double> pressure_from(const std::string& text);

}  // namespace weft::net
