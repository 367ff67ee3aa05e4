// A dead peer is distinguished from an attacker that claims that the peer is dead: ICMP errors and
// closed rings are hints, unanswered probes are the proof. Time limits are far below the 17 s after
// which a QP with a silent peer fails.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "hostile_pair.h"
#include "net/path_mtu.h"

namespace weft::hostile {
namespace {

constexpr Duration kSoon = Duration::s(1);

// Sends forged ICMP errors to `to` about its packets to `of`.
class IcmpForger {
 public:
  IcmpForger() : fd_(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)) {}
  ~IcmpForger() {
    if (fd_ >= 0) close(fd_);
  }
  bool is_allowed() const { return fd_ >= 0; }
  // Forges "port unreachable": no socket has the port of `of`.
  void refuse(const End& to, const End& of) {
    icmphdr icmp{};
    icmp.code = ICMP_PORT_UNREACH;
    say(to, of, icmp);
  }
  // Forges "packet too big": packets to `of` are larger than the path's MTU.
  void narrow(const End& to, const End& of, std::uint16_t mtu) {
    icmphdr icmp{};
    icmp.code = ICMP_FRAG_NEEDED;
    icmp.un.frag.mtu = htons(mtu);
    say(to, of, icmp);
  }

 private:
  void say(const End& to, const End& of, const icmphdr& icmp) {
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
    packet.udp.source = htons(wire::source_port(to.hello.ports[0].process, 0));
    packet.udp.dest = htons(wire::listen_port(of.hello.ports[0].process));
    packet.icmp = icmp;
    packet.icmp.type = ICMP_DEST_UNREACH;
    packet.icmp.checksum = checksum(&packet, sizeof(packet));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = packet.ip.saddr;
    ASSERT_EQ(
        sendto(fd_, &packet, sizeof(packet), 0, reinterpret_cast<const sockaddr*>(&at), sizeof(at)),
        static_cast<ssize_t>(sizeof(packet)));
  }
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

// Drives one end alone until its QP fails; returns how long that took.
Duration time_to_fail(End& end) {
  const Time began = os::clock_now();
  while (os::clock_now() - began < Duration::s(30) &&
         end.net->endpoint().qp_state(end.hello.qpn) != transport::QpState::kError) {
    end.net->world().step(os::clock_now() + Duration::ms(1));
  }
  end.collect();
  const Duration took = os::clock_now() - began;
  std::printf("failed after %.3f s\n", took.to_us() / 1e6);
  return took;
}

TEST_P(Refused, AClosedPortFailsTheQpSoon) {
  pair.post(pair.a, pair.b, {});
  ASSERT_TRUE(pair.run([&] { return pair.a.done == 1; }));
  pair.b.net = nullptr;  // the kernel closes the sockets of a killed process in the same manner
  pair.post(pair.a, pair.b, {});
  EXPECT_LT(time_to_fail(pair.a).to_us(), kSoon.to_us());
  EXPECT_EQ(pair.a.failed, 1u);
  EXPECT_GT(pair.a.counter("net.refusals"), 0u);
  EXPECT_EQ(pair.a.counter("transport.qps_refused"), 1u);
}

// In secured mode the ends had no time to agree on keys, so only hellos are sent and refused.
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
  // An idle QP must survive too, for longer than the probes of its peer take.
  const Time until = os::clock_now() + Duration::ms(1200);
  for (int i = 0; i < 8; ++i) forger.refuse(pair.a, pair.b);
  pair.run([&] { return os::clock_now() >= until; });
  EXPECT_GT(pair.a.counter("net.refusals"), 0u);
  EXPECT_GT(pair.a.counter("transport.refusals"), 0u);
  EXPECT_EQ(pair.a.counter("transport.qps_refused"), 0u);
  // An old error on the socket does not drop a later packet.
  EXPECT_EQ(pair.a.counter("net.drops_send"), 0u);
  EXPECT_EQ(pair.a.net->endpoint().qp_state(pair.a.hello.qpn), transport::QpState::kReadyToSend);
  const std::uint64_t goal = pair.a.done + 1;
  pair.post(pair.a, pair.b, {});
  EXPECT_TRUE(pair.run([&] { return pair.a.done == goal; }));
}

// A network namespace of its own for this thread, with a loopback. The kernel forgets the learned
// path MTUs with the namespace.
class OwnNetwork {
 public:
  OwnNetwork() : back_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (back_ < 0 || unshare(CLONE_NEWNET) != 0) return;
    is_own_ = true;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP;
    EXPECT_EQ(ioctl(fd, SIOCSIFFLAGS, &loopback), 0);
    close(fd);
  }
  ~OwnNetwork() {
    if (is_own_) setns(back_, CLONE_NEWNET);
    if (back_ >= 0) close(back_);
  }
  bool is_own() const { return is_own_; }

 private:
  int back_;
  bool is_own_ = false;
};

// The kernel believes any ICMP error that quotes our ports, and then lets only small packets pass.
class Narrowed : public ::testing::TestWithParam<Security> {};
INSTANTIATE_TEST_SUITE_P(Net, Narrowed, ::testing::Values(Security::kPlain, Security::kSecured),
                         [](const auto& param) {
                           return param.param == Security::kPlain ? "Plain" : "Secured";
                         });

TEST_P(Narrowed, AForgedPacketTooBigDisturbsNothing) {
  OwnNetwork network;
  if (!network.is_own()) GTEST_SKIP() << "no network namespaces: needs CAP_SYS_ADMIN";
  constexpr std::uint16_t kMtu = 576;
  HostilePair pair;
  ASSERT_TRUE(pair.open(GetParam()));
  IcmpForger forger;
  ASSERT_TRUE(forger.is_allowed());
  std::uint64_t sent = 0;
  pair.transfer_both_ways([&](std::uint64_t round) {
    if (round % 4 != 0 || sent >= 200) return;
    forger.narrow(pair.a, pair.b, kMtu);
    ++sent;
  });
  // The kernel has believed the forged error.
  const Ipv6 from = pair.a.hello.ports[0].ip(), to = pair.b.hello.ports[0].ip();
  EXPECT_EQ(net::path_mtu({.from = from, .to = to}), kMtu);
  const std::uint64_t goal = pair.a.done + 1;
  pair.post(pair.a, pair.b, {});
  EXPECT_TRUE(pair.run([&] { return pair.a.done == goal; }));
  EXPECT_EQ(pair.a.counter("net.drops_send"), 0u);
  EXPECT_EQ(pair.a.counter("transport.evs_condemned"), 0u);
  // A QP that connects now uses smaller packets, but works.
  EXPECT_EQ(pair.a.net->world().payload_to(pair.b.hello.ports), 1024u);
}

// Over shared memory the ring's socket reports that the peer was killed.
TEST(RefusedRing, KilledPeerOverSharedMemoryFailsTheQpSoon) {
  HostilePair pair;
  for (End* end : {&pair.a, &pair.b}) {
    end->net = engine::NetRdma::open({}).value();
    end->create_qp();
  }
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.a.over_shared_memory());
  pair.b.net = nullptr;
  EXPECT_LT(time_to_fail(pair.a).to_us(), kSoon.to_us());  // although the QP is idle
  EXPECT_EQ(pair.a.counter("transport.qps_refused"), 1u);
}

}  // namespace
}  // namespace weft::hostile
