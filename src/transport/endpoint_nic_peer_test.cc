// A software end whose peer is a NIC that speaks MRC 1.0 and nothing else: every packet that leaves
// must be allowed by MRC, whatever happens in the network (docs/decisions/0024).
#include <gtest/gtest.h>

#include "base/prng.h"
#include "transport/software_ends.h"
#include "transport/test_mrc_rules.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::MrcRules;
using test::opcode_of;
using test::Pair;
using wire::Opcode;

constexpr int kSoftware = 0, kNic = 1;  // the ends

// End 0 is configured as a device is with `peers = mrc`; end 1 as the specification says.
Pair::Options options_of(std::uint64_t seed) {
  auto options = Pair::defaults();
  options.endpoint.send_queue_max = 64;
  options.endpoint.seed = seed;
  options.suit_endpoint = [](int end, EndpointConfig& config) {
    if (end != kSoftware) return;
    config.answers_delay = kAnswersDelay;
    config.burst = 15;
  };
  options.suit_qp = [](int end, QpConfig& config) {
    if (end != kSoftware) return;
    configure_for_process(config, PeerKind::kNic);
    config.nscc.trimming = false;
  };
  return options;
}

class NicPeer {
 public:
  explicit NicPeer(std::uint64_t seed)
      : pair(options_of(seed)),
        qps(pair.connect()),
        rules({.first = qps.first[kSoftware],
               .peer_first = qps.first[kNic],
               .tail_time = Pair::kDelay * 2 + Duration::us(100)}),
        prng(seed) {
    bound_buffers(0);
    pair.on_arrival = [this](int to, const world::Datagram& d) {
      if (to == kSoftware) rules.on_arrival(pair.now, d);
    };
    pair.fate = [this](int from, const world::Datagram& d) {
      if (from == kSoftware) rules.on_departure(pair.now, d);
      return fate ? fate(from, d) : Fate::kDeliver;
    };
  }
  // Gives the software end small socket buffers: a software peer would be told of the budget and of
  // overflows.
  void bound_buffers(std::uint32_t overflows) {
    for (PortIndex port = 0; port < 2; ++port) {
      pair.end(kSoftware).on_port(pair.now, port,
                                  {.up = true, .receive_bytes = 100'000, .overflows = overflows});
    }
  }
  // Both ends write for `length`. Then all faults end and the traffic drains.
  void run(Duration length) {
    for (const Time end = pair.now + length; pair.now < end;) {
      write_all();
      pair.run_for(Duration::us(20));
    }
    fate = nullptr;
    for (int i = 0; i < 300 && done < posted; ++i) {
      pair.run_for(Duration::ms(10));
      take_completions();
    }
    rules.on_end();
  }
  void write_all() {
    for (int end = 0; end < Pair::kEnds; ++end) {
      const std::uint32_t size = 1 + prng.below(prng.below(4) == 0 ? 60'000 : 2000);
      if (pair.write(end, qps.qpn[end], {.id = posted, .size = size})) ++posted;
    }
    take_completions();
  }
  void take_completions() {
    for (int end = 0; end < Pair::kEnds; ++end) {
      for (const Completion& completion : pair.completions(end)) {
        EXPECT_EQ(completion.status, Status::kOk);
        ++done;
      }
    }
  }
  void expect_clean() {
    for (const auto& [what, times] : rules.violations()) ADD_FAILURE() << what << ": " << times;
    EXPECT_EQ(done, posted);
    EXPECT_GT(rules.left(Opcode::kSack), 20);
    EXPECT_GT(rules.left(Opcode::kTransportAck), 10);
  }

  Pair pair;
  Pair::Qps qps;
  MrcRules rules;
  Prng prng;
  Pair::Decide fate;
  std::uint64_t posted = 0, done = 0;
};

class EndpointNicPeer : public testing::TestWithParam<std::uint64_t> {
 protected:
  NicPeer peer{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seeds, EndpointNicPeer, testing::Range<std::uint64_t>(1, 9));

TEST_P(EndpointNicPeer, ReceivesOnlyMrcPacketsWithoutLoss) {
  peer.run(Duration::ms(5));
  peer.expect_clean();
}

TEST_P(EndpointNicPeer, ReceivesOnlyMrcPacketsUnderLoss) {
  peer.run(Duration::ms(1));
  peer.bound_buffers(1);  // some losses are buffer overflows
  peer.fate = [this](int, const world::Datagram&) {
    return peer.prng.below(100) < 4 ? Fate::kDrop : Fate::kDeliver;
  };
  peer.run(Duration::ms(5));
  peer.expect_clean();
  EXPECT_GT(peer.pair.counter(kSoftware, "transport.retransmits"), 0u);
}

TEST_P(EndpointNicPeer, ReceivesOnlyMrcPacketsWhenSomeAreLateTrimmedMarkedOrDoubled) {
  peer.fate = [this](int, const world::Datagram& d) {
    const bool data = d.payload.size > 0;
    switch (peer.prng.below(data ? 24 : 60)) {
      case 0:
        return Fate::kLate;
      case 1:
        return Fate::kDouble;
      case 2:
        return Fate::kMark;
      case 3:
        return Fate::kTrim;
      default:
        return Fate::kDeliver;
    }
  };
  peer.run(Duration::ms(5));
  peer.expect_clean();
}

// Everything is lost in both directions for longer than a retry interval, in the middle of flows.
TEST_P(EndpointNicPeer, ReceivesOnlyMrcPacketsDuringAndAfterASilence) {
  const Time from = peer.pair.now + Duration::ms(1), until = from + Duration::ms(3);
  peer.fate = [this, from, until](int, const world::Datagram&) {
    return peer.pair.now >= from && peer.pair.now < until ? Fate::kDrop : Fate::kDeliver;
  };
  peer.run(Duration::ms(6));
  peer.expect_clean();
  EXPECT_GT(peer.rules.left(Opcode::kProbe), 0);
}

// One of two planes is dead: something is missing for long while the rest goes on.
TEST_P(EndpointNicPeer, ReceivesOnlyMrcPacketsWhenAPlaneIsDead) {
  const int direction = static_cast<int>(GetParam() % 3);
  const Time from_then = peer.pair.now + Duration::ms(1);
  peer.fate = [this, direction, from_then](int from, const world::Datagram& d) {
    const bool dead = d.port == 1 && peer.pair.now >= from_then && direction != from;
    return dead ? Fate::kDrop : Fate::kDeliver;
  };
  peer.run(Duration::ms(6));
  peer.expect_clean();
}

// The packet that asks for a SACK is lost, and nothing follows. The NIC will ask when it needs a
// SACK.
TEST_P(EndpointNicPeer, ReceivesNoSackThatItDidNotAskFor) {
  Time lost_at;  // declared outside the loop: the lambda below reads it later
  for (int i = 0; i < 8; ++i) {
    lost_at = kNever;
    peer.fate = [&](int from, const world::Datagram& d) {
      if (from != kNic) return Fate::kDeliver;
      if (lost_at == kNever && opcode_of(d) == Opcode::kWriteLast) lost_at = peer.pair.now;
      const bool silent = lost_at != kNever && peer.pair.now < lost_at + Duration::us(800);
      return silent ? Fate::kDrop : Fate::kDeliver;
    };
    ASSERT_TRUE(peer.pair.write(kNic, peer.qps.qpn[kNic], {.id = peer.posted, .size = 9'000}));
    ++peer.posted;
    peer.pair.run_for(Duration::us(100));
    ASSERT_NE(lost_at, kNever);
    const int sacks = peer.rules.left(Opcode::kSack);
    peer.pair.run_for(Duration::us(600));
    EXPECT_EQ(peer.rules.left(Opcode::kSack), sacks);
    peer.pair.run_for(Duration::ms(2));
  }
  peer.run(Duration::ms(1));
  peer.expect_clean();
}

// Retry timers are the specification's: timeout intervals of 1.024 us * 2^timeout, then doubling
// ones.
TEST(EndpointNicPeerTimers, RetryIntervalsAreTheSpecifications) {
  NicPeer peer(1);
  peer.run(Duration::ms(1));
  const Duration interval = Duration::ns(1024) * (1 << RetryConfig().timeout);
  std::vector<Time> asked;
  peer.fate = [&](int from, const world::Datagram& d) {
    const bool by_timer = opcode_of(d) == Opcode::kProbe && d.dscp == world::Dscp::kControl;
    if (from == kSoftware && by_timer && (asked.empty() || asked.back() != peer.pair.now))
      asked.push_back(peer.pair.now);
    return Fate::kDrop;
  };
  const Time start = peer.pair.now;
  ASSERT_TRUE(peer.pair.write(kSoftware, peer.qps.qpn[kSoftware], {.size = 100}));
  peer.pair.run_for(interval * 40);
  const std::vector<int> expected = {1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 22, 38};
  ASSERT_EQ(asked.size(), expected.size());
  for (std::size_t i = 0; i < asked.size(); ++i)
    EXPECT_EQ(asked[i] - start, interval * expected[i]);
}

}  // namespace
}  // namespace weft::transport
