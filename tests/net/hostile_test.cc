// Attacks on the real ports. In both modes no packet may cause a crash or change a byte outside a
// registered region, and an attacker without a peer's address has no effect. In plain mode, one
// test for each line of docs/security.md shows what an attacker that uses a peer's address can do.
// With a job secret the same attacks do not disturb the transfer. Forged answers that only slow a
// QP down are in forged_answer_test.cc.
#include <gtest/gtest.h>

#include "hostile_modes.h"
#include "packet_tap.h"

namespace weft::hostile {
namespace {

// --- both modes --------------------------------------------------------------------------------

class AnyMode : public ::testing::TestWithParam<Security> {
 protected:
  void SetUp() override { ASSERT_TRUE(pair.open(GetParam())); }
  void TearDown() override { EXPECT_TRUE(pair.all_canaries_intact()); }
  HostilePair pair;
};
INSTANTIATE_TEST_SUITE_P(Hostile, AnyMode, ::testing::Values(Security::kPlain, Security::kSecured),
                         [](const auto& param) {
                           return param.param == Security::kPlain ? "Plain" : "Secured";
                         });

TEST_P(AnyMode, RandomBytesFromAnyAddressDisturbNothing) {
  Prng prng(4);
  Stranger elsewhere = Stranger::elsewhere();
  Stranger as_b = Stranger::as(pair.b);
  std::vector<std::byte> bytes(3000);
  std::uint64_t sent = 0;
  pair.transfer_both_ways([&](std::uint64_t) {
    for (int i = 0; i < 8 && sent < 20'000; ++i, ++sent) {
      for (std::size_t at = 0; at < 64; ++at) bytes[at] = static_cast<std::byte>(prng.next());
      (i % 2 == 0 ? elsewhere : as_b)
          .send_raw(pair.a, ConstBytes(bytes).first(prng.below(prng.below(2) != 0 ? 3000 : 100)),
                    prng.below(4) == 0 ? world::Dscp::kTrimmed : world::Dscp::kControl);
    }
  });
  EXPECT_GT(sent, 0u);
  pair.settle();
  EXPECT_GT(pair.a.counter("net.drop_too_short"), 0u);
  EXPECT_GT(pair.a.counter("net.drop_bad_opcode") + pair.a.counter("net.drop_no_session"), 0u);
}

TEST_P(AnyMode, PacketsFromAnAddressOfNoPeerDisturbNothing) {
  Stranger stranger = Stranger::elsewhere();
  const auto payload = std::vector<std::byte>(100, std::byte{0xee});
  pair.transfer_both_ways([&](std::uint64_t round) {
    if (round % 4 != 0) return;
    for (End* victim : {&pair.a, &pair.b}) {
      const Psn psn(static_cast<std::uint32_t>(victim->hello.first_psn + round));
      forge_nack(stranger, *victim, psn);
      forge_acknowledgement(stranger, *victim, psn);
      forge_write(stranger, *victim,
                  {.psn = psn, .va = victim->region.at, .rkey = victim->region.rkey}, payload);
      forge_port_status(stranger, *victim, static_cast<std::uint16_t>(round + 1));
    }
  });
  pair.settle();
  const bool plain = GetParam() == Security::kPlain;
  EXPECT_GT(pair.a.counter(plain ? "transport.drop_unknown_peer" : "net.drop_forged"), 0u);
}

// --- plain mode: attacks from a peer's address
// -----------------------------------------------------

TEST_F(Plain, AForgedNackKillsTheQp) {
  Stranger as_b = Stranger::as(pair.b);
  pair.post(pair.a, pair.b, {});
  for (int i = 0; i < 1000 && pair.a.failed == 0; ++i) {
    pair.a.net->world().pass();  // b is not driven, so the write stays in flight
    pair.a.collect();
    forge_nack(as_b, pair.a, first_psn(pair.a));
  }
  EXPECT_EQ(pair.a.failed, 1u);
  EXPECT_EQ(pair.a.net->endpoint().qp_state(pair.a.hello.qpn), transport::QpState::kError);
}

TEST_F(Plain, AForgedAcknowledgementCompletesAWriteThatNeverArrived) {
  Stranger as_b = Stranger::as(pair.b);
  pair.post(pair.a, pair.b, {.size = 4096});
  pair.a.net->world().pass();  // sends the write; b is not driven
  for (int i = 0; i < 1000 && pair.a.done + pair.a.failed == 0; ++i) {
    forge_acknowledgement(as_b, pair.a, first_psn(pair.a));
    pair.a.net->world().pass();
    pair.a.collect();
  }
  EXPECT_EQ(pair.a.done, 1u);
  EXPECT_EQ(pair.b.landing.region()[0], std::byte{0}) << "nothing was placed";
}

TEST_F(Plain, AForgedWriteWithASeenKeyChangesTheRegionAndNothingElse) {
  Stranger as_a = Stranger::as(pair.a);
  const std::vector<std::byte> payload(100, std::byte{0xee});
  forge_write(as_a, pair.b,
              {.psn = first_psn(pair.a), .va = pair.b.region.at + 5, .rkey = pair.b.region.rkey},
              payload);
  pair.settle();
  EXPECT_EQ(pair.b.landing.region()[4], std::byte{0});
  EXPECT_EQ(pair.b.landing.region()[5], std::byte{0xee});
  EXPECT_EQ(pair.b.landing.region()[104], std::byte{0xee});
  EXPECT_EQ(pair.b.landing.region()[105], std::byte{0});
}

// As after a real peer's mistake: the region is safe, but the QP fails.
TEST_F(Plain, AForgedWriteOutsideOrUnderAWrongKeyPlacesNothingAndKillsTheQp) {
  struct Case {
    const char* name;
    std::int64_t offset;
    std::uint32_t key_change;
  };
  for (const Case& c : {Case{"wrong key", 0, 1}, Case{"before the region", -1, 0},
                        Case{"across its end", kRegion - 99, 0}, Case{"far away", 1ll << 46, 0}}) {
    HostilePair own;
    ASSERT_TRUE(own.open(Security::kPlain));
    Stranger as_a = Stranger::as(own.a);
    const std::vector<std::byte> payload(100, std::byte{0xee});
    forge_write(as_a, own.b,
                {.psn = first_psn(own.a),
                 .va = own.b.region.at + static_cast<std::uint64_t>(c.offset),
                 .rkey = own.b.region.rkey ^ c.key_change},
                payload);
    own.settle();
    EXPECT_TRUE(own.all_canaries_intact()) << c.name;
    for (const std::byte b : own.b.landing.region()) ASSERT_EQ(b, std::byte{0}) << c.name;
    EXPECT_EQ(own.b.net->endpoint().qp_state(own.b.hello.qpn), transport::QpState::kError)
        << c.name;
  }
}

TEST_F(Plain, AForgedPortStatusTakesPlanesOutOfUse) {
  pair.post(pair.a, pair.b, {.size = 4096});
  ASSERT_TRUE(pair.run([&] { return pair.a.done == 1; }));
  Stranger as_b = Stranger::as(pair.b);
  forge_port_status(as_b, pair.a, 77);
  pair.settle();
  pair.post(pair.a, pair.b, {.size = 4096});
  const Time until = os::clock_now() + Duration::ms(100);
  pair.run([&] { return os::clock_now() >= until; });
  EXPECT_EQ(pair.a.done, 1u) << "a thinks that b cannot be reached";
}

// The number of answers to an EV probe from an address that no peer has.
std::size_t answers_to_a_probe(HostilePair& pair) {
  auto listener =
      os::UdpSocket::open(
          {.address = Stranger::nobodys_address(), .port = wire::listen_port(0), .receives = true})
          .value();
  Stranger stranger = Stranger::elsewhere();
  stranger.send(
      pair.a,
      {.opcode = wire::Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(9)},
      wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe});
  pair.settle();
  std::vector<std::byte> buffer(os::UdpSocket::kRunBytes);
  std::array<os::UdpSocket::Incoming, 1> runs;
  return listener.receive(buffer, runs);
}

TEST_F(Plain, AnyoneGetsAnAnswerToAProbe) { EXPECT_EQ(answers_to_a_probe(pair), 1u); }

TEST_F(Plain, MutatedCapturesFromThePeersAddressNeverCrashNorWriteOutsideTheRegion) {
  PacketTap tap;
  if (!tap.open()) GTEST_SKIP() << tap.why_not();
  pair.transfer_both_ways(nullptr);
  const auto packets = tap.take(pair.a, pair.b);
  ASSERT_GT(packets.size(), 100u);
  Prng prng(5);
  Stranger as_b = Stranger::as(pair.b), as_a = Stranger::as(pair.a);
  for (int i = 0; i < 20'000; ++i) {
    const PacketTap::Packet& genuine =
        packets[prng.below(static_cast<std::uint32_t>(packets.size()))];
    auto bytes = genuine.bytes;
    bytes.resize(bytes.size() -
                 (prng.below(4) == 0 ? prng.below(static_cast<std::uint32_t>(bytes.size())) : 0));
    for (std::uint32_t edits = prng.below(4); edits > 0 && !bytes.empty(); --edits)
      bytes[prng.below(static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 60)))] =
          static_cast<std::byte>(prng.next());
    Stranger& stranger = genuine.to_b ? as_a : as_b;
    const End& victim = genuine.to_b ? pair.b : pair.a;
    if (prng.below(2) == 0) stranger.mend(victim, bytes);
    stranger.send_raw(victim, bytes,
                      prng.below(8) == 0 ? world::Dscp::kTrimmed : world::Dscp::kTrimmable);
    if (i % 16 == 0) {
      pair.a.net->world().pass();
      pair.b.net->world().pass();
    }
  }
  pair.settle();
  EXPECT_TRUE(pair.all_canaries_intact());
  EXPECT_GT(pair.a.counter("transport.drop_damaged") + pair.b.counter("transport.drop_damaged"),
            0u);
}

TEST_F(Plain, AnObserverReadsThePayload) {
  PacketTap tap;
  if (!tap.open()) GTEST_SKIP() << tap.why_not();
  pair.transfer_both_ways(nullptr);
  EXPECT_TRUE(tap.shows(tap.take(pair.a, pair.b), ConstBytes(pair.a.source).subspan(4096, 64)));
}

// --- with a job secret ------------------------------------------------------------------------------

TEST_F(Secured, AttacksFromAPeersAddressDoNotDisturbTheTransfer) {
  Stranger as_a = Stranger::as(pair.a), as_b = Stranger::as(pair.b);
  const std::vector<std::byte> payload(100, std::byte{0xee});
  std::uint64_t sent = 0;
  pair.transfer_both_ways([&](std::uint64_t round) {
    for (auto [from, to, peer] :
         {std::tuple(&as_a, &pair.b, &pair.a), std::tuple(&as_b, &pair.a, &pair.b)}) {
      // The PSNs go through the whole range, so that each attack uses a valid PSN at some time.
      const Psn own(static_cast<std::uint32_t>(to->hello.first_psn + round % 2048) & Psn::kMask);
      const Psn theirs(static_cast<std::uint32_t>(peer->hello.first_psn + round % 2048) &
                       Psn::kMask);
      forge_nack(*from, *to, own);
      forge_acknowledgement(*from, *to, own);
      forge_write(*from, *to, {.psn = theirs, .va = to->region.at, .rkey = to->region.rkey},
                  payload);
      forge_write(*from, *to, {.psn = theirs, .va = 1, .rkey = to->region.rkey ^ 1}, payload);
      forge_port_status(*from, *to, static_cast<std::uint16_t>(round + 1));
      sent += 6;
    }
  });
  pair.settle();
  EXPECT_GT(sent, 100u);
  for (End* end : {&pair.a, &pair.b}) {
    EXPECT_GT(end->counter("net.drop_forged"), 0u);
    EXPECT_EQ(end->counter("transport.drop_damaged"), 0u);
  }
}

TEST_F(Secured, ReplayedAndAlteredPacketsDoNotDisturbTheTransfer) {
  PacketTap tap;
  if (!tap.open()) GTEST_SKIP() << tap.why_not();
  std::vector<PacketTap::Packet> packets;
  Prng prng(6);
  Stranger as_a = Stranger::as(pair.a), as_b = Stranger::as(pair.b);
  std::uint64_t sent = 0;
  pair.transfer_both_ways([&](std::uint64_t) {
    auto more = tap.take(pair.a, pair.b);
    if (packets.size() < 4000) packets.insert(packets.end(), more.begin(), more.end());
    if (packets.empty()) return;
    for (int i = 0; i < 8; ++i, ++sent) {
      const PacketTap::Packet& genuine =
          packets[prng.below(static_cast<std::uint32_t>(packets.size()))];
      auto bytes = genuine.bytes;
      if (prng.below(4) == 0) bytes.resize(prng.below(static_cast<std::uint32_t>(bytes.size())));
      for (std::uint32_t edits = prng.below(3); edits > 0 && !bytes.empty(); --edits)
        bytes[prng.below(static_cast<std::uint32_t>(bytes.size()))] =
            static_cast<std::byte>(prng.next());
      // The packet goes to its original receiver, or back to its sender.
      const bool to_b = genuine.to_b != (prng.below(4) == 0);
      (to_b ? as_a : as_b)
          .send_raw(to_b ? pair.b : pair.a, bytes,
                    prng.below(8) == 0 ? world::Dscp::kTrimmed : world::Dscp::kTrimmable);
    }
  });
  pair.settle();
  EXPECT_GT(sent, 100u);
  EXPECT_GT(pair.a.counter("net.drop_forged") + pair.b.counter("net.drop_forged"), 0u);
  EXPECT_GT(pair.a.counter("net.drop_replayed") + pair.b.counter("net.drop_replayed"), 0u);
}

TEST_F(Secured, ProbeOfAStrangerGetsNoAnswer) { EXPECT_EQ(answers_to_a_probe(pair), 0u); }

TEST_F(Secured, AnObserverCannotReadThePayload) {
  PacketTap tap;
  if (!tap.open()) GTEST_SKIP() << tap.why_not();
  pair.transfer_both_ways(nullptr);
  const auto packets = tap.take(pair.a, pair.b);
  ASSERT_GT(packets.size(), 100u);
  EXPECT_FALSE(tap.shows(packets, ConstBytes(pair.a.source).subspan(4096, 16)));
}

TEST(SecuredEnds, EndWithoutTheSecretIsRefusedAtConnect) {
  HostilePair plain, secured;
  ASSERT_TRUE(plain.open(Security::kPlain));
  ASSERT_TRUE(secured.open(Security::kSecured));
  const auto refused = [&] {
    plain.a.create_qp();
    return plain.a.connect(secured.a.hello);
  }();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--secret-file"), std::string::npos);
}

}  // namespace
}  // namespace weft::hostile
