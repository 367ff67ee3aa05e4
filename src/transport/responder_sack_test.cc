// When a SACK is due, and what it reports: docs/decisions/0002.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/prng.h"
#include "transport/responder.h"
#include "transport/test_responder.h"

namespace weft::transport {
namespace {

using test::Came;
using test::only;
using test::reported;
using test::ResponderBench;
using wire::Opcode;
using Psns = std::vector<std::uint32_t>;

std::size_t sacks(const std::vector<test::Sent>& sent) { return only<wire::Sack>(sent).size(); }
wire::Sack one_sack(const std::vector<test::Sent>& sent) {
  const auto all = only<wire::Sack>(sent);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? wire::Sack{} : all[0];
}

TEST(ResponderSack, FirstPacketIsReportedAtOnceAndLaterOnesAreNot) {
  ResponderBench bench(Psn(10));
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(10))), 1u);
  for (std::int32_t i = 1; i < 50; ++i) EXPECT_EQ(sacks(bench.write_and_flush(Psn(10) + i)), 0u);
}

TEST(ResponderSack, EachReasonForASackCausesOneSack) {
  ResponderBench bench(Psn(10));
  bench.write_and_flush(Psn(10));
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(11), {.ask = true})), 1u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(12))), 0u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(13), {.rtx = true})), 1u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(14))), 0u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(15), {.marked = true})), 1u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(16))), 0u);
}

TEST(ResponderSack, SackThresholdCountsAtLeastAKilobyteAPacket) {
  ResponderBench bench(Psn(0), {.sack_bytes = 16 * 1024});
  bench.write_and_flush(Psn(0));
  std::uint32_t psn = 1;
  // Small packets count 1 KiB each: a SACK after every sixteenth packet.
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i <= 16; ++i)
      EXPECT_EQ(sacks(bench.write_and_flush(Psn(psn++))), i == 16 ? 1u : 0u) << i;
  }
  // Full packets count their size: a SACK after every fourth packet.
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i <= 4; ++i) {
      EXPECT_EQ(sacks(bench.write_and_flush(Psn(psn++), {.nominal_size = 4184})), i == 4 ? 1u : 0u)
          << i;
    }
  }
}

TEST(ResponderSack, HolesAreReportedAfterAnInterval) {
  ResponderBench bench(Psn(0), {.sack_bytes = 1u << 30, .peer = &kSoftwareRules});
  const auto at = [](std::int64_t us) { return Time() + Duration::us(us); };
  bench.write_and_flush(Psn(0), {.now = at(0)});
  // No PSN is missing: only bytes count.
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(1), {.now = at(1)})), 0u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(2), {.now = at(1000)})), 0u);
  // The interval begins with the first packet that no SACK reported.
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(4), {.now = at(1001)})), 1u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(5), {.now = at(1100)})), 0u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(6), {.now = at(1399)})), 0u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(7), {.now = at(1400)})), 2u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(8), {.now = at(1401)})), 0u);
}

// A SACK that repeats the cumulative PSN may be the first to get through: it takes two planes.
TEST(ResponderSack, UnmovedCumulativePsnIsReportedToSoftwareOnTwoPlanes) {
  for (const PeerKind peer : {PeerKind::kSoftware, PeerKind::kNic}) {
    ResponderBench bench(Psn(0), {.sack_bytes = 1u << 30, .peer = &rules_of(peer)});
    using Ports = std::vector<PortChoice>;
    const auto ports = [&](std::uint32_t psn) {
      EXPECT_EQ(bench.write(Psn(psn), {.ask = true}), Status::kOk);
      bench.responder.queue_due_answers(bench.control, bench.counters);
      Ports taken;
      const auto header = bench.control.front().header;
      for (; !bench.control.empty(); bench.control.pop()) {
        taken.push_back(bench.control.front().port);
        const auto size = bench.control.front().header_size;
        EXPECT_TRUE(std::equal(header.begin(), header.begin() + size,
                               bench.control.front().header.begin()));
      }
      return taken;
    };
    const Ports in_turn{PortChoice::in_turn()};
    const Ports both{PortChoice::prefer_heard(), PortChoice::copy()};
    EXPECT_EQ(ports(0), in_turn);
    bench.write_and_flush(Psn(1));
    EXPECT_EQ(ports(3), in_turn);  // the cumulative PSN has moved since
    EXPECT_EQ(ports(4), peer == PeerKind::kSoftware ? both : in_turn) << "a NIC gets no copies";
    EXPECT_EQ(ports(2), in_turn);  // no PSN is missing any more
  }
}

TEST(ResponderSack, SackReflectsThePacketThatTriggeredIt) {
  ResponderBench bench(Psn(10));
  bench.write_and_flush(Psn(10));
  const auto sent =
      bench.write_and_flush(Psn(13), {.rtx = true, .marked = true, .entropy = 0xbeef, .sent = 777});
  const wire::Sack sack = one_sack(sent);
  EXPECT_EQ(sack.cack, Psn(10));
  EXPECT_EQ(sack.trigger_offset, 3);
  EXPECT_EQ(sack.entropy, 0xbeefu);
  EXPECT_EQ(sack.echo.ticks, 777);
  EXPECT_EQ(sack.mark, wire::PathMark::kSkipOnce);
  EXPECT_EQ(sack.ooo_count, 1);
  EXPECT_EQ(sack.mpr, 32);
  EXPECT_FALSE(sack.answers_probe);
  EXPECT_EQ(reported(sack), Psns{13});
  EXPECT_TRUE(sent[0].packet.bth.rtx);
  EXPECT_EQ(sent[0].packet.bth.psn, Psn(10));
  EXPECT_EQ(sent[0].packet.bth.dest_qpn, ResponderBench::kPeerQpn);
}

TEST(ResponderSack, HolesThatCloseAfterARequestCauseOneSack) {
  ResponderBench bench(Psn(10));
  bench.write_and_flush(Psn(10));
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(12), {.ask = true})), 1u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(14))), 0u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(11))), 0u);
  const wire::Sack sack = one_sack(bench.write_and_flush(Psn(13)));
  EXPECT_EQ(sack.cack, Psn(14));
  EXPECT_EQ(sack.ooo_count, 0);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(15))), 0u);
  // Without a request no SACK is due when holes close.
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(17))), 0u);
  EXPECT_EQ(sacks(bench.write_and_flush(Psn(16))), 0u);
}

TEST(ResponderSack, EachBurstOnOneEvInABatchGetsOneSack) {
  ResponderBench bench(Psn(0));
  bench.write_and_flush(Psn(0));
  for (std::uint32_t i = 1; i <= 12; ++i)
    bench.write(Psn(i), {.marked = i == 6, .entropy = 1 + (i - 1) / 4});
  // The batch has bursts on EVs 1, 2 and 3; only the second was marked.
  auto all = only<wire::Sack>(bench.queue_due_answers());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].entropy, 2u);
  EXPECT_EQ(all[0].mark, wire::PathMark::kSkipOnce);
  EXPECT_EQ(all[0].cack + all[0].trigger_offset, Psn(8));
  for (std::uint32_t i = 13; i <= 24; ++i)
    bench.write(Psn(i), {.ask = true, .entropy = 1 + (i - 1) / 4});
  all = only<wire::Sack>(bench.queue_due_answers());
  ASSERT_EQ(all.size(), 3u);
  for (std::uint32_t run = 0; run < 3; ++run) {
    EXPECT_EQ(all[run].entropy, 4 + run);
    EXPECT_EQ(all[run].cack + all[run].trigger_offset, Psn(16 + 4 * run));
  }
}

TEST(ResponderSack, BitmapEndsAtThePacketThatTriggeredTheSack) {
  ResponderBench bench(Psn(0xff'ff00));
  const Psn first(0xff'ff00);
  bench.write_and_flush(first);
  for (std::int32_t i = 200; i < 300; ++i) bench.write_and_flush(first + i);
  const wire::Sack sack = one_sack(bench.write_and_flush(first + 300, {.ask = true}));
  EXPECT_EQ(sack.bitmap_offset, 300 - 63);
  EXPECT_EQ(sack.bitmap, ~0ull);
  EXPECT_EQ(sack.ooo_count, 101);
}

TEST(ResponderSack, UnreportedPsnsAreInEverySecondSack) {
  ResponderBench bench(Psn(0));
  bench.write_and_flush(Psn(0));
  for (std::uint32_t psn = 100; psn < 400; ++psn) bench.write_and_flush(Psn(psn));
  // SACKs alternate between their trigger and the lowest unreported PSNs, without a gap or a
  // repetition.
  EXPECT_EQ(reported(one_sack(bench.write_and_flush(Psn(400), {.ask = true}))).front(), 337u);
  const Psns low = reported(one_sack(bench.write_and_flush(Psn(401), {.ask = true})));
  EXPECT_EQ(low.front(), 100u);
  EXPECT_EQ(reported(one_sack(bench.write_and_flush(Psn(402), {.ask = true}))).front(), 339u);
  const Psns next = reported(one_sack(bench.write_and_flush(Psn(403), {.ask = true})));
  EXPECT_EQ(next.front(), low.back() + 1);
  EXPECT_EQ(next.size(), 64u);
}

// Every PSN that has arrived is reported after a bounded number of SACKs, whatever the order of
// arrival.
TEST(ResponderSack, EveryPsnIsReportedInTheEnd) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    const Psn first(0xff'ffff - prng.below(2000));
    ResponderBench bench(first, {.window = 2048});
    std::set<std::uint32_t> in, told;
    // PSN `first` itself never arrives: the cumulative PSN stays.
    for (int i = 0; i < 1500; ++i) {
      const Psn psn = first + static_cast<std::int32_t>(1 + prng.below(2047));
      in.insert(psn.value());
      for (const auto& sack :
           only<wire::Sack>(bench.write_and_flush(psn, {.ask = prng.below(8) == 0}))) {
        for (std::uint32_t p : reported(sack)) told.insert(p);
        EXPECT_LE(sack.ooo_count, in.size());
      }
    }
    // At the end only requests on the newest PSN come. Every second SACK reports the next 64 PSNs.
    const Psn last = first + 2047;
    in.insert(last.value());
    for (int i = 0; i < 2 * 2048 / 64 + 2; ++i) {
      for (const auto& sack : only<wire::Sack>(bench.write_and_flush(last, {.ask = true}))) {
        for (std::uint32_t p : reported(sack)) told.insert(p);
        EXPECT_EQ(sack.ooo_count, in.size());
      }
    }
    EXPECT_EQ(told, in);
  }
}

TEST(ResponderSack, BytesReceivedAreRoundedUpAndCountEachPacketOnce) {
  ResponderBench bench(Psn(0));
  EXPECT_EQ(one_sack(bench.write_and_flush(Psn(0), {.nominal_size = 1})).rcvd_bytes_256, 1u);
  EXPECT_EQ(
      one_sack(bench.write_and_flush(Psn(1), {.ask = true, .nominal_size = 255})).rcvd_bytes_256,
      1u);
  EXPECT_EQ(
      one_sack(bench.write_and_flush(Psn(2), {.ask = true, .nominal_size = 1})).rcvd_bytes_256, 2u);
  // Duplicates and trimmed packets do not count.
  EXPECT_EQ(
      one_sack(bench.write_and_flush(Psn(2), {.ask = true, .nominal_size = 4096})).rcvd_bytes_256,
      2u);
  bench.write_and_flush(Psn(3), {.trimmed = true, .nominal_size = 4096});
  EXPECT_EQ(
      one_sack(bench.write_and_flush(Psn(4), {.ask = true, .nominal_size = 255})).rcvd_bytes_256,
      2u);
}

TEST(ResponderSack, BytesReceivedWrapAt24Bits) {
  ResponderBench bench(Psn(0));
  bench.write_and_flush(Psn(0), {.nominal_size = 0xff'ffffu * 256});
  EXPECT_EQ(
      one_sack(bench.write_and_flush(Psn(1), {.ask = true, .nominal_size = 256})).rcvd_bytes_256,
      0u);
  EXPECT_EQ(
      one_sack(bench.write_and_flush(Psn(2), {.ask = true, .nominal_size = 256})).rcvd_bytes_256,
      1u);
}

TEST(ResponderSack, ProbeIsAnsweredFromTheCumulativePsn) {
  ResponderBench bench(Psn(0));
  bench.write_and_flush(Psn(0));
  bench.write_and_flush(Psn(5));
  const auto sent = bench.probe(0x1234, 0xfeed, true);
  const wire::Sack sack = one_sack(sent);
  EXPECT_TRUE(sack.answers_probe);
  EXPECT_EQ(sack.probe_id, 0x1234);
  EXPECT_EQ(sack.entropy, 0xfeedu);
  EXPECT_EQ(sack.mark, wire::PathMark::kSkipOnce);
  EXPECT_EQ(sack.echo.ticks, 77);
  EXPECT_EQ(sack.cack, Psn(0));
  EXPECT_EQ(sack.bitmap_offset, 1);
  EXPECT_EQ(reported(sack), Psns{5});
}

TEST(ResponderSack, ProbeIsAnsweredOnThePlaneOnWhichItCame) {
  ResponderBench bench(Psn(0), {.peer = &kSoftwareRules});
  bench.responder.on_probe({}, {.entropy = 1, .marked = false, .port = 3}, bench.control,
                           bench.counters);
  EXPECT_EQ(bench.control.front().port, PortChoice::prefer(3));
  // Probed a second time: the first answer may be lost.
  bench.control.pop();
  bench.responder.on_probe({}, {.entropy = 1, .marked = false, .port = 3}, bench.control,
                           bench.counters);
  EXPECT_EQ(bench.control.front().port, PortChoice::in_turn());
}

TEST(ResponderSack, AnswersToConsecutiveProbesWalkThroughTheWindow) {
  ResponderBench bench(Psn(0), {.window = 512});
  bench.write_and_flush(Psn(0));
  std::set<std::uint32_t> in;
  for (std::uint32_t psn = 2; psn <= 512; psn += 3) {
    bench.write_and_flush(Psn(psn));
    in.insert(psn);
  }
  std::set<std::uint32_t> told;
  std::vector<std::int16_t> offsets;
  for (std::uint16_t id = 0; id < 16; ++id) {
    const wire::Sack sack = one_sack(bench.probe(id));
    offsets.push_back(sack.bitmap_offset);
    for (std::uint32_t psn : reported(sack)) told.insert(psn);
  }
  EXPECT_EQ((std::vector<std::int16_t>(offsets.begin(), offsets.begin() + 6)),
            (std::vector<std::int16_t>{1, 65, 1, 129, 1, 193}));
  EXPECT_EQ(told, in);
  // The cumulative PSN moves: answers begin there again.
  bench.write_and_flush(Psn(1));
  EXPECT_EQ(one_sack(bench.probe(99)).bitmap_offset, 1);
}

TEST(ResponderSack, FullControlQueueDropsTheSackAndNothingElse) {
  ResponderBench bench(Psn(0));
  while (bench.control.add() != nullptr) {
  }
  EXPECT_EQ(bench.write(Psn(0), {.opcode = Opcode::kWriteOnly}), Status::kOk);
  bench.responder.queue_due_answers(bench.control, bench.counters);
  EXPECT_EQ(bench.counters.sacks, 0u);
  while (!bench.control.empty()) bench.control.pop();
  const auto sent = bench.write_and_flush(Psn(0), {.opcode = Opcode::kWriteOnly});
  EXPECT_EQ(sacks(sent), 1u);
  EXPECT_EQ(only<wire::TransportAck>(sent).size(), 1u);
}

// A retransmission that fills a hole far below is reported by one SACK. The PSNs above it are not
// reported once more.
TEST(ResponderSack, RetransmissionBelowReportedPsnsIsReportedOnce) {
  ResponderBench bench(Psn(0));
  bench.write_and_flush(Psn(0));
  constexpr std::uint32_t kEnd = 1000;
  for (std::uint32_t psn = 1; psn < kEnd; ++psn) {
    if (psn == 1 || psn == 5) continue;
    bench.write_and_flush(Psn(psn), {.ask = psn % 32 == 0});
  }
  std::uint32_t low = 0;
  bool told = false;
  const auto count_low = [&](const std::vector<test::Sent>& sent) {
    for (const wire::Sack& sack : only<wire::Sack>(sent)) {
      const Psn base = sack.cack + sack.bitmap_offset;
      low += base.since(Psn(kEnd - 100)) < 0;
      for (const std::uint32_t psn : reported(sack)) told |= psn == 5;
    }
  };
  for (std::uint32_t psn = kEnd; psn < kEnd + 400; psn += 16) {
    if (psn == kEnd) count_low(bench.write_and_flush(Psn(5), {.rtx = true}));
    for (std::uint32_t i = 0; i < 16; ++i) {
      count_low(bench.write_and_flush(Psn(psn + i), {.ask = i == 15}));
    }
  }
  EXPECT_TRUE(told);
  EXPECT_LE(low, 2u);
}

}  // namespace
}  // namespace weft::transport
