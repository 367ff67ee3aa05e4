// The two ends agree on what carries their QPs before the first packet.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "hostile_pair.h"

namespace weft::hostile {
namespace {

using engine::NetEnd;
using engine::NetOptions;

class Agree : public ::testing::Test {
 protected:
  void open(const NetOptions& a, const NetOptions& b) {
    pair.a.net = NetEnd::open(a).value();
    pair.b.net = NetEnd::open(b).value();
    for (End* end : {&pair.a, &pair.b})
      end->hello = end->net->create_qp(end->landing.region()).value();
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
  EXPECT_TRUE(pair.agreed.shared_memory);
  transfer();
  EXPECT_GT(pair.a.counter("net.shm_packets_sent"), 0u);
}

TEST_F(Agree, BothEndsUseThePlanesIfOneRefusesSharedMemory) {
  NetOptions without;
  without.world.shared_memory = false;
  open({}, without);
  ASSERT_TRUE(pair.connect());
  EXPECT_FALSE(pair.agreed.shared_memory);
  transfer();
}

// While it exists no ring can be created: the limit on file size stops its memory from growing.
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

// Without an agreement the two ends would decide differently here.
TEST_F(Agree, BothEndsUseThePlanesIfOnlyOneCanMakeRings) {
  open({}, {});
  const auto can = pair.a.net->offer(pair.b.hello).value();
  const auto cannot = [&] {
    const NoRings scope;
    return pair.b.net->offer(pair.a.hello).value();
  }();
  EXPECT_TRUE(can.shared_memory);
  EXPECT_FALSE(cannot.shared_memory);
  const auto agreed = NetEnd::agree(can, cannot);
  ASSERT_EQ(pair.a.net->connect(pair.a.hello.qpn, pair.b.hello, agreed).value(),
            NetEnd::Carrier::kPlanes);
  ASSERT_EQ(pair.b.net->connect(pair.b.hello.qpn, pair.a.hello, agreed).value(),
            NetEnd::Carrier::kPlanes);
  transfer();
}

TEST_F(Agree, LoopbackAddressesOfTwoHostsAreRefused) {
  open({}, {});
  EXPECT_EQ(pair.a.hello.host, pair.b.hello.host);
  EXPECT_NE(pair.a.hello.host, 0u);
  engine::Hello elsewhere = pair.b.hello;
  elsewhere.host += 2;
  const auto refused = pair.a.net->offer(elsewhere);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(refused.error().message.find("--ifname"), std::string::npos);
  elsewhere.host = 0;  // a system that does not report a host id
  EXPECT_TRUE(pair.a.net->offer(elsewhere));
}

}  // namespace
}  // namespace weft::hostile
