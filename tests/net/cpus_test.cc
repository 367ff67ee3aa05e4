// The CPU affinity of this process, and NUMA nodes read from a fake sysfs.
#include "os/cpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "net/host_facts.h"

namespace weft::net {
namespace {

namespace fs = std::filesystem;

class FakeSysfs : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root); }
  void TearDown() override { fs::remove_all(root); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text << "\n";
  }
  std::string root =
      (fs::temp_directory_path() / ("weft-sysfs-" + std::to_string(getpid()))).string();
};

TEST_F(FakeSysfs, NodesHaveTheirCpusAndDevices) {
  EXPECT_TRUE(os::numa_nodes(root).empty());
  put("/devices/system/node/online", "0-1");
  put("/devices/system/node/node0/cpulist", "0-3");
  put("/devices/system/node/node1/cpulist", "4-7");
  put("/class/net/eth0/device/numa_node", "1");
  put("/class/net/eth1/device/numa_node", "-1");
  const auto nodes = os::numa_nodes(root);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1].number, 1u);
  EXPECT_EQ(nodes[1].cpus, (std::vector<std::uint32_t>{4, 5, 6, 7}));
  EXPECT_EQ(os::numa_node_of("eth0", root), 1u);
  EXPECT_FALSE(os::numa_node_of("eth1", root));
  EXPECT_FALSE(os::numa_node_of("lo", root));
}

TEST(RunOn, ThreadStaysOnTheGivenCpus) {
  const auto before = os::own_cpus();
  ASSERT_FALSE(before.empty());
  // run_on() is called in another thread, so that the affinity of this thread does not change.
  std::thread([&] {
    const std::uint32_t last = before.back();
    ASSERT_TRUE(os::run_on({&last, 1}));
    EXPECT_EQ(os::own_cpus(), std::vector<std::uint32_t>{last});
    const std::uint32_t none = os::kCpusMax - 1;
    const auto refused = os::run_on({&none, 1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
    EXPECT_NE(refused.error().message.find("cpus 1023"), std::string::npos);
  }).join();
  EXPECT_EQ(os::own_cpus(), before);
}

}  // namespace
}  // namespace weft::net
