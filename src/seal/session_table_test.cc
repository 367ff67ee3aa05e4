// Which session a packet belongs to, with several QPs, processes and incarnations.
#include "seal/session_table.h"

#include <gtest/gtest.h>

#include <tuple>

#include "base/ipv6.h"
#include "seal/test_secure_pair.h"

namespace weft::seal {
namespace {

using namespace test;

std::vector<world::Address> ports_of(std::uint8_t host, std::uint16_t process) {
  return {world::Address::of(base::ipv4(10, 0, 1, host), process),
          world::Address::of(base::ipv4(10, 0, 2, host), process)};
}

struct Process {
  std::vector<world::Address> ports;
  std::unique_ptr<SessionTable> table;
  Process(std::uint8_t host, std::uint16_t process, std::uint8_t secret = 1)
      : ports(ports_of(host, process)) {
    table =
        SessionTable::create(
            {.job_secret = some_secret(secret), .process = process, .qps_max = 4, .peers_max = 2})
            .value();
  }
  Result<void> secure(std::uint32_t qpn, const Process& peer, std::uint32_t peer_qpn) {
    return table->secure(
        kStart, qpn,
        {.incarnation = peer.table->incarnation(), .qpn = peer_qpn, .ports = peer.ports});
  }
  // As secure(), but without telling the peer's incarnation.
  Result<void> secure_unnamed(std::uint32_t qpn, const Process& peer, std::uint32_t peer_qpn) {
    return table->secure(kStart, qpn, {.qpn = peer_qpn, .ports = peer.ports});
  }
  bool take(const Process& from, ConstBytes packet) {
    std::vector<std::byte> copy(packet.begin(), packet.end());
    const auto out = table->open(kStart, {.from = from.ports[1], .options = {.ev = kEv}}, copy);
    if (!out) why = out.error();
    return out.has_value();
  }
  DropReason why{};
};

// Delivers hellos until neither process has one to send.
void settle(Process& a, Process& b) {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      while (const auto hello = from->table->poll_hello()) {
        moved = true;
        if (hello->to[0] == to->ports[0]) to->take(*from, hello->packet);
      }
    }
  }
}

std::vector<std::byte> header_to(std::uint32_t qpn) {
  std::vector<std::byte> header(wire::kHeaderSizeMax);
  if (qpn == wire::kEndpointQpn) {
    header.resize(wire::emit({.opcode = wire::Opcode::kEndpointRequest, .dest_qpn = qpn},
                             wire::EndpointRequest{}, header));
  } else {
    header.resize(
        wire::emit({.opcode = wire::Opcode::kNack, .dest_qpn = qpn}, wire::Nack{}, header));
  }
  return header;
}

std::vector<std::byte> send(Process& from, const Process& to, std::uint32_t qpn) {
  const auto header = header_to(qpn);
  std::vector<std::byte> out(200);
  out.resize(from.table->seal(kStart, {.peer = to.ports[0], .header = header}, kEv, out));
  return out;
}

TEST(SessionTable, FindsTheSessionOfEachQpAndOfTheEndpoints) {
  Process a(1, 0), b(2, 0), c(2, 1);
  ASSERT_TRUE(a.secure(0x100, b, 0x100));
  ASSERT_TRUE(b.secure(0x100, a, 0x100));
  settle(a, b);
  ASSERT_TRUE(a.secure(0x101, b, 0x101));
  ASSERT_TRUE(b.secure(0x101, a, 0x101));
  settle(a, b);
  ASSERT_TRUE(a.secure(0x102, c, 0x1'0100));
  ASSERT_TRUE(c.secure(0x1'0100, a, 0x102));
  settle(a, c);
  for (const std::uint32_t qpn : {0x100u, 0x101u, wire::kEndpointQpn}) {
    for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      const auto packet = send(*from, *to, qpn);
      ASSERT_FALSE(packet.empty()) << qpn;
      EXPECT_FALSE(c.take(*from, packet));
      EXPECT_TRUE(to->take(*from, packet)) << qpn;
      EXPECT_FALSE(to->take(*from, packet)) << "again";
    }
  }
  // c is the second process of b's host and has its own keys.
  EXPECT_TRUE(c.take(a, send(a, c, 0x1'0100)));
  EXPECT_TRUE(c.take(a, send(a, c, wire::kEndpointQpn)));
  EXPECT_FALSE(b.take(a, send(a, c, wire::kEndpointQpn)));
  EXPECT_EQ(b.why, DropReason::kForged);
  // No packet is sent to a QPN that does not exist.
  EXPECT_TRUE(send(a, b, 0x777).empty());
  EXPECT_FALSE(b.take(a, header_to(0x777)));
  EXPECT_EQ(b.why, DropReason::kNoSession);
}

TEST(SessionTable, PacketsThatAreNotSealedAreNeverAccepted) {
  Process a(1, 0), b(2, 0);
  ASSERT_TRUE(a.secure(0x100, b, 0x100));
  ASSERT_TRUE(b.secure(0x100, a, 0x100));
  for (int i = 0; i < 2; ++i) {
    auto plain = header_to(0x100);
    EXPECT_FALSE(b.take(a, plain));
    plain.resize(plain.size() + 4);
    EXPECT_FALSE(b.take(a, plain));
    plain.resize(plain.size() + kSealedControlExtra - 4);
    EXPECT_FALSE(b.take(a, plain));
    settle(a, b);
  }
  EXPECT_EQ(b.why, DropReason::kForged);
}

TEST(SessionTable, WithoutKeysNothingIsSentExceptAHello) {
  Process a(1, 0), b(2, 0);
  ASSERT_TRUE(a.secure(0x100, b, 0x100));
  while (a.table->poll_hello()) {
  }
  EXPECT_TRUE(send(a, b, 0x100).empty());
  EXPECT_FALSE(a.table->poll_hello()) << "one was sent this millisecond";
  const auto header = header_to(0x100);
  std::vector<std::byte> out(200);
  EXPECT_EQ(
      a.table->seal(kStart + Duration::ms(1), {.peer = b.ports[0], .header = header}, kEv, out),
      0u);
  EXPECT_TRUE(a.table->poll_hello());
}

// The peer process is killed, and another starts in its slot with the same QPN.
TEST(SessionTable, ARestartedPeerGetsANewSession) {
  Process a(1, 0);
  std::vector<std::byte> recorded;
  {
    Process b(2, 0);
    ASSERT_TRUE(a.secure(0x100, b, 0x100));
    ASSERT_TRUE(b.secure(0x100, a, 0x100));
    settle(a, b);
    recorded = send(b, a, 0x100);
    EXPECT_FALSE(send(a, b, 0x100).empty());
  }
  Process b(2, 0);
  ASSERT_TRUE(b.secure(0x100, a, 0x101));
  settle(a, b);
  EXPECT_TRUE(send(b, a, 0x101).empty()) << "nobody here has agreed to it";
  ASSERT_TRUE(a.secure(0x101, b, 0x100));
  settle(a, b);
  EXPECT_TRUE(b.take(a, send(a, b, 0x100)));
  EXPECT_TRUE(b.take(a, send(a, b, wire::kEndpointQpn)));
  EXPECT_TRUE(a.take(b, send(b, a, 0x101)));
  base::store32(Bytes(recorded), 4, 0x101);
  EXPECT_FALSE(a.take(b, recorded));
  // When the local QP is made anew, old packets to it become invalid.
  const auto late = send(b, a, 0x101);
  ASSERT_TRUE(a.secure(0x101, b, 0x100));
  EXPECT_FALSE(a.take(b, late));
}

// The ends are not told the incarnations out of band; they learn them from hellos.
TEST(SessionTable, UnknownIncarnationsAreLearnedFromHellos) {
  Process a(1, 0), b(2, 0);
  ASSERT_TRUE(a.secure_unnamed(0x100, b, 0x200));
  settle(a, b);
  EXPECT_TRUE(send(a, b, 0x200).empty()) << "nobody there has agreed to it";
  EXPECT_TRUE(send(a, b, wire::kEndpointQpn).empty());
  ASSERT_TRUE(b.secure_unnamed(0x200, a, 0x100));
  settle(a, b);
  for (auto [from, to, qpn] : {std::tuple(&a, &b, 0x200u), std::tuple(&b, &a, 0x100u),
                               std::tuple(&a, &b, std::uint32_t{wire::kEndpointQpn}),
                               std::tuple(&b, &a, std::uint32_t{wire::kEndpointQpn})}) {
    const auto packet = send(*from, *to, qpn);
    ASSERT_FALSE(packet.empty()) << qpn;
    EXPECT_TRUE(to->take(*from, packet)) << qpn;
    EXPECT_FALSE(to->take(*from, packet)) << "again";
  }
  // A hello from another host or QP is not accepted for this session.
  Process c(3, 0);
  ASSERT_TRUE(c.secure_unnamed(0x300, a, 0x100));
  settle(a, c);
  EXPECT_TRUE(send(c, a, 0x100).empty());
}

// The peer process is killed, and another starts in its slot. Old QPs keep their keys with the old
// process; new QPs and the endpoints get keys with the new process.
TEST(SessionTable, ARestartedPeerOfUnknownIncarnationGetsANewSession) {
  Process a(1, 0);
  std::vector<std::byte> hello;
  {
    Process b(2, 0);
    ASSERT_TRUE(b.secure_unnamed(0x200, a, 0x101));
    if (const auto first = b.table->poll_hello())
      hello = {first->packet.begin(), first->packet.end()};
    ASSERT_TRUE(a.secure_unnamed(0x100, b, 0x201));
    ASSERT_TRUE(b.secure_unnamed(0x201, a, 0x100));
    settle(a, b);
    EXPECT_TRUE(b.take(a, send(a, b, wire::kEndpointQpn)));
  }
  Process b(2, 0);
  ASSERT_TRUE(a.secure_unnamed(0x101, b, 0x200));
  ASSERT_TRUE(b.secure_unnamed(0x200, a, 0x101));
  // A hello recorded from the old process is answered but changes nothing.
  EXPECT_TRUE(a.take(b, hello));
  settle(a, b);
  EXPECT_TRUE(b.take(a, send(a, b, 0x200)));
  EXPECT_TRUE(a.take(b, send(b, a, 0x101)));
  EXPECT_TRUE(b.take(a, send(a, b, wire::kEndpointQpn)));
  EXPECT_TRUE(a.take(b, send(b, a, wire::kEndpointQpn)));
  EXPECT_FALSE(b.take(a, send(a, b, 0x201))) << "of a QP that died";
}

TEST(SessionTable, ProcessesWithDifferentSecretsGetNoKeys) {
  Process a(1, 0, 1), b(2, 0, 2);
  EXPECT_NE(a.table->fingerprint(), b.table->fingerprint());
  ASSERT_TRUE(a.secure(0x100, b, 0x100));
  ASSERT_TRUE(b.secure(0x100, a, 0x100));
  settle(a, b);
  EXPECT_EQ(b.why, DropReason::kForged);
  EXPECT_TRUE(send(a, b, 0x100).empty());
}

TEST(SessionTable, InvalidPeersAndFullTablesAreRefused) {
  Process a(1, 0), b(2, 0), c(3, 0), d(4, 0);
  EXPECT_EQ(a.secure(0x100, a, 0x101).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(a.table->secure(kStart, 0x100, {}).error().kind, ErrorKind::kInvalid);
  ASSERT_TRUE(a.secure(0x100, b, 1));
  ASSERT_TRUE(a.secure(0x101, c, 1));
  EXPECT_EQ(a.secure(0x102, d, 1).error().kind, ErrorKind::kExhausted) << "peers";
  ASSERT_TRUE(a.secure(0x102, b, 2));
  ASSERT_TRUE(a.secure(0x103, b, 3));
  EXPECT_EQ(a.secure(0x104, b, 4).error().kind, ErrorKind::kExhausted) << "QPs";
  EXPECT_TRUE(a.table->close(0x103));
  EXPECT_FALSE(a.table->close(0x103));
  EXPECT_TRUE(a.secure(0x104, b, 4));
}

TEST(SessionTable, APeerWithoutQpsIsReplacedWhenTheTableIsFull) {
  Process a(1, 0), b(2, 0), c(3, 0), d(4, 0);
  ASSERT_TRUE(a.secure(0x100, b, 0x100));
  ASSERT_TRUE(b.secure(0x100, a, 0x100));
  ASSERT_TRUE(a.secure(0x101, c, 1));
  settle(a, b);
  for (std::uint32_t qpn = 0x200; qpn < 0x210; ++qpn) {
    ASSERT_TRUE(a.table->close(qpn == 0x200 ? 0x101 : qpn - 1));
    Process& next = qpn % 2 == 0 ? d : c;
    ASSERT_TRUE(a.secure(qpn, next, qpn)) << qpn;
    ASSERT_TRUE(next.secure(qpn, a, qpn));
    settle(a, next);
    EXPECT_FALSE(send(a, next, qpn).empty());
    EXPECT_FALSE(send(a, b, 0x100).empty()) << "b has QPs and keeps its place";
    next = Process(qpn % 2 == 0 ? 4 : 3, 0);  // the peer restarts before it is used once more
  }
}

}  // namespace
}  // namespace weft::seal
