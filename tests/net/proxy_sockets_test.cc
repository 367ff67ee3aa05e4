// Two hosts on the loopback with a fabric between them. Packets arrive from the sender's proxy, on
// their EV, with a correct ICRC. Real sockets; the test sets the time of the fabric.
#include "softswitch/proxy_sockets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <deque>

#include "net/test_scripted_node.h"
#include "net/udp_world.h"
#include "os/clock.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

using test::ScriptedNode;

std::uint32_t psn_of(const ScriptedNode::Came& came) {
  const auto packet = wire::parse(came.header, {.trimmed = world::is_trimmed(came.datagram.dscp)});
  return packet ? packet->bth.psn.value() : 0;
}

class ProxySocketsTest : public ::testing::TestWithParam<IcrcCover> {
 protected:
  // Addresses of their own for each process, so that tests may run in parallel.
  const std::uint8_t net = static_cast<std::uint8_t>(110 + 2 * (getpid() % 60));

  softswitch::LiveFabricConfig config() const {
    const switching::QueueParams queue{.data_bytes_max = 20'000, .control_bytes_max = 100'000};
    return {.topology = *fabric::Topology::make({.shape = fabric::Shape::kSingle,
                                                 .hosts = 3,
                                                 .planes = 2,
                                                 .host_rate = Rate::bps(200'000'000)}),
            .fabric_queue = queue,
            .last_hop_queue = queue,
            .packets_max = 512};
  }

  struct Host {
    ScriptedNode node;
    std::unique_ptr<UdpWorld> world;
  };
  void open(Host& host, fabric::HostIndex index) {
    auto opened =
        UdpWorld::open({.planes = {softswitch::socket_host({.host = index, .plane = 0}, net),
                                   softswitch::socket_host({.host = index, .plane = 1}, net)},
                        .icrc = GetParam()});
    ASSERT_TRUE(opened) << opened.error().message;
    host.world = std::move(*opened);
    ASSERT_TRUE(host.world->attach(host.world->addresses(), host.node));
  }
  void SetUp() override {
    auto opened = softswitch::ProxySockets::open(
        fabric.topology(),
        {.processes = 2, .icrc_full = GetParam() == IcrcCover::kFull, .net = net});
    ASSERT_TRUE(opened) << opened.error().message;
    edge = std::move(*opened);
    for (fabric::HostIndex i = 0; i < hosts.size(); ++i) open(hosts[i], i);
  }

  world::Datagram write(std::uint32_t psn, fabric::Ev ev, fabric::HostIndex to) {
    auto& header = headers.emplace_back();
    const std::size_t bytes =
        wire::emit({.opcode = wire::Opcode::kWriteOnly, .dest_qpn = 0x123, .psn = Psn(psn)},
                   wire::Write{.sent = {7}, .va = 0x1000, .rkey = 5, .message_size = 4096}, header);
    return {
        .port = ev.port,
        .ecn = world::Ecn::kEct0,
        .dscp = world::Dscp::kTrimmable,
        .entropy = ev.value,
        .peer = world::Address::of(softswitch::socket_proxy({.host = to, .plane = ev.port}, net)),
        .header = ConstBytes(header).first(bytes),
        .payload = {.at = reinterpret_cast<std::uintptr_t>(payload.data()), .size = 4096}};
  }

  // Runs until `count` datagrams have arrived at host 2, for at most two seconds.
  void run(std::size_t count) {
    const Time until = os::clock_now() + Duration::s(2);
    while (hosts[2].node.came.size() < count && os::clock_now() < until) step();
  }
  void step() {
    std::array<softswitch::FabricEdge::Incoming, softswitch::FabricEdge::kBatch> in;
    std::array<softswitch::LiveFabric::Delivery, softswitch::FabricEdge::kBatch> out;
    for (Host& host : hosts) host.world->pass();
    const Time now = os::clock_now();
    const std::size_t got = edge->receive(now, in);
    for (std::size_t i = 0; i < got; ++i)
      fabric.on_packet(in[i].at, in[i].from.host, in[i].from.plane, in[i].packet);
    edge->release();
    edge->send(std::span(out).first(fabric.poll(now, out)));
  }

  softswitch::LiveFabric fabric{config()};
  std::unique_ptr<softswitch::ProxySockets> edge;
  std::array<Host, 3> hosts;
  std::vector<std::byte> payload = std::vector<std::byte>(4096, std::byte{0x3c});
  std::deque<std::array<std::byte, wire::kHeaderSizeMax>> headers;
};

TEST_P(ProxySocketsTest, EveryEvArrivesFromTheProxyWithACorrectIcrc) {
  const auto evs = hosts[0].world->evs();
  std::uint32_t psn = 0;
  for (const fabric::Ev& ev : evs) hosts[0].node.to_send.push_back(write(psn++, ev, 2));
  run(evs.size());
  ASSERT_EQ(hosts[2].node.came.size(), evs.size());
  for (const auto& came : hosts[2].node.came) {
    const fabric::Ev& ev = evs[psn_of(came)];
    EXPECT_EQ(came.datagram.entropy, ev.value);
    EXPECT_EQ(came.datagram.port, ev.port);
    EXPECT_EQ(came.datagram.peer,
              world::Address::of(softswitch::socket_proxy({.host = 0, .plane = ev.port}, net)));
    EXPECT_TRUE(came.datagram.intact);
    EXPECT_EQ(came.payload, payload);
  }
  EXPECT_EQ(edge->counters().drops_send, 0u);
}

TEST_P(ProxySocketsTest, RunsOfTwoSendersAreTrimmedAtTheirCommonPort) {
  const fabric::Ev ev = hosts[0].world->evs()[0];
  for (std::uint32_t psn = 0; psn < 12; ++psn) {
    hosts[0].node.to_send.push_back(write(psn, ev, 2));
    hosts[1].node.to_send.push_back(write(100 + psn, hosts[1].world->evs()[0], 2));
  }
  run(24);
  ASSERT_EQ(hosts[2].node.came.size(), 24u);
  std::size_t trimmed = 0;
  for (const auto& came : hosts[2].node.came) {
    const bool cut = came.datagram.dscp == world::Dscp::kTrimmedLastHop;
    trimmed += cut;
    EXPECT_TRUE(came.datagram.intact);
    EXPECT_EQ(came.payload.size(), cut ? 0u : 4096u);
  }
  EXPECT_GT(trimmed, 0u);
}

TEST_P(ProxySocketsTest, DamagedPacketArrivesDamaged) {
  fabric::FaultEvent damage{
      .action = fabric::FaultAction::kImpair, .id = 1, .place = fabric::FaultPlace::kNicReceive};
  damage.impairment.kind = fabric::ImpairmentKind::kCorrupt;
  damage.impairment.share_of_2_32 = 1ull << 32;
  ASSERT_TRUE(fabric.apply(os::clock_now(), damage));
  hosts[0].node.to_send.push_back(write(1, hosts[0].world->evs()[0], 2));
  run(1);
  ASSERT_EQ(hosts[2].node.came.size(), 1u);
  EXPECT_FALSE(hosts[2].node.came[0].datagram.intact);
}

// A sealed packet: the header is as in a plain packet, but a tag takes the place of the ICRC.
TEST_P(ProxySocketsTest, PacketWithoutIcrcPassesUnchanged) {
  const fabric::HostPort from{.host = 0, .plane = 0}, to{.host = 2, .plane = 0};
  auto sender = os::UdpSocket::open(
      {.address = softswitch::socket_host(from, net), .port = wire::source_port(1, 5)});
  auto receiver = os::UdpSocket::open({.address = softswitch::socket_host(to, net),
                                       .port = wire::listen_port(1),
                                       .receives = true});
  ASSERT_TRUE(sender && receiver);
  const world::Datagram d = write(1, hosts[0].world->evs()[0], 2);
  std::vector<std::byte> sealed(d.header.begin(), d.header.end());
  sealed.resize(sealed.size() + 1024 + 32, std::byte{0x77});
  iovec piece{sealed.data(), sealed.size()};
  ASSERT_EQ(sender->send({.to = softswitch::socket_proxy(to, net), .port = wire::listen_port(1)},
                         {&piece, 1}),
            os::UdpSocket::Sent::kTaken);
  std::vector<std::byte> buffer(os::UdpSocket::kRunBytes);
  os::UdpSocket::Incoming run;
  std::size_t came = 0;
  for (const Time until = os::clock_now() + Duration::s(2); came == 0 && os::clock_now() < until;) {
    step();
    came = receiver->receive(buffer, {&run, 1});
  }
  ASSERT_EQ(came, 1u);
  ASSERT_EQ(run.size, sealed.size());
  EXPECT_TRUE(std::equal(sealed.begin(), sealed.end(), buffer.begin()));
}

INSTANTIATE_TEST_SUITE_P(Covers, ProxySocketsTest,
                         ::testing::Values(IcrcCover::kHeaders, IcrcCover::kFull));

}  // namespace
}  // namespace weft::net
