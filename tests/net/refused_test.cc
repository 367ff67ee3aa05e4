// A process that is gone is told from a stranger who says that it is: ICMP and closed rings are
// hints, unanswered questions the proof. Bounds are far below the 17 s that silence takes.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "hostile_pair.h"

namespace weft::hostile {
namespace {

constexpr Duration kSoon = Duration::s(1);

// Says to `to`, in the name of `of`'s host, that nobody has the port of `of`.
class IcmpForger {
 public:
  IcmpForger() : fd_(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)) {}
  ~IcmpForger() {
    if (fd_ >= 0) close(fd_);
  }
  bool is_allowed() const { return fd_ >= 0; }
  void refuse(const End& to, const End& of) {
    struct {
      icmphdr icmp;
      iphdr ip;
      udphdr udp;
    } packet{};
    const auto in_order = [](const world::Address& a) {
      return htonl(static_cast<std::uint32_t>(a.low));
    };
    packet.ip.version = 4;
    packet.ip.ihl = 5;
    packet.ip.protocol = IPPROTO_UDP;
    packet.ip.tot_len = htons(1000);
    packet.ip.saddr = in_order(to.hello.ports[0]);
    packet.ip.daddr = in_order(of.hello.ports[0]);
    packet.udp.source = htons(net::source_port(to.hello.ports[0].process, 0));
    packet.udp.dest = htons(net::listen_port(of.hello.ports[0].process));
    packet.icmp.type = ICMP_DEST_UNREACH;
    packet.icmp.code = ICMP_PORT_UNREACH;
    packet.icmp.checksum = checksum(&packet, sizeof(packet));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = packet.ip.saddr;
    ASSERT_EQ(
        sendto(fd_, &packet, sizeof(packet), 0, reinterpret_cast<const sockaddr*>(&at), sizeof(at)),
        static_cast<ssize_t>(sizeof(packet)));
  }

 private:
  static std::uint16_t checksum(const void* bytes, std::size_t size) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i + 1 < size; i += 2) {
      std::uint16_t word = 0;
      std::memcpy(&word, static_cast<const char*>(bytes) + i, sizeof(word));
      sum += word;
    }
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
  }
  int fd_;
};

class Refused : public ::testing::TestWithParam<Security> {
 protected:
  void SetUp() override { ASSERT_TRUE(pair.open(GetParam())); }
  HostilePair pair;
};
INSTANTIATE_TEST_SUITE_P(Net, Refused, ::testing::Values(Security::kPlain, Security::kSecured),
                         [](const auto& param) {
                           return param.param == Security::kPlain ? "Plain" : "Secured";
                         });

// Drives one end alone until its QP fails; how long it took.
Duration time_to_fail(End& end) {
  const Time began = net::clock_now();
  while (net::clock_now() - began < Duration::s(30) &&
         end.net->endpoint().qp_state(end.hello.qpn) != transport::QpState::kError) {
    end.net->world().step(net::clock_now() + Duration::ms(1));
  }
  end.collect();
  const Duration took = net::clock_now() - began;
  std::printf("failed after %.3f s\n", took.to_us() / 1e6);
  return took;
}

TEST_P(Refused, AClosedPortFailsTheQpSoon) {
  pair.post(pair.a, pair.b, {});
  ASSERT_TRUE(pair.run([&] { return pair.a.done == 1; }));
  pair.b.net = nullptr;  // as the kernel does when a process is killed
  pair.post(pair.a, pair.b, {});
  EXPECT_LT(time_to_fail(pair.a).to_us(), kSoon.to_us());
  EXPECT_EQ(pair.a.failed, 1u);
  EXPECT_GT(pair.a.counter("net.refusals"), 0u);
  EXPECT_EQ(pair.a.counter("transport.qps_refused"), 1u);
}

// Secured, it had no time to agree on keys: hellos are all that is sent, and refused.
TEST_P(Refused, AClosedPortIsNoticedBeforeAnythingWasSent) {
  pair.b.net = nullptr;
  pair.post(pair.a, pair.b, {});
  EXPECT_LT(time_to_fail(pair.a).to_us(), kSoon.to_us());
  EXPECT_EQ(pair.a.counter("transport.qps_refused"), 1u);
}

TEST_P(Refused, AForgedRefusalDisturbsNothing) {
  IcmpForger forger;
  if (!forger.is_allowed()) GTEST_SKIP() << "no raw sockets: needs CAP_NET_RAW";
  std::uint64_t sent = 0;
  pair.transfer_both_ways([&](std::uint64_t round) {
    if (round % 4 != 0 || sent >= 2000) return;
    forger.refuse(pair.a, pair.b);
    ++sent;
  });
  // An idle QP too: longer than its questions take.
  const Time until = net::clock_now() + Duration::ms(1200);
  for (int i = 0; i < 8; ++i) forger.refuse(pair.a, pair.b);
  pair.run([&] { return net::clock_now() >= until; });
  EXPECT_GT(pair.a.counter("net.refusals"), 0u);
  EXPECT_GT(pair.a.counter("transport.refusals"), 0u);
  EXPECT_EQ(pair.a.counter("transport.qps_refused"), 0u);
  EXPECT_EQ(pair.a.counter("net.drops_send"), 0u);  // an error of the past takes no packet along
  EXPECT_EQ(pair.a.net->endpoint().qp_state(pair.a.hello.qpn), transport::QpState::kReadyToSend);
  const std::uint64_t goal = pair.a.done + 1;
  pair.post(pair.a, pair.b, {});
  EXPECT_TRUE(pair.run([&] { return pair.a.done == goal; }));
}

// Over shared memory the ring's socket says it.
TEST(RefusedRing, AKilledPeerFailsTheQpSoon) {
  HostilePair pair;
  for (End* end : {&pair.a, &pair.b}) {
    end->net = cli::NetEnd::open({}).value();
    end->hello = end->net->create_qp(end->landing.region()).value();
  }
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.agreed.shared_memory);
  pair.b.net = nullptr;
  EXPECT_LT(time_to_fail(pair.a).to_us(), kSoon.to_us());  // idle as it is
  EXPECT_EQ(pair.a.counter("transport.qps_refused"), 1u);
}

}  // namespace
}  // namespace weft::hostile
