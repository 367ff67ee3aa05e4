// Two secured worlds over real sockets on the loopback.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "net/test_scripted_node.h"
#include "net/udp_world.h"
#include "os/clock.h"
#include "seal/test_secure_pair.h"

namespace weft::net {
namespace {

using test::ScriptedNode;

constexpr std::uint32_t kQpnA = 0x321, kQpnB = 0x123;  // write_header() addresses kQpnB

class SecureWorldTest : public ::testing::Test {
 protected:
  struct End {
    std::unique_ptr<UdpWorld> world;
    ScriptedNode node;
    std::uint64_t counter(std::string_view name) const {
      const CounterTable table = world->counters();
      EXPECT_TRUE(has_counter(table, name)) << name;
      return value_of(table, name);
    }
  };
  void open(UdpWorldConfig config = {}, std::uint8_t secret_of_b = 1) {
    for (End* end : {&a, &b}) {
      config.job_secret = seal::test::some_secret(end == &a ? 1 : secret_of_b);
      auto opened = UdpWorld::open(config);
      ASSERT_TRUE(opened) << opened.error().message;
      end->world = std::move(opened).value();
      ASSERT_TRUE(end->world->attach(end->world->addresses(), end->node));
    }
  }
  void secure(End& end, std::uint32_t qpn, const End& peer, std::uint32_t peer_qpn) {
    const auto ports = peer.world->addresses();
    ASSERT_TRUE(end.world->secure(
        qpn, {.incarnation = peer.world->incarnation(), .qpn = peer_qpn, .ports = ports}));
  }
  void secure_both() {
    secure(a, kQpnA, b, kQpnB);
    secure(b, kQpnB, a, kQpnA);
    pump([&] { return false; }, Duration::ms(20));
  }
  // Drives both worlds until `over`, but at least for the given time and number of rounds, because
  // a machine may be busy.
  template <typename Over>
  bool pump(Over is_over, Duration patience = Duration::s(20)) {
    const Time until = os::clock_now() + patience;
    for (int passes = 0; os::clock_now() < until || passes < 500; ++passes) {
      a.world->pass();
      b.world->pass();
      if (is_over()) return true;
    }
    return false;
  }
  world::Datagram write(std::uint32_t psn, std::uint32_t size, fabric::Ev ev) {
    auto& header = headers.emplace_back(seal::test::write_header(size, psn));
    return {.port = ev.port,
            .ecn = world::Ecn::kEct0,
            .dscp = world::Dscp::kTrimmable,
            .entropy = ev.value,
            .peer = b.world->addresses()[ev.port],
            .header = header,
            .payload = {.at = reinterpret_cast<std::uintptr_t>(payload.data()), .size = size}};
  }
  void expect_arrived(const ScriptedNode::Came& came, std::uint32_t size) {
    ASSERT_EQ(came.payload.size(), size);
    EXPECT_TRUE(std::equal(came.payload.begin(), came.payload.end(), payload.begin()));
    EXPECT_TRUE(came.datagram.intact);
  }

  End a, b;
  std::vector<std::byte> payload = seal::test::some_payload(8192);
  std::deque<std::vector<std::byte>> headers;
};

TEST_F(SecureWorldTest, EveryEvInEveryModeCarriesItsPackets) {
  const Ipv6 loopback = os::parse_address("::1").value();
  if (!os::UdpSocket::open({.address = loopback})) GTEST_SKIP() << "this host has no IPv6 loopback";
  for (const UdpWorldConfig& config :
       {UdpWorldConfig{}, UdpWorldConfig{.planes = {loopback}},
        UdpWorldConfig{
            .planes = {loopback}, .ev_carrier = EvCarrier::kPortAndLabel, .evs_per_plane = 40}}) {
    a = {}, b = {};
    open(config);
    secure_both();
    const auto evs = a.world->evs();
    std::uint32_t psn = 0;
    for (const fabric::Ev& ev : evs) {
      a.node.to_send.push_back(write(psn, 1000 + psn, ev));
      ++psn;
    }
    ASSERT_TRUE(pump([&] { return b.node.came.size() == evs.size(); }));
    for (const auto& came : b.node.came) {
      const auto packet = wire::parse(came.header);
      ASSERT_TRUE(packet);
      const std::uint32_t at = packet->bth.psn.value();
      EXPECT_EQ(came.datagram.entropy, evs[at].value);
      EXPECT_EQ(came.datagram.peer, a.world->addresses()[evs[at].port]);
      expect_arrived(came, 1000 + at);
    }
  }
}

TEST_F(SecureWorldTest, RunIsOneSystemCallAndKeepsItsOrder) {
  open();
  secure_both();
  const std::uint64_t sends = a.counter("net.sends");
  const fabric::Ev ev = a.world->evs()[1];
  for (std::uint32_t psn = 0; psn < 14; ++psn) a.node.to_send.push_back(write(psn, 4096, ev));
  a.node.to_send.push_back(write(14, 77, ev));
  ASSERT_TRUE(pump([&] { return b.node.came.size() == 15; }));
  for (std::uint32_t psn = 0; psn < 15; ++psn) {
    EXPECT_EQ(wire::parse(b.node.came[psn].header)->bth.psn, Psn(psn));
    expect_arrived(b.node.came[psn], psn < 14 ? 4096 : 77);
  }
  EXPECT_EQ(a.counter("net.sends"), sends + 1);
}

TEST_F(SecureWorldTest, PayloadOfEverySizeArrivesWhole) {
  open();
  secure_both();
  for (const std::uint32_t size : {0u, 1u, 2u, 3u, 4u, 5u, 1023u, 4095u, 4096u, 8192u}) {
    b.node.came.clear();
    a.node.to_send.push_back(write(size, size, a.world->evs()[0]));
    ASSERT_TRUE(pump([&] { return b.node.came.size() == 1; })) << size;
    expect_arrived(b.node.came[0], size);
  }
}

TEST_F(SecureWorldTest, PacketsWaitForKeysAndCauseTheKeyExchange) {
  open();
  secure(a, kQpnA, b, kQpnB);
  pump([] { return false; }, Duration::ms(5));
  a.node.to_send.push_back(write(1, 100, a.world->evs()[0]));
  pump([] { return false; }, Duration::ms(5));
  EXPECT_TRUE(b.node.came.empty());
  EXPECT_EQ(a.counter("net.waits_for_keys"), 1u);
  EXPECT_GT(b.counter("net.drop_no_session"), 0u) << "b does not know of it yet";
  // Now b gets its session. The transport would retransmit the lost packet; this test sends another
  // packet.
  secure(b, kQpnB, a, kQpnA);
  ASSERT_TRUE(pump([&] {
    if (a.node.to_send.empty()) a.node.to_send.push_back(write(2, 100, a.world->evs()[0]));
    return !b.node.came.empty();
  }));
}

TEST_F(SecureWorldTest, EndedSessionAcceptsNoPackets) {
  open();
  secure_both();
  b.world->end_session(kQpnB);
  a.node.to_send.push_back(write(1, 100, a.world->evs()[0]));
  EXPECT_TRUE(pump([&] { return b.counter("net.drop_no_session") > 0; }));
  EXPECT_TRUE(b.node.came.empty());
}

TEST_F(SecureWorldTest, PlainPacketsAreNotAccepted) {
  open();
  secure_both();
  auto plain = UdpWorld::open({}).value();
  ScriptedNode node;
  ASSERT_TRUE(plain->attach(plain->addresses(), node));
  const fabric::Ev ev = plain->evs()[0];
  for (const std::uint32_t size : {0u, 4u, 4096u}) node.to_send.push_back(write(1, size, ev));
  plain->pass();
  pump([] { return false; }, Duration::ms(20));
  EXPECT_TRUE(b.node.came.empty());
  EXPECT_EQ(b.counter("net.drop_forged") + b.counter("net.drop_too_short"), 3u);
}

TEST_F(SecureWorldTest, PeerWithAnotherSecretGetsNoAnswer) {
  open({}, 2);
  EXPECT_NE(a.world->secret_fingerprint(), b.world->secret_fingerprint());
  secure_both();
  a.node.to_send.push_back(write(1, 100, a.world->evs()[0]));
  pump([] { return false; }, Duration::ms(20));
  EXPECT_TRUE(b.node.came.empty());
  EXPECT_GT(b.counter("net.drop_forged"), 0u);
}

TEST(SecureWorldOpen, TooShortSecretIsRefused) {
  const auto refused = UdpWorld::open({.job_secret = std::vector<std::byte>(31)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace weft::net
