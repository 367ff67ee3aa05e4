// How writes are cut into packets, and when they are done.
#include "transport/requestor.h"

#include <gtest/gtest.h>

#include "transport/test_requestor.h"

namespace weft::transport {
namespace {

using test::RequestorBench;
using wire::Opcode;
using Out = RequestorBench::Out;

TEST(Requestor, EverySizeIsCutIntoPackets) {
  for (bool immediate : {false, true}) {
    for (std::uint32_t size : {0u, 1u, 1023u, 1024u, 1025u, 2048u, 3000u, 20'000u}) {
      SCOPED_TRACE(testing::Message() << size << (immediate ? " with immediate" : ""));
      RequestorBench bench;
      bench.post(size, immediate);
      const auto packets = bench.poll_all();
      ASSERT_EQ(packets.size(), size == 0 ? 1 : (size - 1) / 1024 + 1);
      std::uint32_t offset = 0;
      for (std::size_t i = 0; i < packets.size(); ++i) {
        const bool first = i == 0, last = i + 1 == packets.size();
        const Out& out = packets[i];
        const Opcode only = immediate ? Opcode::kWriteOnlyImm : Opcode::kWriteOnly;
        const Opcode end = immediate ? Opcode::kWriteLastImm : Opcode::kWriteLast;
        EXPECT_EQ(out.packet.bth.opcode, first && last ? only
                                         : first       ? Opcode::kWriteFirst
                                         : last        ? end
                                                       : Opcode::kWriteMiddle);
        EXPECT_EQ(out.psn(), Psn(0xff'fff0) + static_cast<std::int32_t>(i));
        EXPECT_EQ(out.packet.bth.dest_qpn, RequestorBench::kPeerQpn);
        EXPECT_FALSE(out.packet.bth.rtx);
        EXPECT_EQ(out.outgoing.payload.at, 0x1000'0000 + offset);
        EXPECT_EQ(out.write().va, 0x2000'0000u + offset);
        EXPECT_EQ(out.write().rkey, 0x77u);
        EXPECT_EQ(out.write().message_size, size);
        EXPECT_EQ(out.write().immediate, last && immediate ? 42u : 0u);
        EXPECT_EQ(out.write().sent, timestamp(bench.now));
        EXPECT_EQ((out.outgoing.payload.size + out.packet.bth.pad) % 4, 0u);
        EXPECT_EQ(out.outgoing.dscp, world::Dscp::kTrimmable);
        offset += out.outgoing.payload.size;
      }
      EXPECT_EQ(offset, size);
      EXPECT_EQ(bench.counters.packets.sum(), packets.size());
      EXPECT_EQ(bench.counters.bytes.sum(), size);
    }
  }
}

TEST(Requestor, MessagesAndImmediatesAreNumberedSeparately) {
  RequestorBench bench;
  for (bool immediate : {false, true, true, false, true}) bench.post(10, immediate);
  const auto packets = bench.poll_all();
  ASSERT_EQ(packets.size(), 5u);
  for (std::uint16_t i = 0; i < 5; ++i) EXPECT_EQ(packets[i].write().msn, i);
  EXPECT_EQ(packets[1].write().rqmsn, 0);
  EXPECT_EQ(packets[2].write().rqmsn, 1);
  EXPECT_EQ(packets[4].write().rqmsn, 2);
}

TEST(Requestor, PacketsMayNotBeTrimmedWithoutTrimNack) {
  auto options = RequestorBench::defaults();
  options.config.trim_nack = false;
  RequestorBench bench(options);
  bench.post(10);
  EXPECT_EQ(bench.poll()->outgoing.dscp, world::Dscp::kNoTrim);
}

TEST(Requestor, LastPacketOfThePostedWritesRequestsASack) {
  RequestorBench bench;
  bench.post(4 * 1024);
  bench.post(1024);
  const auto packets = bench.poll_all();
  ASSERT_EQ(packets.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(packets[i].packet.bth.ack_request, i == 4) << i;
}

TEST(Requestor, SackIsRequestedAboutFourTimesAWindow) {
  RequestorBench bench;
  bench.post(1 << 20);
  const auto packets = bench.poll_all();
  EXPECT_EQ(bench.polled, Requestor::Polled::kWindowClosed);
  std::size_t asked = 0, run = 0, run_max = 0;
  for (const Out& out : packets) {
    asked += out.packet.bth.ack_request;
    run = out.packet.bth.ack_request ? 0 : run + 1;
    run_max = std::max(run_max, run);
  }
  EXPECT_GE(asked, 3u);
  EXPECT_LE(asked, 5u);
  EXPECT_LE(run_max, packets.size() / 3);
}

TEST(Requestor, CongestionWindowIsRespectedAndOnePacketIsAlwaysAllowed) {
  auto options = RequestorBench::defaults();
  options.config.nscc.cwnd_bytes_initial = 10'000;
  RequestorBench bench(options);
  bench.post(1 << 20);
  const auto packets = bench.poll_all();
  EXPECT_EQ(packets.size(), 10'000u / RequestorBench::nominal(packets[0]));
  EXPECT_LE(bench.inflight(), 10'000);

  options.config.nscc.cwnd_bytes_initial = 100;
  RequestorBench narrow(options);
  narrow.post(1 << 20);
  EXPECT_EQ(narrow.poll_all().size(), 1u);
}

TEST(Requestor, PeersWindowIsRespectedExactly) {
  auto options = RequestorBench::defaults();
  options.config.nscc.enabled = false;
  options.config.nscc.cwnd_bytes_max = 1u << 30;
  for (std::uint32_t mpr : {1u, 3u, 24u, 255u}) {
    options.config.mpr = mpr;
    RequestorBench bench(options);
    bench.post(64 << 20);
    auto packets = bench.poll_all();
    EXPECT_EQ(packets.size(), mpr * 128) << mpr;
    EXPECT_EQ(bench.polled, Requestor::Polled::kWindowClosed);
    // As many packets go as the window moved, and no more.
    packets.resize(5);
    EXPECT_TRUE(bench.acknowledge(packets));
    EXPECT_EQ(bench.poll_all().size(), 5u) << mpr;
  }
}

TEST(Requestor, DynamicMprNeverMovesTheWindowsEndBackNorBeyondTheRing) {
  auto options = RequestorBench::defaults();
  options.config.nscc.enabled = false;
  options.config.nscc.cwnd_bytes_max = 1u << 30;
  options.config.mpr = 8;
  options.config.dynamic_mpr = true;
  RequestorBench bench(options);
  bench.post(64 << 20);
  auto flying = bench.poll_all();
  ASSERT_EQ(flying.size(), 1024u);
  const auto acknowledge = [&](std::size_t count, std::uint8_t mpr) {
    for (std::size_t i = 0; i < count; ++i) bench.arrive(flying[i]);
    wire::Sack sack = bench.sack(RequestorBench::trigger(flying[count - 1]));
    sack.mpr = mpr;
    EXPECT_TRUE(bench.take_sack(sack));
    flying.erase(flying.begin(), flying.begin() + static_cast<std::ptrdiff_t>(count));
    for (const Out& out : bench.poll_all()) flying.push_back(out);
    return flying.size();
  };
  EXPECT_EQ(acknowledge(256, 4), 768u);  // the peer grants 1,024; from here on the window is 512
  EXPECT_EQ(acknowledge(256, 4), 512u);
  EXPECT_EQ(acknowledge(256, 4), 512u);
  EXPECT_EQ(acknowledge(256, 0), 512u);     // 0: no change
  EXPECT_EQ(acknowledge(256, 8), 1024u);    // the window grows again
  EXPECT_EQ(acknowledge(256, 255), 1024u);  // but not beyond the ring
}

TEST(Requestor, MprOfThePeerIsIgnoredUnlessDynamic) {
  auto options = RequestorBench::defaults();
  options.config.nscc.enabled = false;
  options.config.nscc.cwnd_bytes_max = 1u << 30;
  options.config.mpr = 8;
  RequestorBench bench(options);
  bench.post(64 << 20);
  auto packets = bench.poll_all();
  packets.resize(256);
  for (const Out& out : packets) bench.arrive(out);
  wire::Sack sack = bench.sack(RequestorBench::trigger(packets.back()));
  sack.mpr = 1;
  EXPECT_TRUE(bench.take_sack(sack));
  EXPECT_EQ(bench.poll_all().size(), 256u);
}

TEST(Requestor, ImmediatesInFlightAreLimited) {
  auto options = RequestorBench::defaults();
  options.config.wimm_max = 3;
  RequestorBench bench(options);
  for (int i = 0; i < 5; ++i) bench.post(10, true);
  auto packets = bench.poll_all();
  EXPECT_EQ(packets.size(), 3u);
  EXPECT_EQ(bench.polled, Requestor::Polled::kWindowClosed);
  // The SACK alone does not count: the immediate is delivered when the Transport ACK covers it.
  bench.pass(Duration::us(10));
  EXPECT_TRUE(bench.acknowledge(packets));
  EXPECT_EQ(bench.poll_all().size(), 0u);
  bench.transport_ack(packets[1].psn());
  EXPECT_EQ(bench.poll_all().size(), 2u);
}

TEST(Requestor, WriteIsDoneWhenASackAndATransportAckCoverIt) {
  for (bool sack_first : {true, false}) {
    RequestorBench bench;
    bench.post(2048);
    const auto packets = bench.poll_all();
    bench.pass(Duration::us(10));
    if (sack_first) {
      bench.acknowledge(packets);
    } else {
      bench.transport_ack(packets.back().psn());
    }
    EXPECT_TRUE(bench.completions().empty());
    if (sack_first) {
      bench.transport_ack(packets.back().psn());
    } else {
      bench.acknowledge(packets);
    }
    const auto done = bench.completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].id, 1u);
    EXPECT_EQ(done[0].qpn, RequestorBench::kLocalQpn);
    EXPECT_EQ(done[0].status, Status::kOk);
    EXPECT_EQ(done[0].kind, CompletionKind::kWrite);
    EXPECT_EQ(bench.inflight(), 0);
    EXPECT_EQ(bench.requestor.deadline(), kNever);
    EXPECT_EQ(bench.pool.in_use(), 0u);
    EXPECT_EQ(bench.counters.unbalanced, 0u);
  }
}

TEST(Requestor, WritesCompleteInPostOrderAndUnsignalledOnesSilently) {
  RequestorBench bench;
  for (int i = 0; i < 6; ++i) bench.post(100, false, i % 3 != 0);
  const auto packets = bench.poll_all();
  ASSERT_EQ(packets.size(), 6u);
  bench.pass(Duration::us(10));
  // The last packet arrives first: nothing is done yet.
  bench.acknowledge(packets[5]);
  bench.transport_ack(packets[0].psn());
  EXPECT_TRUE(bench.completions().empty());
  bench.acknowledge(packets);
  bench.transport_ack(packets[4].psn());
  auto done = bench.completions();
  ASSERT_EQ(done.size(), 3u);  // the signalled writes 2, 3 and 5
  EXPECT_EQ(done[0].id, 2u);
  EXPECT_EQ(done[1].id, 3u);
  EXPECT_EQ(done[2].id, 5u);
  EXPECT_EQ(bench.requestor.take_unsignalled_done(), 2u);
  EXPECT_EQ(bench.requestor.take_unsignalled_done(), 0u);
  bench.transport_ack(packets[5].psn());
  done = bench.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].id, 6u);
}

TEST(Requestor, FailureIsReportedForTheOldestWriteAndTheRestIsFlushed) {
  RequestorBench bench;
  for (int i = 0; i < 4; ++i) bench.post(100, false, false);
  const auto packets = bench.poll_all();
  bench.pass(Duration::us(10));
  bench.acknowledge(packets[0]);
  bench.transport_ack(packets[0].psn());
  bench.requestor.fail(Status::kRemoteAccess);
  const auto done = bench.completions();
  ASSERT_EQ(done.size(), 3u);  // errors complete all writes, signalled or not
  EXPECT_EQ(done[0].id, 2u);
  EXPECT_EQ(done[0].status, Status::kRemoteAccess);
  EXPECT_EQ(done[1].status, Status::kFlushed);
  EXPECT_EQ(done[2].status, Status::kFlushed);
  EXPECT_EQ(bench.pool.in_use(), 0u);
  EXPECT_EQ(bench.requestor.deadline(), kNever);
  EXPECT_FALSE(bench.requestor.has_work());
}

TEST(Requestor, SendingWaitsForPsnRecordsAndContinuesWhenSomeAreFree) {
  auto options = RequestorBench::defaults();
  options.pool_blocks = 1;
  options.first = Psn(0);
  RequestorBench bench(options);
  bench.post(200 * 1024);
  auto packets = bench.poll_all();
  EXPECT_EQ(packets.size(), 64u);
  EXPECT_EQ(bench.polled, Requestor::Polled::kNoPort);
  bench.pass(Duration::us(10));
  bench.acknowledge(packets);
  EXPECT_EQ(bench.poll_all().size(), 64u);
}

TEST(Requestor, BurstStaysOnOneEv) {
  auto options = RequestorBench::defaults();
  options.burst = 4;
  RequestorBench bench(options);
  bench.post(32 * 1024);
  const auto packets = bench.poll_all();
  ASSERT_EQ(packets.size(), 32u);
  for (std::size_t i = 0; i < packets.size(); i += 4) {
    for (std::size_t j = 1; j < 4; ++j)
      EXPECT_EQ(packets[i + j].outgoing.ev, packets[i].outgoing.ev);
    if (i > 0) {
      EXPECT_NE(packets[i].outgoing.ev.port, packets[i - 1].outgoing.ev.port);
    }
  }
}

TEST(Requestor, BurstHasMorePacketsIfTheyAreSmall) {
  auto options = RequestorBench::defaults();
  options.burst = 4;
  for (const std::uint32_t size : {0u, 8u, 64u, 65u, 127u, 256u, 512u, 700u, 1000u, 1024u}) {
    RequestorBench bench(options);
    std::size_t on_first = 0;
    std::optional<fabric::Ev> first;
    for (bool same = true; same && on_first < 1000;) {
      bench.post(size);
      const auto packets = bench.poll_all();
      ASSERT_EQ(packets.size(), 1u);
      if (!first) first = packets[0].outgoing.ev;
      same = packets[0].outgoing.ev == *first;
      on_first += same;
      bench.acknowledge(packets);
      bench.transport_ack(packets[0].psn());
      bench.completions();
      bench.pass(Duration::us(10));
    }
    // At most four full packets, and the rest of one.
    const std::uint32_t part = std::max((size + 63) / 64, 1u);
    EXPECT_EQ(on_first, (64 + part - 1) / part) << size;
    EXPECT_LT(on_first * size, 5 * 1024u) << size;
  }
}

// Where the peer's receive budget is less than four bursts, a SACK must come in time, or both ends
// wait for ever.
TEST(Requestor, SackIsRequestedBeforeAWindowOfFewBurstsIsFull) {
  auto options = RequestorBench::defaults();
  options.burst = 15;
  options.mtu = 4096;
  options.config.peer = PeerKind::kSoftware;
  options.config.nscc.cwnd_bytes_initial = options.config.nscc.cwnd_bytes_max = 2u << 20;
  options.budget_unit_bytes = 8192;
  options.send_queue_max = 1024;
  for (const std::uint32_t size : {8u, 300u, 2000u, 2500u, 3000u, 3900u, 4096u}) {
    for (std::uint8_t units = 2; units <= 40; ++units) {
      RequestorBench bench(options);
      for (std::uint32_t i = 0; i < options.send_queue_max; ++i) bench.post(size);
      const auto first = bench.poll();
      ASSERT_TRUE(first);
      bench.arrive(*first);
      wire::Sack sack = bench.sack(RequestorBench::trigger(*first));
      sack.mpr = units;
      bench.pass(Duration::us(10));
      ASSERT_TRUE(bench.take_sack(sack));
      std::size_t sent = 0;
      bool asked = false;
      while (const auto out = bench.poll()) {
        asked |= out->packet.bth.ack_request;
        ++sent;
      }
      if (bench.polled != Requestor::Polled::kWindowClosed) continue;  // all may go
      EXPECT_GT(sent, 0u);
      EXPECT_TRUE(asked) << size << " bytes, " << int{units} << " units, " << sent << " sent";
    }
  }
}

TEST(Requestor, OnlyUsablePortsCarryPackets) {
  RequestorBench bench;
  bench.post(20 * 1024);
  for (const Out& out : bench.poll_all(0b10)) EXPECT_EQ(out.outgoing.ev.port, 1);
  RequestorBench none;
  none.post(1024);
  EXPECT_FALSE(none.poll(0));
  EXPECT_EQ(none.polled, Requestor::Polled::kNoPort);
}

}  // namespace
}  // namespace weft::transport
