// Packets that arrive: which are placed, and how each is answered.
#include "transport/responder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "base/prng.h"
#include "transport/test_responder.h"

namespace weft::transport {
namespace {

using test::Came;
using test::only;
using test::ResponderBench;
using wire::Opcode;

constexpr Psn kFirsts[] = {Psn(0), Psn(1000), Psn(0xff'fff0), Psn(0xff'ffff)};

TEST(Responder, NewPacketInTheWindowIsPlacedAndMovesTheCumulativePsn) {
  for (Psn first : kFirsts) {
    ResponderBench bench(first);
    EXPECT_EQ(bench.responder.cack(), first - 1);
    EXPECT_EQ(bench.write(first), Status::kOk);
    EXPECT_EQ(bench.responder.cack(), first);
    EXPECT_TRUE(bench.memory.holds(bench.address_of(first), ResponderBench::source_of(first), 64));
    EXPECT_EQ(bench.counters.packets_placed.sum(), 1u);
    EXPECT_EQ(bench.counters.bytes_placed.sum(), 64u);
  }
}

TEST(Responder, DuplicateInTheWindowGetsASackAndNoTransportAck) {
  for (Psn first : kFirsts) {
    ResponderBench bench(first);
    bench.write_and_flush(first);
    bench.write_and_flush(first + 5, {.opcode = Opcode::kWriteLast});
    const auto answers = bench.write_and_flush(first + 5, {.opcode = Opcode::kWriteLast});
    EXPECT_EQ(only<wire::Sack>(answers).size(), 1u);
    EXPECT_EQ(only<wire::TransportAck>(answers).size(), 0u);
    EXPECT_EQ(bench.memory.times_placed(), 2 * 64u);
    EXPECT_EQ(bench.counters.duplicates, 1u);
  }
}

TEST(Responder, DuplicateBelowTheCumulativePsnGetsTransportAckAndSack) {
  for (Psn first : kFirsts) {
    ResponderBench bench(first);
    for (std::int32_t i = 0; i < 4; ++i) bench.write_and_flush(first + i);
    for (std::int32_t back : {0, 3, 100, 1 << 22, (1 << 23) - 8}) {
      const auto answers = bench.write_and_flush(first + 3 - back);
      const auto acks = only<wire::TransportAck>(answers);
      ASSERT_EQ(acks.size(), 1u) << back;
      EXPECT_EQ(acks[0].syndrome, wire::AckSyndrome::kAck);
      EXPECT_EQ(only<wire::Sack>(answers).size(), 1u) << back;
    }
    EXPECT_EQ(bench.memory.times_placed(), 4 * 64u);
  }
}

TEST(Responder, WindowEndsAtExactlyItsLastPsn) {
  for (std::uint32_t mpr : {1u, 8u, 24u, 32u, 100u, 255u}) {
    const auto window = static_cast<std::int32_t>(mpr * 128);
    ResponderBench bench(
        Psn(0xff'ff80),
        {.window = mpr * 128, .sack_bytes = 1u << 30, .nack_interval = Duration::us(10)});
    const Psn expected = Psn(0xff'ff80);
    // The last PSN of the window is placed at an address of its own; nothing next to it is written.
    const std::uint64_t va = bench.memory.options().at;
    EXPECT_EQ(bench.write(expected + (window - 1), {.va = va}), Status::kOk);
    EXPECT_EQ(bench.counters.packets_placed.sum(), 1u) << mpr;
    EXPECT_EQ(bench.write(expected + window, {.va = va}), Status::kOk);
    EXPECT_EQ(bench.counters.packets_placed.sum(), 1u) << mpr;
    EXPECT_EQ(bench.counters.out_of_window, 1u) << mpr;
    const auto nacks = only<wire::Nack>(bench.queue_due_answers());
    ASSERT_EQ(nacks.size(), 1u);
    EXPECT_EQ(nacks[0].reason, wire::NackReason::kPsnOutOfWindow);
    EXPECT_EQ(nacks[0].psn, expected + window);
  }
}

TEST(Responder, OutOfWindowNacksAreLimitedToOnePerInterval) {
  ResponderBench bench(Psn(0), {.window = 128, .nack_interval = Duration::us(10)});
  const auto at = [](std::int64_t us) { return Time::from_start(Duration::us(us)); };
  std::size_t nacks = 0;
  for (std::int64_t us = 0; us < 100; ++us) {
    bench.write(Psn(500), {.now = at(us)});
    nacks += only<wire::Nack>(bench.queue_due_answers()).size();
  }
  EXPECT_EQ(nacks, 10u);
  EXPECT_EQ(bench.counters.out_of_window, 100u);
}

// Appendix C 3: in whatever order packets arrive, every byte is placed once, and the cumulative PSN
// reaches the end.
TEST(Responder, EveryByteIsPlacedOnceWhateverTheOrderOfArrival) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    const std::uint32_t mpr = 1 + prng.below(8);
    const std::uint32_t count = 1 + prng.below(mpr * 128);
    const Psn first(0xff'ffff - prng.below(2 * count));
    ResponderBench bench(first, {.window = mpr * 128});
    std::vector<std::int32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[prng.below(i)]);
    for (std::int32_t i : order) {
      ASSERT_EQ(bench.write(first + i, {.entropy = prng.below(8)}), Status::kOk);
      if (prng.below(4) == 0) bench.queue_due_answers();
      // Some packets arrive twice.
      if (prng.below(8) == 0) {
        ASSERT_EQ(bench.write(first + i), Status::kOk);
      }
    }
    EXPECT_EQ(bench.responder.cack(), first + static_cast<std::int32_t>(count - 1));
    for (std::int32_t i : order) {
      ASSERT_TRUE(bench.memory.holds(bench.address_of(first + i),
                                     ResponderBench::source_of(first + i), 64));
    }
    EXPECT_EQ(bench.memory.times_placed(), 64u * count);
  }
}

// Many windows one after the other, across both wraps of the ring: no PSN of an old window is taken
// for one of the new window.
TEST(Responder, EveryWindowSizeWorksAcrossAllWraps) {
  for (std::uint32_t mpr = 1; mpr <= 255; mpr += mpr < 16 ? 1 : 17) {
    const auto window = static_cast<std::int32_t>(mpr * 128);
    const Psn first = Psn(0) - 3 * window / 2;
    ResponderBench bench(first, {.window = mpr * 128});
    const std::uint64_t va = bench.memory.options().at;
    // The first PSN of each window arrives last.
    for (Psn edge = first; edge.since(first) < 3 * window; edge = edge + window) {
      for (std::int32_t i = window - 1; i >= 0; --i) {
        ASSERT_EQ(bench.write(edge + i, {.size = 0, .va = va}), Status::kOk);
        if (i > 0) {
          ASSERT_EQ(bench.responder.cack(), edge - 1);
        }
      }
      ASSERT_EQ(bench.responder.cack(), edge + (window - 1)) << mpr;
      bench.queue_due_answers();
    }
    EXPECT_EQ(bench.counters.duplicates, 0u) << mpr;
    EXPECT_EQ(bench.counters.packets_placed.sum(), static_cast<std::uint64_t>(3 * window));
  }
}

TEST(Responder, TrimmedPacketGetsANackWithItsReasonAndIsNotPlaced) {
  ResponderBench bench(Psn(10));
  auto nacks = only<wire::Nack>(bench.write_and_flush(
      Psn(12), {.rtx = true, .trimmed = true, .entropy = 0xabc, .sent = 4711}));
  ASSERT_EQ(nacks.size(), 1u);
  EXPECT_EQ(nacks[0].reason, wire::NackReason::kTrimmed);
  EXPECT_EQ(nacks[0].psn, Psn(12));
  EXPECT_EQ(nacks[0].entropy, 0xabcu);
  EXPECT_EQ(nacks[0].echo.ticks, 4711);
  nacks = only<wire::Nack>(bench.write_and_flush(Psn(13), {.trimmed_last_hop = true}));
  ASSERT_EQ(nacks.size(), 1u);
  EXPECT_EQ(nacks[0].reason, wire::NackReason::kTrimmedLastHop);
  EXPECT_EQ(bench.memory.times_placed(), 0u);
  EXPECT_EQ(bench.counters.trimmed, 2u);
}

TEST(Responder, TrimmedCopyOfAReceivedPacketGetsASack) {
  ResponderBench bench(Psn(10));
  bench.write_and_flush(Psn(12));
  for (Psn psn : {Psn(12), Psn(9)}) {
    const auto answers = bench.write_and_flush(psn, {.trimmed = true});
    EXPECT_EQ(only<wire::Nack>(answers).size(), 0u);
    EXPECT_EQ(only<wire::Sack>(answers).size(), 1u);
  }
}

TEST(Responder, TrimmedPacketIsNotAnsweredWithoutTrimNack) {
  ResponderBench bench(Psn(10), {.trim_nack = false});
  EXPECT_TRUE(bench.write_and_flush(Psn(10), {.trimmed = true}).empty());
}

TEST(Responder, BadKeyOrBoundsIsRefused) {
  const test::TestMemory::Options region;
  const Came bad[] = {
      {.rkey = 0x78},
      {.va = region.at - 1},
      {.va = region.at + region.size - 63},
      {.va = 0xffff'ffff'ffff'ffe0},  // the address range wraps
  };
  for (const Came& came : bad) {
    ResponderBench bench(Psn(10));
    bench.write_and_flush(Psn(10));
    EXPECT_EQ(bench.write(Psn(11), came), Status::kLocalAccess);
    const auto answers = bench.queue_due_answers();
    const auto naks = only<wire::TransportAck>(answers);
    ASSERT_EQ(naks.size(), 1u);
    EXPECT_EQ(naks[0].syndrome, wire::AckSyndrome::kNakRemoteAccess);
    EXPECT_EQ(bench.memory.times_placed(), 64u);
  }
}

TEST(Responder, WriteOfZeroBytesNeedsNoKey) {
  ResponderBench bench(Psn(10));
  EXPECT_EQ(
      bench.write(Psn(10), {.opcode = Opcode::kWriteOnly, .size = 0, .rkey = 1, .message_size = 0}),
      Status::kOk);
  EXPECT_EQ(only<wire::TransportAck>(bench.queue_due_answers()).size(), 1u);
}

TEST(Responder, PacketLargerThanItsMessageOrTheMtuIsInvalid) {
  for (const Came& came :
       {Came{.size = 64, .message_size = 63}, Came{.size = 4097, .message_size = 1 << 20}}) {
    ResponderBench bench(Psn(10));
    EXPECT_EQ(bench.write(Psn(10), came), Status::kLocalAccess);
    const auto naks = only<wire::TransportAck>(bench.queue_due_answers());
    ASSERT_EQ(naks.size(), 1u);
    EXPECT_EQ(naks[0].syndrome, wire::AckSyndrome::kNakInvalidRequest);
    EXPECT_EQ(bench.memory.times_placed(), 0u);
  }
}

TEST(Responder, NakIsRepeatedAndNoTransportAckFollowsIt) {
  ResponderBench bench(Psn(10));
  bench.write_and_flush(Psn(10));
  bench.write(Psn(11), {.opcode = Opcode::kWriteOnly, .rkey = 1});
  const auto first = bench.queue_due_answers();
  ASSERT_EQ(only<wire::TransportAck>(first).size(), 1u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(bench.responder.repeat_nak(bench.control));
    const auto again = test::take_all(bench.control);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].packet.bth.psn, Psn(11));
    EXPECT_EQ(only<wire::TransportAck>(again), only<wire::TransportAck>(first));
  }
}

TEST(Responder, NothingIsRepeatedBeforeANak) {
  ResponderBench bench(Psn(10));
  EXPECT_FALSE(bench.responder.repeat_nak(bench.control));
  EXPECT_TRUE(bench.control.empty());
}

TEST(Responder, TransportAckComesWhenTheCumulativePsnPassesAMessageEnd) {
  ResponderBench bench(Psn(0xff'fffe));
  const Psn first(0xff'fffe);
  // Messages of two packets, of one, and of two of which the first is missing.
  EXPECT_TRUE(
      only<wire::TransportAck>(bench.write_and_flush(first, {.opcode = Opcode::kWriteFirst}))
          .empty());
  auto acks = bench.write_and_flush(first + 1, {.opcode = Opcode::kWriteLast});
  ASSERT_EQ(only<wire::TransportAck>(acks).size(), 1u);
  EXPECT_EQ(only<wire::TransportAck>(acks)[0].msn, 1u);
  EXPECT_EQ(acks.back().packet.bth.psn, first + 1);
  EXPECT_EQ(acks.back().packet.bth.dest_qpn, ResponderBench::kPeerQpn);
  EXPECT_TRUE(
      only<wire::TransportAck>(bench.write_and_flush(first + 4, {.opcode = Opcode::kWriteLast}))
          .empty());
  EXPECT_TRUE(
      only<wire::TransportAck>(bench.write_and_flush(first + 3, {.opcode = Opcode::kWriteFirst}))
          .empty());
  acks = bench.write_and_flush(first + 2, {.opcode = Opcode::kWriteOnly});
  ASSERT_EQ(only<wire::TransportAck>(acks).size(), 1u);
  EXPECT_EQ(only<wire::TransportAck>(acks)[0].msn, 3u);
  EXPECT_EQ(bench.responder.cack(), first + 4);
}

}  // namespace
}  // namespace weft::transport
