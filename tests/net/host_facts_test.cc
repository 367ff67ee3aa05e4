#include "net/host_facts.h"

#include <gtest/gtest.h>

#include "os/address.h"

namespace weft::net {
namespace {

TEST(HostFacts, KernelTextOfPressureIsParsed) {
  EXPECT_DOUBLE_EQ(pressure_from("some avg10=2.60 avg60=16.39 avg300=23.38 total=1\n").value(),
                   2.6);
  EXPECT_FALSE(pressure_from(""));
}

TEST(HostFacts, FactsOfThisHostAreFound) {
  const HostFacts facts =
      host_facts({.planes = {base::ipv4(127, 0, 1, 1), base::ipv4(203, 0, 113, 1)},
                  .receive_bytes = 100'000,
                  .send_bytes = 50'000});
  ASSERT_EQ(facts.planes.size(), 2u);
  const PlaneFacts& here = facts.planes[0];
  EXPECT_EQ(here.plane.interface, "lo");
  EXPECT_GT(here.mtu, 1000u);
  // Other processes may have slots, but the loopback loses no packets.
  EXPECT_TRUE(here.first_port == PortCheck::kReached || here.first_port == PortCheck::kTaken);
  EXPECT_EQ(here.other_ports, PortCheck::kReached);
  const PlaneFacts& nowhere = facts.planes[1];
  EXPECT_EQ(nowhere.plane.interface, "");
  EXPECT_EQ(nowhere.first_port, PortCheck::kRefused);
  EXPECT_FALSE(nowhere.refusal.empty());
  // Every system grants a buffer of at least this size.
  EXPECT_EQ(facts.receive_got, 100'000u);
  EXPECT_EQ(facts.send_got, 50'000u);
  EXPECT_GE(facts.cpus, 1u);
}

}  // namespace
}  // namespace weft::net
