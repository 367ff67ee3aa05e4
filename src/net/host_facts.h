// HostFacts: what this host gives a process that sends, as values. Reads the system, tries what only
// trying tells (sockets, memfd, namespaces in a child), judges nothing and changes nothing. What
// cannot be read is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "base/time.h"
#include "os/cpus.h"
#include "os/interfaces.h"

namespace weft::net {

// What became of a packet that was sent to oneself.
enum class PortCheck : std::uint8_t { kReached, kTaken, kRefused, kLost };

struct PlaneFacts {
  os::PlaneChoice plane{};
  bool is_ipv4 = true;
  std::uint32_t mtu = 0;                        // of the interface; 0: unknown
  bool running = false;                         // it has a carrier
  PortCheck first_port = PortCheck::kRefused;   // UDP 4791
  PortCheck other_ports = PortCheck::kRefused;  // the first free slot of the others
  std::uint16_t other_port = 0;                 // which that was
  std::string refusal{};                        // the system's word, for kRefused
  std::optional<bool> gro{}, gso{};
  std::string driver{};                      // of the interface; empty: unknown
  std::optional<std::uint32_t> numa_node{};  // of its device
};

struct HostFacts {
  std::vector<PlaneFacts> planes{};
  // What sockets may ask for (net.core), what was asked, and what they got: as asked for, that is
  // half of what the kernel says.
  std::optional<std::uint64_t> rmem_max{}, wmem_max{};
  std::uint64_t receive_asked = 0, receive_got = 0;
  std::uint64_t send_asked = 0, send_got = 0;
  bool udp_segment = false, udp_gro = false;
  std::optional<std::uint64_t> dev_shm_bytes{};
  bool memfd = false;
  std::uint32_t cpus = 1;                  // that this process may run on
  std::vector<std::uint32_t> own_cpus{};   // which these are, or those that the settings say
  std::vector<os::NumaNode> numa_nodes{};  // empty: unknown
  std::optional<double> cpu_quota{};       // of its control group, in CPUs; absent: no limit
  bool namespaces = false;                 // a user and a network namespace of our own
  bool net_admin = false;                  // CAP_NET_ADMIN
  std::optional<bool> aes{};               // instructions for it
  std::optional<double> cpu_pressure{};    // per cent of the last 10 s in which somebody waited
  std::optional<std::string> clock_source{};
};

struct FactQuestion {
  std::vector<Ipv6> planes{};
  std::uint32_t receive_bytes = 4u << 20, send_bytes = 256u << 10;
  std::vector<std::uint32_t> cpus{};  // as the settings say; empty: what this process has
  std::string sysfs = "/sys";
};
HostFacts host_facts(const FactQuestion& question);

// How long a world looks before it sleeps when nobody says: under a CPU quota not at all, as what is
// spent on looking is missing later.
Duration usual_spin();

// "some avg10=2.60 avg60=..." -> 2.6. "max 100000", "50000 100000" -> CPUs. For tests.
std::optional<double> pressure_from(const std::string& text);
std::optional<double> quota_from(const std::string& cpu_max);

}  // namespace weft::net
