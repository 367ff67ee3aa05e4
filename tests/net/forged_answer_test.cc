// Attacks in plain mode with forged answers (SACKs, NACKs, Transport ACKs, endpoint responses): an
// attacker that uses a peer's address can change windows, paths and retransmissions, and replace
// writes. One test for each line of docs/security.md. With a job secret the same packets have no
// effect.
//
// Some answers must repeat the time at which a packet was sent, in ticks of 128 ns. An attacker on
// the path reads this time in the packet. These tests try every possible time instead, which needs
// no privilege.
#include <gtest/gtest.h>

#include "hostile_modes.h"
#include "transport/requestor.h"

namespace weft::hostile {
namespace {

constexpr std::uint32_t kPacket = 4096;  // one full packet
constexpr std::uint32_t kSmall = 64;     // so small that many packets fit into a window
// The bytes in flight that the smallest window allows: one full packet. The initial window is 256
// KiB.
constexpr std::int64_t kWindowOfOne = 4200;

// A SACK that acknowledges nothing, so that only the fields that a test sets have an effect.
wire::Sack empty_sack(const End& to) { return {.cack = Psn(to.hello.first_psn) - 1}; }

void forge_sack(Stranger& from, const End& to, const wire::Sack& sack) {
  from.send(to, {.opcode = wire::Opcode::kSack, .dest_qpn = to.hello.qpn, .psn = sack.cack}, sack);
}
void forge_nack(Stranger& from, const End& to, const wire::Nack& nack) {
  from.send(to, {.opcode = wire::Opcode::kNack, .dest_qpn = to.hello.qpn, .psn = nack.psn}, nack);
}
void forge_refusal(Stranger& from, const End& to, Psn psn, wire::AckSyndrome syndrome) {
  from.send(to, {.opcode = wire::Opcode::kTransportAck, .dest_qpn = to.hello.qpn, .psn = psn},
            wire::TransportAck{.syndrome = syndrome});
}
// Forges the response to the endpoint request `id` that `to` has sent.
void forge_endpoint_answer(Stranger& from, const End& to, std::uint16_t id) {
  from.send(
      to,
      {.opcode = wire::Opcode::kEndpointResponse, .dest_qpn = wire::kEndpointQpn, .psn = Psn(id)},
      wire::EndpointResponse{});
}
// A forged write of no bytes, which needs no key.
void forge_empty_write(Stranger& from, const End& to, Psn psn) {
  forge_write(from, to, {.psn = psn}, {});
}
void forge_immediate(Stranger& from, const End& to, Psn psn, std::uint32_t value) {
  from.send(to, {.opcode = wire::Opcode::kWriteOnlyImm, .dest_qpn = to.hello.qpn, .psn = psn},
            wire::Write{.immediate = value});
}

transport::Endpoint::QpView view(End& end) { return end.net->endpoint().view(end.hello.qpn); }

// A packet that `from` has sent, with the range of possible send times. It is in flight until `to`
// is driven.
struct Sent {
  Psn psn{};
  std::uint16_t first_tick = 0, ticks = 0;
};
Sent send_one(HostilePair& pair, End& from, const End& to) {
  const Sent sent{.psn = view(from).next_psn,
                  .first_tick = transport::timestamp(os::clock_now()).ticks};
  pair.post(from, to, {.size = kSmall});
  from.net->world().pass();
  const auto last = transport::timestamp(os::clock_now()).ticks;
  return {.psn = sent.psn,
          .first_tick = sent.first_tick,
          .ticks = static_cast<std::uint16_t>(last - sent.first_tick + 1)};
}
// Processes all received packets. One pass processes only a few, so it makes many passes.
void hear_all(End& end) {
  for (int i = 0; i < 1000 && end.net->world().pass(); ++i) {
  }
}
// Forges one answer for each time at which the packet may have been sent. Drives `to` often enough
// to process these answers before it retransmits the packet.
void try_ticks(const Sent& sent, End& to, const std::function<void(wire::Timestamp)>& forge) {
  for (std::uint16_t i = 0; i < sent.ticks; ++i) {
    forge({static_cast<std::uint16_t>(sent.first_tick + i)});
    if (i % 16 == 15) hear_all(to);
  }
  hear_all(to);
}

// --- plain: the window -----------------------------------------------------------------------------

// One forged packet limits the QP to one packet per RTT for the rest of its life: a penalty stays
// until the end that set it clears it, and the real peer has set none.
TEST_F(Plain, AForgedPenaltyLeavesAWindowOfOnePacketForGood) {
  EXPECT_GT(view(pair.a).cwnd_bytes, 8 * kWindowOfOne);
  Stranger as_b = Stranger::as(pair.b);
  wire::Sack sack = empty_sack(pair.a);
  sack.cwnd_penalty = 127;
  forge_sack(as_b, pair.a, sack);
  pair.settle();
  EXPECT_LE(view(pair.a).cwnd_bytes, kWindowOfOne);
  for (int i = 0; i < 2; ++i) pair.post(pair.a, pair.b, {});
  ASSERT_TRUE(pair.run([&] { return pair.a.done == 2; }));
  EXPECT_LE(view(pair.a).cwnd_bytes, kWindowOfOne) << "it does not grow again";
}

// The most bytes in flight that `a` reaches while its peer is not driven.
std::int64_t most_in_flight(HostilePair& pair) {
  pair.post(pair.a, pair.b, {});
  std::int64_t most = 0;
  for (int i = 0; i < 50; ++i) {
    pair.a.net->world().pass();
    most = std::max(most, view(pair.a).inflight_bytes);
  }
  return most;
}

// The forged limit holds until the next SACK of the real peer.
TEST_F(Plain, AForgedMprLimitsTheDataInFlight) {
  HostilePair other;
  ASSERT_TRUE(other.open(Security::kPlain));
  EXPECT_GT(most_in_flight(other), 100 << 10);
  Stranger as_b = Stranger::as(pair.b);
  wire::Sack sack = empty_sack(pair.a);
  sack.mpr = 1;  // one unit of 16 KiB
  forge_sack(as_b, pair.a, sack);
  pair.settle();
  EXPECT_LE(most_in_flight(pair), 16 << 10);
}

TEST_F(Plain, AForgedCountOfBytesOpensTheWindow) {
  Stranger as_b = Stranger::as(pair.b);
  EXPECT_LT(most_in_flight(pair), 512 << 10);
  const auto sent = [&] { return view(pair.a).next_psn.since(first_psn(pair.a)); };
  EXPECT_LT(sent(), static_cast<std::int32_t>(kRegion / kPacket));
  wire::Sack sack = empty_sack(pair.a);
  sack.rcvd_bytes_256 = 0x7f'ffff;
  forge_sack(as_b, pair.a, sack);
  for (int i = 0; i < 200; ++i) pair.a.net->world().pass();
  EXPECT_EQ(sent(), static_cast<std::int32_t>(kRegion / kPacket)) << "all of it, unacknowledged";
}

// --- plain: paths ------------------------------------------------------------------------------------

// Forges a mark for each packet, saying that its path must always be skipped, until `wanted` EVs
// are ASSUMED_BAD.
void condemn_paths(HostilePair& pair, Stranger& as_b, std::uint32_t wanted) {
  for (int i = 0; i < 200 && view(pair.a).ev_bad < wanted; ++i) {
    const Sent sent = send_one(pair, pair.a, pair.b);
    try_ticks(sent, pair.a, [&](wire::Timestamp tick) {
      wire::Sack sack = empty_sack(pair.a);
      sack.mark = wire::PathMark::kAlwaysSkip;
      sack.trigger_offset = static_cast<std::int16_t>(sent.psn.since(sack.cack));
      sack.echo = tick;
      forge_sack(as_b, pair.a, sack);
    });
  }
}

// The EVs are used again when their probes are answered, but the attacker can repeat the forged
// packets.
TEST_F(Plain, AForgedMarkTakesPathsOutOfUse) {
  Stranger as_b = Stranger::as(pair.b);
  const std::uint32_t all = view(pair.a).ev_active;
  condemn_paths(pair, as_b, all * 3 / 4);
  EXPECT_GE(view(pair.a).ev_bad, all * 3 / 4);
  EXPECT_LE(view(pair.a).ev_active, all / 4);
  EXPECT_GE(pair.a.counter("transport.evs_condemned"), all * 3 / 4);
}

// The attacker needs the id of a probe, which an attacker on the path reads in the packet. Here the
// test computes the id from the counter of probes: ids count from 1.
TEST_F(Plain, AForgedProbeAnswerRestoresADeadPath) {
  Stranger as_b = Stranger::as(pair.b);
  condemn_paths(pair, as_b, 1);
  ASSERT_EQ(view(pair.a).ev_bad, 1u);
  const Time until = os::clock_now() + Duration::s(2);
  while (view(pair.a).ev_bad > 0 && os::clock_now() < until) {
    const auto asked = static_cast<std::uint16_t>(pair.a.counter("transport.ev_probes"));
    for (std::uint16_t ahead = 0; ahead < 16; ++ahead)
      forge_endpoint_answer(as_b, pair.a, static_cast<std::uint16_t>(asked + ahead));
    pair.a.net->world().pass();
  }
  EXPECT_EQ(view(pair.a).ev_bad, 0u);
  EXPECT_EQ(pair.a.counter("transport.evs_revived"), 1u) << "b has not said a word";
}

// --- plain: retransmissions, refusals -----------------------------------------------------------------

TEST_F(Plain, AForgedNackCausesARetransmission) {
  struct Case {
    wire::NackReason reason;
    const char* counter;
  };
  Stranger as_b = Stranger::as(pair.b);
  for (const Case& c : {Case{wire::NackReason::kNoPacketBuffer, "transport.nacks_resource"},
                        Case{wire::NackReason::kPsnOutOfWindow, "transport.nacks_window"},
                        Case{wire::NackReason::kTrimmedLastHop, "transport.lost_trimmed"}}) {
    const std::uint64_t before = pair.a.counter("transport.retransmits");
    for (int i = 0; i < 50 && pair.a.counter(c.counter) == 0; ++i) {
      const Sent sent = send_one(pair, pair.a, pair.b);
      try_ticks(sent, pair.a, [&](wire::Timestamp tick) {
        forge_nack(as_b, pair.a, wire::Nack{.reason = c.reason, .psn = sent.psn, .echo = tick});
      });
    }
    EXPECT_GT(pair.a.counter(c.counter), 0u);
    const Time until = os::clock_now() + Duration::ms(20);
    while (os::clock_now() < until) pair.a.net->world().pass();
    EXPECT_GT(pair.a.counter("transport.retransmits"), before) << c.counter;
  }
}

// A forged NACK for a trimmed packet looks like a full switch.
TEST_F(Plain, AForgedTrimShrinksTheWindow) {
  Stranger as_b = Stranger::as(pair.b);
  const std::int64_t before = view(pair.a).cwnd_bytes;
  for (int i = 0; i < 200 && view(pair.a).cwnd_bytes > before / 4; ++i) {
    const Sent sent = send_one(pair, pair.a, pair.b);
    try_ticks(sent, pair.a, [&](wire::Timestamp tick) {
      forge_nack(as_b, pair.a,
                 wire::Nack{.reason = wire::NackReason::kTrimmed, .psn = sent.psn, .echo = tick});
    });
    // The window shrinks if the acknowledgement comes more than an RTT and the target delay after the
    // NACK, and before marks count as old: an attacker tries several times.
    const Time resume_at = os::clock_now() + Duration::us(200) * (i % 8);
    while (os::clock_now() < resume_at) {
    }
    // The peer must receive and acknowledge the writes, or the send queue would be full.
    pair.settle();
  }
  EXPECT_LE(view(pair.a).cwnd_bytes, before / 4);
}

TEST_F(Plain, AForgedNakOfAWriteFailsTheQp) {
  for (const wire::AckSyndrome syndrome :
       {wire::AckSyndrome::kNakRemoteAccess, wire::AckSyndrome::kNakInvalidRequest,
        wire::AckSyndrome::kNakRemoteOperational}) {
    HostilePair own;
    ASSERT_TRUE(own.open(Security::kPlain));
    Stranger as_b = Stranger::as(own.b);
    const Sent sent = send_one(own, own.a, own.b);
    forge_refusal(as_b, own.a, sent.psn, syndrome);
    for (int i = 0; i < 100 && own.a.failed == 0; ++i) {
      own.a.net->world().pass();
      own.a.collect();
    }
    EXPECT_EQ(own.a.failed, 1u);
    EXPECT_EQ(view(own.a).state, transport::QpState::kError);
  }
}

// While an attacker forges answers of a dead peer, the QP does not notice that the peer is gone,
// for up to the 17 s of the retry limit.
TEST_F(Plain, ForgedAnswersHideThatThePeerIsGone) {
  Stranger as_b = Stranger::as(pair.b);
  pair.b.net = nullptr;
  pair.post(pair.a, pair.b, {});
  // Without forged packets the QP would fail in half of this time.
  const Time until = os::clock_now() + Duration::ms(1500);
  while (os::clock_now() < until) {
    pair.a.net->world().step(os::clock_now() + Duration::ms(5));
    forge_sack(as_b, pair.a, empty_sack(pair.a));
  }
  EXPECT_EQ(view(pair.a).state, transport::QpState::kReadyToSend);
  EXPECT_GT(pair.a.counter("transport.refusals"), 0u);
}

// --- plain: forged writes in place of real writes
// -----------------------------------------------------

TEST_F(Plain, AForgedWriteWithoutAKeyReplacesTheRealWrite) {
  Stranger as_a = Stranger::as(pair.a);
  forge_empty_write(as_a, pair.b, first_psn(pair.a));
  pair.settle();
  pair.post(pair.a, pair.b, {.size = kPacket});
  ASSERT_TRUE(pair.run([&] { return pair.a.done + pair.a.failed > 0; }));
  EXPECT_EQ(pair.a.done, 1u) << "a is told that its write is there";
  for (std::uint32_t i = 0; i < kPacket; ++i)
    ASSERT_EQ(pair.b.landing.region()[i], std::byte{0}) << "and it is not";
}

TEST_F(Plain, AForgedImmediateIsDelivered) {
  Stranger as_a = Stranger::as(pair.a);
  ASSERT_TRUE(pair.b.net->endpoint().post_receive(os::clock_now(), pair.b.hello.qpn, 7));
  forge_immediate(as_a, pair.b, first_psn(pair.a), 0xabcd);
  std::array<transport::Completion, 1> came;
  std::size_t count = 0;
  for (const Time until = os::clock_now() + Duration::s(1);
       count == 0 && os::clock_now() < until;) {
    pair.b.net->world().pass();
    count = pair.b.net->endpoint().poll_completions(came);
  }
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(came[0].kind, transport::CompletionKind::kReceiveImmediate);
  EXPECT_EQ(came[0].immediate, 0xabcdu);
}

// --- with a job secret ------------------------------------------------------------------------------

// Sends the next of the attacks above, in turn, with the current PSNs and times.
void send_next(Stranger& from, End& to, const End& peer, std::uint64_t turn) {
  const Psn under_way = view(to).next_psn - 1;
  const Psn theirs(static_cast<std::uint32_t>(peer.hello.first_psn + turn % 2048) & Psn::kMask);
  const auto tick = transport::timestamp(os::clock_now());
  wire::Sack sack = empty_sack(to);
  sack.trigger_offset = static_cast<std::int16_t>(under_way.since(sack.cack));
  sack.echo = tick;
  wire::Nack nack{.psn = under_way, .echo = tick};
  switch (turn % 11) {
    case 0:
      sack.cwnd_penalty = 127;
      return forge_sack(from, to, sack);
    case 1:
      sack.mpr = 1;
      return forge_sack(from, to, sack);
    case 2:
      sack.rcvd_bytes_256 = 0x7f'ffff;
      return forge_sack(from, to, sack);
    case 3:
      sack.mark = wire::PathMark::kAlwaysSkip;
      return forge_sack(from, to, sack);
    case 4:
      nack.reason = wire::NackReason::kNoPacketBuffer;
      return forge_nack(from, to, nack);
    case 5:
      nack.reason = wire::NackReason::kPsnOutOfWindow;
      return forge_nack(from, to, nack);
    case 6:
      nack.reason = wire::NackReason::kTrimmed;
      return forge_nack(from, to, nack);
    case 7:
      return forge_refusal(from, to, under_way, wire::AckSyndrome::kNakRemoteAccess);
    case 8:
      return forge_endpoint_answer(from, to, static_cast<std::uint16_t>(1 + turn % 400));
    case 9:
      return forge_empty_write(from, to, theirs);
    default:
      return forge_immediate(from, to, theirs, 0xabcd);
  }
}

TEST_F(Secured, ForgedAnswersChangeNothing) {
  Stranger as_a = Stranger::as(pair.a), as_b = Stranger::as(pair.b);
  as_a.look_sealed();
  as_b.look_sealed();
  for (End* end : {&pair.a, &pair.b})
    ASSERT_TRUE(end->net->endpoint().post_receive(os::clock_now(), end->hello.qpn, 7));
  std::uint64_t sent = 0;  // forged packets sent to each end
  pair.transfer_both_ways([&](std::uint64_t) {
    for (int i = 0; i < 3; ++i, ++sent) {
      send_next(as_b, pair.a, pair.b, sent);
      send_next(as_a, pair.b, pair.a, sent);
    }
  });
  pair.settle();
  EXPECT_GT(sent, 100u);
  for (End* end : {&pair.a, &pair.b}) {
    // Forged packets are dropped as forged, or, before keys exist, like packets of any unknown
    // sender.
    EXPECT_GE(end->counter("net.drop_forged") + end->counter("net.drop_no_session") +
                  end->counter("net.drops_host"),
              sent);
    EXPECT_GT(end->counter("net.drop_forged"), sent / 2);
    EXPECT_GT(view(*end).cwnd_bytes, 8 * kWindowOfOne);
    for (const char* name : {"transport.nacks_resource", "transport.nacks_window",
                             "transport.lost_trimmed", "transport.marks"})
      EXPECT_EQ(end->counter(name), 0u) << name;
    EXPECT_EQ(end->done, 16u) << "its writes, and no receive";
  }
}

TEST(SecuredEnds, ForgedPacketsDoNotHideADeadPeer) {
  HostilePair pair;
  ASSERT_TRUE(pair.open(Security::kSecured));
  pair.post(pair.a, pair.b, {});
  ASSERT_TRUE(pair.run([&] { return pair.a.done == 1; }));
  Stranger as_b = Stranger::as(pair.b);
  as_b.look_sealed();
  pair.b.net = nullptr;
  pair.post(pair.a, pair.b, {});
  const Time until = os::clock_now() + Duration::s(5);
  while (os::clock_now() < until && view(pair.a).state != transport::QpState::kError) {
    pair.a.net->world().step(os::clock_now() + Duration::ms(5));
    forge_sack(as_b, pair.a, empty_sack(pair.a));
  }
  EXPECT_EQ(view(pair.a).state, transport::QpState::kError);
}

}  // namespace
}  // namespace weft::hostile
