// A peer is killed by SIGKILL: the survivor notices soon, and releases all resources of the peer.
#include <gtest/gtest.h>

#include "hostile_pair.h"
#include "net_process.h"
#include "resources.h"

namespace weft::hostile {
namespace {

enum class Way { kPlain, kSecured, kSharedMemory };

class KilledPeer : public ::testing::TestWithParam<Way> {
 protected:
  // The peer is created first, because a child process inherits all open descriptors.
  void SetUp() override {
    options.world.planes = own_planes();
    options.world.shared_memory = GetParam() == Way::kSharedMemory;
    if (GetParam() == Way::kSecured) options.world.job_secret = job_secret();
    peer = std::make_unique<NetProcess>(options);
    auto net = engine::NetRdma::open(options);
    ASSERT_TRUE(net) << net.error().message;
    end.net = std::move(net).value();
    descriptors = open_descriptors();
  }
  // Connects to the peer and completes one write, so that both ends are awake and have keys.
  void meet() {
    end.create_qp();
    theirs = peer->create_qp();
    ASSERT_TRUE(end.connect(theirs.hello));
    ASSERT_EQ(end.over_shared_memory(), GetParam() == Way::kSharedMemory);
    peer->connect({.hello = end.hello, .region = end.region});
    post();
    const Time until = os::clock_now() + Duration::s(10);
    while (end.done == 0 && os::clock_now() < until) step();
    ASSERT_EQ(end.done, 1u);
  }
  void post() {
    const auto posted = end.net->endpoint().post_write(
        os::clock_now(), end.hello.qpn,
        {.local_at = reinterpret_cast<std::uintptr_t>(end.source.data()),
         .remote_at = theirs.region.at,
         .rkey = theirs.region.rkey,
         .size = kRegion});
    ASSERT_TRUE(posted) << posted.error().message;
  }
  void step() {
    end.net->world().step(os::clock_now() + Duration::ms(1));
    end.collect();
  }
  bool has_failed() const {
    return end.net->endpoint().qp_state(end.hello.qpn) == transport::QpState::kError;
  }

  engine::NetRdmaOptions options;
  std::unique_ptr<NetProcess> peer;
  End end;
  QpHello theirs;
  std::size_t descriptors = 0;
};
INSTANTIATE_TEST_SUITE_P(Net, KilledPeer,
                         ::testing::Values(Way::kPlain, Way::kSecured, Way::kSharedMemory),
                         [](const auto& param) {
                           return param.param == Way::kPlain     ? "Plain"
                                  : param.param == Way::kSecured ? "Secured"
                                                                 : "SharedMemory";
                         });

TEST_P(KilledPeer, IsReportedWithinASecond) {
  meet();
  post();
  const Time killed_at = os::clock_now();
  peer->kill();
  const Time until = killed_at + Duration::s(30);
  while (!has_failed() && os::clock_now() < until) step();
  const Duration took = os::clock_now() - killed_at;
  std::printf("reported %.3f s after the SIGKILL\n", took.to_us() / 1e6);
  EXPECT_LT(took.to_us(), Duration::s(1).to_us());
  EXPECT_EQ(end.counter("transport.qps_refused"), 1u);
}

TEST_P(KilledPeer, ReleasesAllResourcesAndItsSlotAtOnce) {
  meet();
  const bool rings = GetParam() == Way::kSharedMemory;
  EXPECT_EQ(ring_mappings(), rings ? 4u : 0u);
  peer->kill();
  {
    auto next = engine::NetRdma::open(options);
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_EQ((*next)->world().process(), peer->slot());
  }
  const Time until = os::clock_now() + Duration::s(10);
  while (ring_mappings() > 0 && os::clock_now() < until) step();
  EXPECT_EQ(ring_mappings(), 0u);
  ASSERT_TRUE(end.net->endpoint().destroy_qp(os::clock_now(), end.hello.qpn));
  EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace
}  // namespace weft::hostile
