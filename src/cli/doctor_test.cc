#include "cli/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "os/address.h"

namespace weft::cli {
namespace {

using net::PortCheck;

net::PlaneFacts plane(std::uint8_t number, std::uint32_t mtu) {
  return {.plane = {base::ipv4(10, 0, number, 7), "eth" + std::to_string(number)},
          .mtu = mtu,
          .running = true,
          .first_port = PortCheck::kReached,
          .other_ports = PortCheck::kReached,
          .other_port = 14'792,
          .gro = true,
          .gso = true};
}

net::HostFacts healthy() {
  return {.planes = {plane(1, 9000), plane(2, 9000)},
          .rmem_max = 4u << 20,
          .wmem_max = 4u << 20,
          .receive_asked = 4u << 20,
          .receive_got = 4u << 20,
          .send_asked = 256u << 10,
          .send_got = 256u << 10,
          .udp_segment = true,
          .udp_gro = true,
          .dev_shm_bytes = 64u << 20,
          .memfd = true,
          .cpus = 8,
          .namespaces = true,
          .aes = true,
          .cpu_pressure = 0.5,
          .clock_source = "tsc"};
}

// The finding with this name. The test fails if there is none.
Finding find(const net::HostFacts& facts, const std::string& name, DoctorQuestion question = {}) {
  for (const Finding& f : diagnose(facts, question)) {
    if (f.name == name) return f;
  }
  ADD_FAILURE() << "no finding " << name;
  return {};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

FindingLevel worst(const net::HostFacts& facts) {
  FindingLevel level = FindingLevel::kOk;
  for (const Finding& f : diagnose(facts, {})) level = std::max(level, f.level);
  return level;
}

TEST(Doctor, HealthyHostHasNoProblem) {
  for (const Finding& f : diagnose(healthy(), {})) {
    EXPECT_EQ(f.level, FindingLevel::kOk) << f.name;
    EXPECT_EQ(f.mend, "") << f.name;
    EXPECT_NE(f.found, "") << f.name;
  }
}

TEST(Doctor, EveryFindingThatIsNotOkHasACostAndARepairCommand) {
  net::HostFacts bad;  // every fact is as bad as possible
  bad.planes = {plane(1, 500), plane(2, 1500), {.plane = {base::ipv4(10, 9, 9, 9), ""}}};
  bad.planes[0].gro = bad.planes[0].gso = false;
  bad.planes[0].running = false;
  bad.planes[1].other_ports = PortCheck::kLost;
  bad.receive_asked = bad.send_asked = 4u << 20;
  bad.cpu_quota = 0.5;
  bad.aes = false;
  bad.cpu_pressure = 50;
  bad.clock_source = "hpet";
  int wrong = 0;
  for (const Finding& f : diagnose(bad, {})) {
    if (f.level == FindingLevel::kOk) continue;
    ++wrong;
    EXPECT_NE(f.cost, "") << f.name;
    EXPECT_NE(f.mend, "") << f.name;
    EXPECT_EQ((f.found + f.cost + f.mend).find('\n'), std::string::npos) << f.name;
  }
  EXPECT_GE(wrong, 15);
  EXPECT_EQ(worst(bad), FindingLevel::kProblem);
}

TEST(Doctor, SmallReceiveBufferIsAProblemUnlessMoreIsGranted) {
  net::HostFacts f = healthy();
  f.rmem_max = 212'992;
  // A privileged process may get a buffer larger than rmem_max.
  EXPECT_EQ(find(f, "receive-buffer").level, FindingLevel::kNote);
  f.receive_got = 2u << 20;
  EXPECT_EQ(find(f, "receive-buffer").level, FindingLevel::kNote);
  f.receive_got = 212'992;
  const Finding small = find(f, "receive-buffer");
  EXPECT_EQ(small.level, FindingLevel::kProblem);
  EXPECT_EQ(small.mend, "sysctl -w net.core.rmem_max=4194304");
}

TEST(Doctor, PlaneMtuTooSmallForThePayloadIsAProblem) {
  net::HostFacts f = healthy();
  f.planes = {plane(1, 1500)};
  Finding mtu = find(f, "mtu 10.0.1.7");
  EXPECT_EQ(mtu.level, FindingLevel::kProblem);  // the setting `mtu` is 4096
  EXPECT_TRUE(has(mtu.mend, "--mtu 1024")) << mtu.mend;
  EXPECT_EQ(find(f, "mtu 10.0.1.7", {.payload = 1024}).level, FindingLevel::kNote);
  f.planes = {plane(1, 500)};
  EXPECT_TRUE(has(find(f, "mtu 10.0.1.7", {.payload = 1024}).found, "no payload fits"));
  EXPECT_EQ(find(f, "mtu 10.0.1.7", {.payload = 0}).level, FindingLevel::kProblem);
  // Sealed packets are longer than others, and IPv6 packets longer than IPv4 packets.
  f.planes = {plane(1, 4180)};
  EXPECT_EQ(find(f, "mtu 10.0.1.7").level, FindingLevel::kOk);
  EXPECT_EQ(find(f, "mtu 10.0.1.7", {.secured = true}).level, FindingLevel::kProblem);
  EXPECT_TRUE(has(find(f, "mtu 10.0.1.7", {.secured = true}).mend, "--mtu 2048"));
}

TEST(Doctor, PlanesOfDifferentMtuAreReported) {
  net::HostFacts f = healthy();
  f.planes = {plane(1, 9000), plane(2, 4500)};
  const Finding mismatch = find(f, "mtu-mismatch");
  EXPECT_EQ(mismatch.level, FindingLevel::kNote);
  EXPECT_EQ(mismatch.mend, "ip link set dev eth2 mtu 9000");
}

TEST(Doctor, PortsInUseOrBlockedByFiltersAreReported) {
  net::HostFacts f = healthy();
  f.planes[0].first_port = PortCheck::kTaken;
  EXPECT_EQ(find(f, "ports 10.0.1.7").level, FindingLevel::kNote);
  EXPECT_EQ(find(f, "ports 10.0.2.7").level, FindingLevel::kOk);
  f.planes[0].first_port = PortCheck::kLost;
  EXPECT_EQ(find(f, "ports 10.0.1.7").level, FindingLevel::kProblem);
  EXPECT_TRUE(has(find(f, "ports 10.0.1.7").mend, "udp dport { 4791, 14792-15046 } accept"));
  f.planes[0].first_port = PortCheck::kTaken;
  f.planes[0].other_ports = PortCheck::kTaken;
  EXPECT_EQ(find(f, "ports 10.0.1.7").level, FindingLevel::kProblem);
  f.planes[0].other_ports = PortCheck::kRefused;
  f.planes[0].refusal = "bind: Permission denied";
  EXPECT_TRUE(has(find(f, "ports 10.0.1.7").found, "Permission denied"));
}

TEST(Doctor, OffloadsThatAreOffAreReportedExceptGroOfVeth) {
  net::HostFacts f = healthy();
  f.planes[0].gro = false;
  EXPECT_EQ(find(f, "offloads eth1").mend, "ethtool -K eth1 gro on");
  f.planes[0].driver = "veth";
  EXPECT_EQ(find(f, "offloads eth1").level, FindingLevel::kOk);
  f.planes[0].gso = false;
  EXPECT_EQ(find(f, "offloads eth1").level, FindingLevel::kProblem);
  f.planes[0].gro = f.planes[0].gso = std::nullopt;
  EXPECT_EQ(find(f, "offloads eth1").level, FindingLevel::kOk);
  EXPECT_TRUE(has(find(f, "offloads eth1").found, "unknown"));
  f.udp_gro = false;
  EXPECT_EQ(find(f, "udp-runs").level, FindingLevel::kProblem);
}

TEST(Doctor, CpuQuotaBelowTheCoresIsReported) {
  net::HostFacts f = healthy();
  f.cpu_quota = 16;
  EXPECT_EQ(find(f, "cpus").level, FindingLevel::kOk);
  f.cpu_quota = 2;
  EXPECT_EQ(find(f, "cpus").level, FindingLevel::kNote);
  f.cpu_quota = 0.5;
  EXPECT_EQ(find(f, "cpus").level, FindingLevel::kProblem);
}

TEST(Doctor, SmallDevShmIsNotAProblem) {
  net::HostFacts f = healthy();
  EXPECT_EQ(find(f, "dev-shm").level, FindingLevel::kOk);
  EXPECT_TRUE(has(find(f, "dev-shm").found, "64 MiB"));
  f.memfd = false;
  EXPECT_EQ(find(f, "shared-memory").level, FindingLevel::kNote);
}

TEST(Doctor, MissingAesIsAProblemOnlyWithAJobSecret) {
  net::HostFacts f = healthy();
  f.aes = false;
  EXPECT_EQ(find(f, "aes").level, FindingLevel::kNote);
  EXPECT_EQ(find(f, "aes", {.secured = true}).level, FindingLevel::kProblem);
}

TEST(Doctor, InterfaceThatIsDownIsOneProblem) {
  net::HostFacts f = healthy();
  for (net::PlaneFacts& p : f.planes) {
    p.plane.interface = "lo";
    p.running = false;
    p.first_port = p.other_ports =
        PortCheck::kLost;  // the packet was lost, but not because of a filter
  }
  ASSERT_GE(f.planes.size(), 2u);
  int problems = 0;
  for (const Finding& found : diagnose(f, {})) problems += found.level == FindingLevel::kProblem;
  EXPECT_EQ(problems, 1);
  EXPECT_EQ(find(f, "link lo").level, FindingLevel::kProblem);
}

TEST(Doctor, LabWithoutNamespacesOrPrivilegeIsReported) {
  net::HostFacts f = healthy();
  f.namespaces = false;
  EXPECT_EQ(find(f, "lab").level, FindingLevel::kNote);
  f.net_admin = true;
  EXPECT_EQ(find(f, "lab").level, FindingLevel::kOk);
  const DoctorQuestion incomplete{.lab_tools_missing = {"tc", "nft"}};
  EXPECT_EQ(find(f, "lab", incomplete).level, FindingLevel::kNote);
  EXPECT_EQ(find(f, "lab", incomplete).found, "not installed: tc, nft");
}

TEST(Doctor, PlaneOnAnotherNumaNodeIsReported) {
  net::HostFacts facts = healthy();
  EXPECT_EQ(find(facts, "numa").level, FindingLevel::kOk);
  facts.numa_nodes = {{.number = 0, .cpus = {0, 1, 2, 3}}, {.number = 1, .cpus = {4, 5, 6, 7}}};
  facts.own_cpus = {0, 1};
  // the NUMA nodes of the interfaces are unknown
  EXPECT_EQ(find(facts, "numa").level, FindingLevel::kOk);
  facts.planes[0].numa_node = 0;
  facts.planes[1].numa_node = 1;
  const Finding far = find(facts, "numa");
  EXPECT_EQ(far.level, FindingLevel::kNote);
  EXPECT_TRUE(has(far.found, "eth2 is at node 1 (CPUs 4-7), this process runs on CPUs 0-1"));
  EXPECT_TRUE(has(far.mend, "--cpus 4-7"));
  facts.own_cpus = {0, 4};
  EXPECT_EQ(find(facts, "numa").level, FindingLevel::kOk);
}

}  // namespace
}  // namespace weft::cli
