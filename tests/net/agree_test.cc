// Two ends choose before the first packet whether they use shared memory or the planes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "hostile_pair.h"

namespace weft::hostile {
namespace {

using engine::NetRdma;
using engine::NetRdmaOptions;

class Agree : public ::testing::Test {
 protected:
  void open(const NetRdmaOptions& a, const NetRdmaOptions& b) {
    pair.a.net = NetRdma::open(a).value();
    pair.b.net = NetRdma::open(b).value();
    for (End* end : {&pair.a, &pair.b}) end->create_qp();
  }
  void transfer() {
    pair.post(pair.a, pair.b, {});
    pair.post(pair.b, pair.a, {});
    EXPECT_TRUE(pair.run([&] { return pair.a.done == 1 && pair.b.done == 1; }));
    EXPECT_EQ(pair.a.failed + pair.b.failed, 0u);
  }
  HostilePair pair;
};

TEST_F(Agree, BothEndsUseSharedMemoryIfBothCan) {
  open({}, {});
  ASSERT_TRUE(pair.connect());
  EXPECT_TRUE(pair.a.over_shared_memory() && pair.b.over_shared_memory());
  transfer();
  EXPECT_GT(pair.a.counter("net.shm_packets_sent"), 0u);
}

TEST_F(Agree, BothEndsUseThePlanesIfOneRefusesSharedMemory) {
  NetRdmaOptions without;
  without.world.shared_memory = false;
  open({}, without);
  ASSERT_TRUE(pair.connect());
  EXPECT_FALSE(pair.a.over_shared_memory() || pair.b.over_shared_memory());
  transfer();
}

// While a NoRings exists, no ring can be created: the limit on file size keeps the ring's memory
// empty.
class NoRings {
 public:
  NoRings() {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoRings() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

// Each end chooses only for the packets that it sends, and accepts packets on both kinds of path.
TEST_F(Agree, AnEndThatCannotMakeRingsSendsOverThePlanes) {
  open({}, {});
  ASSERT_TRUE(pair.a.connect(pair.b.hello));
  {
    const NoRings scope;
    ASSERT_TRUE(pair.b.connect(pair.a.hello));
  }
  EXPECT_FALSE(pair.b.over_shared_memory());
  transfer();
}

TEST_F(Agree, LoopbackAddressesOfTwoHostsAreRefused) {
  open({}, {});
  EXPECT_EQ(pair.a.hello.host, pair.b.hello.host);
  EXPECT_NE(pair.a.hello.host, 0u);
  engine::Hello elsewhere = pair.b.hello;
  elsewhere.host += 2;
  const auto refused = pair.a.connect(elsewhere);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(refused.error().message.find("--ifname"), std::string::npos);
  elsewhere.host = 0;  // a system that does not report a host id
  EXPECT_TRUE(pair.a.connect(elsewhere));
}

}  // namespace
}  // namespace weft::hostile
