// Several devices in one configuration file: each has its own planes, QPs and controller.
#include <mrc/mrc_ctl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "mrc_end.h"
#include "other_process.h"

namespace weft::mrc_test {
namespace {

class Devices : public testing::Test {
 protected:
  Devices() {
    std::string pattern = "/tmp/weft-devices-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~Devices() override { std::filesystem::remove_all(directory_); }
  // Writes the configuration file. REQUIRES a process that has not listed devices yet.
  void configure(const std::string& text) const {
    const std::string path = directory_ + "/weft.toml";
    std::ofstream(path) << text;
    ASSERT_EQ(setenv("WEFT_CONFIG", path.c_str(), 1), 0);
    ASSERT_EQ(setenv("WEFT_STATE_DIR", (directory_ + "/state").c_str(), 1), 0);
  }
  std::string directory_;
};

const char* const kTwo = R"(
[net]
evs = 2
[device.weft1]
planes = ["127.1.1.1", "127.1.2.1"]
mtu = 1024
[device.weft10]
planes = ["127.2.1.1"]
)";

std::vector<std::string> names() {
  std::vector<std::string> out;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) out.emplace_back(ibv_get_device_name(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  return out;
}

TEST_F(Devices, DevicesAreListedByNumberWithTheirGidsAndPorts) {
  WEFT_NEEDS_FRESH_PROCESS();
  OtherProcess child([&](const Line&) {
    configure(kTwo);
    EXPECT_EQ(names(), (std::vector<std::string>{"weft0", "weft1", "weft10"}));
    const std::uint8_t first[] = {0, 1, 2};  // the second byte of the address in each plane
    std::uint64_t guids[3] = {};
    int i = 0;
    for (const std::string& name : names()) {
      Host host(name);
      ASSERT_TRUE(host.is_open()) << name;
      ibv_gid gid{};
      ASSERT_EQ(ibv_query_gid(host.verbs, 1, 3, &gid), 0);
      EXPECT_EQ(gid.raw[12], 127);
      EXPECT_EQ(gid.raw[13], first[i]);
      ibv_port_attr port{};
      ASSERT_EQ(ibv_query_port(host.verbs, 1, &port), 0);
      EXPECT_EQ(port.active_mtu, name == "weft1" ? IBV_MTU_1024 : IBV_MTU_4096);
      mrc_ctl_device_attr ctl{};
      ASSERT_EQ(mrc_ctl_query_device(host.verbs, &ctl), 0);
      EXPECT_EQ(ctl.phy_port_mask, name == "weft0" ? 0b11110u : name == "weft1" ? 0b110u : 0b10u);
      guids[i++] = ibv_get_device_guid(host.verbs->device);
    }
    EXPECT_TRUE(guids[0] != guids[1] && guids[1] != guids[2]);
  });
  EXPECT_EQ(child.join(), 0);
}

// Verbs show every port (one in each plane), and the GID of any port names the host.
TEST(Ports, EveryPortHasAGidAndEachOfTheseNamesTheHost) {
  Host host;
  ASSERT_TRUE(host.is_open());
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(host.verbs, &device), 0);
  ASSERT_EQ(device.phys_port_cnt, 4);
  mrc_ctl_device_attr ctl{};
  ASSERT_EQ(mrc_ctl_query_device(host.verbs, &ctl), 0);
  for (std::uint8_t port = 1; port <= 4; ++port) {
    EXPECT_TRUE((ctl.phy_port_mask >> port & 1) != 0);
    ibv_port_attr attr{};
    ASSERT_EQ(ibv_query_port(host.verbs, port, &attr), 0);
    EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(attr.gid_tbl_len, 4);
    End a(host), b(host);
    Wire of_a = a.wire(), of_b = b.wire();
    ASSERT_EQ(ibv_query_gid(host.verbs, port, 3, &of_b.gid), 0);
    EXPECT_EQ(of_b.gid.raw[14], port);
    a.connect(of_b);
    b.connect(of_a);
    EXPECT_EQ(a.post(of_b, {.size = 5000}), 0);
    EXPECT_EQ(wait_for(a.send_cq).status, IBV_WC_SUCCESS);
  }
  ibv_gid_entry entries[8];
  EXPECT_EQ(ibv_query_gid_table(host.verbs, entries, 8, 0), 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].port_num, i + 1);
    EXPECT_EQ(entries[i].gid.raw[14], i + 1);
  }
  ibv_port_attr none{};
  EXPECT_NE(ibv_query_port(host.verbs, 5, &none), 0);
}

// One process uses all its devices at the same time. The other process connects to two of them.
TEST_F(Devices, SeveralDevicesOfOneProcessWorkAtTheSameTime) {
  WEFT_NEEDS_FRESH_PROCESS();
  const auto talk = [&](const Line& line, std::uint64_t seed) {
    configure(kTwo);
    Host zero("weft0"), one("weft1");
    ASSERT_TRUE(zero.is_open() && one.is_open());
    End ends[] = {End(zero), End(one)};
    Wire peers[2];
    for (int i = 0; i < 2; ++i) {
      line.send(ends[i].wire());
      peers[i] = line.receive<Wire>();
      EXPECT_EQ(ends[i].to_init(), 0);
      EXPECT_EQ(ends[i].to_rtr(peers[i], i == 0 ? IBV_MTU_4096 : IBV_MTU_1024), 0);
      EXPECT_EQ(ends[i].to_rts(), 0);
    }
    line.send(1);
    line.receive<int>();
    constexpr std::uint32_t kHalf = 1 << 19;
    for (int i = 0; i < 2; ++i) {
      fill(ends[i].memory.data(), 100'000, seed + static_cast<std::uint64_t>(i));
      EXPECT_EQ(ends[i].post(peers[i], {.to = kHalf, .size = 100'000}), 0);
    }
    for (End& end : ends) EXPECT_EQ(wait_for(end.send_cq).status, IBV_WC_SUCCESS);
    line.send(1);
    line.receive<int>();
    const std::uint64_t theirs = seed == 10 ? 20 : 10;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(first_wrong(ends[i].memory.data() + kHalf, 100'000,
                            theirs + static_cast<std::uint64_t>(i)),
                100'000u);
    }
  };
  OtherProcess a([&](const Line& line) { talk(line, 10); });
  OtherProcess b([&](const Line& line) { talk(line, 20); });
  for (int i = 0; i < 2; ++i) {
    const Wire of_a = a.line().receive<Wire>(), of_b = b.line().receive<Wire>();
    a.line().send(of_b);
    b.line().send(of_a);
  }
  for (int i = 0; i < 2; ++i) {
    a.line().receive<int>();
    b.line().receive<int>();
    a.line().send(1);
    b.line().send(1);
  }
  EXPECT_EQ(a.join(), 0);
  EXPECT_EQ(b.join(), 0);
}

// Both devices have their own controller's state and ports.
TEST_F(Devices, AChangeOfOneDeviceDoesNotChangeAnother) {
  WEFT_NEEDS_FRESH_PROCESS();
  OtherProcess child([&](const Line&) {
    configure(kTwo);
    Host zero("weft0"), one("weft1");
    ASSERT_TRUE(zero.is_open() && one.is_open());
    mrc_ctl_port_attr attr{};
    attr.port_admin_state = MRC_CTL_PORT_ADMIN_DISABLED;
    ASSERT_EQ(mrc_ctl_modify_port(one.context, 2, &attr, MRC_CTL_PORT_ADMIN_STATE), 0);
    const auto state = [](const Host& host) {
      ibv_port_attr port{};
      EXPECT_EQ(ibv_query_port(host.verbs, 2, &port), 0);
      return port.state;
    };
    EXPECT_EQ(state(zero), IBV_PORT_ACTIVE);
    EXPECT_EQ(state(one), IBV_PORT_DOWN);
    EXPECT_TRUE(std::filesystem::exists(directory_ + "/state/weft1.state"));
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/state/weft0.state"));
  });
  EXPECT_EQ(child.join(), 0);
}

TEST_F(Devices, AMistakeInTheConfigurationFileHidesAllDevices) {
  WEFT_NEEDS_FRESH_PROCESS();
  OtherProcess child([&](const Line&) {
    configure("[device.weft1]\nmtu = 1024\n");
    ibv_device** const list = ibv_get_device_list(nullptr);
    // The host may have real devices as well.
    for (int i = 0; list != nullptr && list[i] != nullptr; ++i)
      EXPECT_FALSE(std::string(ibv_get_device_name(list[i])).starts_with("weft"));
    if (list != nullptr) ibv_free_device_list(list);
  });
  EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace weft::mrc_test
