#include "os/interfaces.h"

#include <gtest/gtest.h>

#include "os/address.h"

namespace weft::os {
namespace {

const std::vector<Interface> kHost = {
    {.name = "lo",
     .mtu = 65536,
     .up = true,
     .running = true,
     .loopback = true,
     .addresses = {base::ipv4(127, 0, 0, 1)}},
    {.name = "eth0",
     .mtu = 1500,
     .up = true,
     .running = true,
     .addresses = {base::ipv4(10, 0, 1, 7), {.high = 0xfd00'0001'0000'0000, .low = 7}}},
    {.name = "eth1", .mtu = 9000, .up = true, .addresses = {base::ipv4(10, 0, 2, 7)}},
    {.name = "eth10", .mtu = 9000, .up = true, .addresses = {base::ipv4(10, 0, 10, 7)}},
    {.name = "eth2", .mtu = 9000, .up = false, .addresses = {base::ipv4(10, 0, 3, 7)}},
    {.name = "docker0", .mtu = 1500, .up = true, .addresses = {base::ipv4(172, 17, 0, 1)}},
};

std::string chosen(std::vector<std::string> words) {
  const auto planes = planes_on(words, kHost);
  return planes ? text_of(*planes) : planes.error().message;
}

TEST(Interfaces, AWordSelectsByFullNameOrByPrefix) {
  EXPECT_EQ(chosen({"eth0"}), "10.0.1.7 (eth0)");
  EXPECT_EQ(chosen({"eth1"}), "10.0.2.7 (eth1)");  // eth10 is not selected
  EXPECT_EQ(chosen({"eth1", "eth0"}), "10.0.2.7 (eth1), 10.0.1.7 (eth0)");
  EXPECT_EQ(chosen({"eth"}), "10.0.1.7 (eth0), 10.0.2.7 (eth1), 10.0.10.7 (eth10)");
  EXPECT_EQ(chosen({"eth0", "eth"}), "10.0.1.7 (eth0), 10.0.2.7 (eth1), 10.0.10.7 (eth10)");
  EXPECT_EQ(chosen({"lo"}), "127.0.0.1 (lo)");
}

TEST(Interfaces, ExclusionsLeaveAllOtherInterfacesButTheLoopback) {
  EXPECT_EQ(chosen({"^docker"}), "10.0.1.7 (eth0), 10.0.2.7 (eth1), 10.0.10.7 (eth10)");
  EXPECT_EQ(chosen({"^lo", "eth1"}), "10.0.1.7 (eth0), 172.17.0.1 (docker0)");
  EXPECT_NE(chosen({"^eth", "docker"}).find("no interface of that name"), std::string::npos);
}

TEST(Interfaces, TheErrorNamesTheMissingInterfaceAndThoseThatExist) {
  EXPECT_EQ(chosen({"ib"}),
            "ib: no interface of that name is up and has an address; there are lo, eth0, eth1, "
            "eth10, docker0");
  EXPECT_NE(chosen({"eth2"}).find("no interface of that name"), std::string::npos);  // eth2 is down
  EXPECT_EQ(chosen({"eth0", "eth0"}), "eth0: named twice; expected each once");
}

TEST(Interfaces, AnInterfaceThatIsDownIsNotReplacedByOneWithItsNameAsPrefix) {
  const std::vector<Interface> host = {
      {.name = "eth1", .up = false, .addresses = {base::ipv4(10, 0, 2, 7)}},
      {.name = "eth10", .up = true, .addresses = {base::ipv4(10, 0, 10, 7)}}};
  const std::vector<std::string> words = {"eth10", "eth1"};
  const auto planes = planes_on(words, host);
  ASSERT_FALSE(planes);
  EXPECT_NE(planes.error().message.find("eth1: no interface of that name is up"), std::string::npos)
      << planes.error().message;
}

TEST(Interfaces, MoreThanEightPlanesAreRefused) {
  std::vector<Interface> many;
  for (std::uint8_t i = 0; i < 9; ++i) {
    many.push_back(
        {.name = "eth" + std::to_string(i), .up = true, .addresses = {base::ipv4(10, 0, i, 1)}});
  }
  const std::vector<std::string> words = {"eth"};
  EXPECT_FALSE(planes_on(words, many));
  EXPECT_EQ(planes_on(words, std::span(many).first(8)).value().size(), 8u);
}

TEST(Interfaces, TheInterfaceOfAnAddressIsFound) {
  EXPECT_EQ(interface_of(base::ipv4(127, 0, 3, 1), kHost)->name, "lo");
  EXPECT_EQ(interface_of(base::ipv4(10, 0, 2, 7), kHost)->name, "eth1");
  EXPECT_EQ(interface_of(base::ipv4(10, 9, 9, 9), kHost), nullptr);
  EXPECT_EQ(text_of(Ipv6{.high = 0xfd00'0001'0000'0000, .low = 7}), "fd00:1::7");
}

TEST(Interfaces, ThisHostHasALoopback) {
  const auto here = list_interfaces();
  ASSERT_TRUE(here);
  EXPECT_NE(interface_of(base::ipv4(127, 0, 0, 1), *here), nullptr);
}

}  // namespace
}  // namespace weft::os
