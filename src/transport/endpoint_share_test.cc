// Path health shared between the QPs to one peer (beyond MRC, off by default).
#include <gtest/gtest.h>

#include "transport/endpoint.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::opcode_of;
using test::Pair;

struct Bad {
  PortIndex port = 0;
  std::optional<std::uint32_t> value{};  // none: the whole plane is bad
};

// The first QP finds out what is bad. Then the second QP sends: returns how many of its packets
// took the bad paths.
std::uint32_t wasted_by_second(bool share, const Bad& bad) {
  Pair::Options options = Pair::defaults();
  options.endpoint.share_path_health = share;
  Pair pair(options);
  const auto first = pair.connect(), second = pair.connect();
  std::uint32_t lost = 0;
  pair.fate = [&](int from, const world::Datagram& d) {
    const bool hit = from == 0 && d.port == bad.port && d.entropy == bad.value.value_or(d.entropy);
    if (!hit || d.dscp == world::Dscp::kControl) return Fate::kDeliver;
    lost += wire::is_write(opcode_of(d));
    return Fate::kDrop;
  };
  const auto send = [&](const Pair::Qps& qps) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(pair.write(0, qps.qpn[0], {.size = 100'000}));
      pair.run_for(Duration::us(200));
    }
    EXPECT_EQ(pair.completions(0).size(), 4u);
  };
  send(first);
  EXPECT_GT(lost, 0u);
  lost = 0;
  send(second);
  return lost;
}

TEST(EndpointShare, SecondQpLearnsABadEvFromTheFirst) {
  const Bad ev{.port = 1, .value = test::make_evs({.ports = 2, .per_port = 8})[9].value};
  EXPECT_GT(wasted_by_second(false, ev), 0u);
  EXPECT_EQ(wasted_by_second(true, ev), 0u);
}

TEST(EndpointShare, SecondQpLearnsADeadPlaneFromTheFirst) {
  EXPECT_GT(wasted_by_second(false, {.port = 1}), 0u);
  EXPECT_EQ(wasted_by_second(true, {.port = 1}), 0u);
}

}  // namespace
}  // namespace weft::transport
