// A peer may send anything: the requestor does not crash, completes nothing out of order or twice,
// and believes no acknowledgement of packets that were never sent.
#include <gtest/gtest.h>

#include "base/prng.h"
#include "transport/requestor.h"
#include "transport/test_requestor.h"

namespace weft::transport {
namespace {

using test::RequestorBench;
using Out = RequestorBench::Out;

TEST(RequestorHostile, CackBeyondWhatWasSentIsRefused) {
  RequestorBench bench;
  bench.post(4 * 1024);
  const auto packets = bench.poll_all();
  for (std::int32_t beyond : {1, 2, 100, 1 << 22}) {
    wire::Sack sack = bench.sack(RequestorBench::trigger(packets[0]));
    sack.cack = packets.back().psn() + beyond;
    EXPECT_FALSE(bench.take_sack(sack)) << beyond;
  }
  EXPECT_EQ(bench.requestor.window().outstanding(), 4u);
  for (std::int32_t beyond : {1, 2, 100, 1 << 22}) {
    EXPECT_EQ(bench.transport_ack(packets.back().psn() + beyond), Status::kOk);
  }
  bench.acknowledge(packets);
  EXPECT_TRUE(bench.completions().empty());
}

TEST(RequestorHostile, BitsOutsideTheWindowAreIgnored) {
  RequestorBench bench;
  bench.post(4 * 1024);
  const auto packets = bench.poll_all();
  wire::Sack sack = bench.sack(RequestorBench::trigger(packets[0]));
  sack.bitmap = ~0ull;
  for (std::int16_t offset :
       {std::int16_t{-64}, std::int16_t{5}, std::int16_t{0x7fff}, std::int16_t{-0x8000}}) {
    sack.bitmap_offset = offset;
    EXPECT_TRUE(bench.take_sack(sack));
    EXPECT_EQ(bench.requestor.window().received_above_cack(), 0u) << offset;
  }
  sack.bitmap_offset = -60;
  EXPECT_TRUE(bench.take_sack(sack));
  EXPECT_EQ(bench.requestor.window().received_above_cack(), 3u);
}

wire::Sack random_sack(Prng& prng, const RequestorBench& bench, Psn near) {
  wire::Sack sack;
  const std::uint64_t bits = prng.next();
  sack.mark = static_cast<wire::PathMark>(prng.below(3));
  sack.answers_probe = prng.below(4) == 0;
  sack.trigger_offset =
      static_cast<std::int16_t>(prng.below(16) == 0 ? prng.below(0x1'0000) : prng.below(200));
  sack.probe_id = static_cast<std::uint16_t>(prng.below(32));
  sack.entropy = prng.below(2) << 24 | prng.below(6);
  sack.cack = prng.below(8) == 0 ? Psn(static_cast<std::uint32_t>(bits))
                                 : near + static_cast<std::int32_t>(prng.below(64)) - 16;
  sack.mpr = static_cast<std::uint8_t>(bits >> 32);
  sack.bitmap_offset =
      static_cast<std::int16_t>(prng.below(8) == 0 ? prng.below(0x1'0000) : prng.below(128));
  sack.bitmap = prng.next() & prng.next();
  sack.echo = prng.below(2) == 0 ? timestamp(bench.now - Duration::us(prng.below(20)))
                                 : wire::Timestamp{static_cast<std::uint16_t>(bits >> 40)};
  sack.ooo_count = static_cast<std::uint16_t>(prng.below(0x8000));
  sack.restore_cwnd = prng.below(4) == 0;
  sack.cwnd_penalty = static_cast<std::uint8_t>(prng.below(4) == 0 ? prng.below(128) : 0);
  sack.rcvd_bytes_256 = prng.below(0x100'0000);
  return sack;
}

TEST(RequestorHostile, InvariantsHoldWhateverAPeerSends) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    auto options = RequestorBench::defaults();
    options.config.dynamic_mpr = prng.below(2) == 0;
    options.config.mpr = 1 + prng.below(4);
    options.burst = 1 + prng.below(4);
    RequestorBench bench(options);
    std::uint64_t posted = 0, last_done = 0;
    bool failed = false;
    for (int step = 0; step < 2000 && !failed; ++step) {
      if (!bench.requestor.is_full() && prng.below(4) == 0) {
        bench.post(prng.below(30'000), prng.below(2) == 0);
        ++posted;
      }
      for (std::uint32_t n = prng.below(16); n > 0; --n)
        bench.poll(static_cast<PortMask>(1 + prng.below(3)));
      bench.pass(Duration::ns(prng.below(20'000)));
      const Psn near = bench.requestor.window().cack();
      Status status = Status::kOk;
      switch (prng.below(6)) {
        case 0:
        case 1:
        case 2:
          bench.take_sack(random_sack(prng, bench, near), prng.below(2) == 0);
          break;
        case 3: {
          auto c = bench.context();
          const auto reason = static_cast<wire::NackReason>(prng.below(0x18));  // none is fatal
          status = bench.requestor.on_nack(
              c, {.reason = reason,
                  .entropy = prng.below(8),
                  .psn = near + static_cast<std::int32_t>(prng.below(80)),
                  .echo = timestamp(bench.now - Duration::us(prng.below(20)))});
          break;
        }
        case 4:
          status = bench.transport_ack(near + static_cast<std::int32_t>(prng.below(100)) - 30);
          break;
        default:
          if (prng.below(8) == 0) bench.port_lost(static_cast<PortIndex>(prng.below(2)));
          if (bench.requestor.deadline() <= bench.now + Duration::us(50))
            status = bench.to_deadline();
      }
      if (status != Status::kOk) {
        bench.requestor.fail(status);
        failed = true;
      }
      for (const Completion& done : bench.completions()) {
        ASSERT_EQ(done.id, last_done + 1);
        last_done = done.id;
        ASSERT_LE(last_done, posted);
      }
      test::take_all(bench.control);
      const PsnWindow& window = bench.requestor.window();
      ASSERT_EQ(window.span(), window.outstanding() + window.lost() + window.received_above_cack());
      ASSERT_GE(bench.requestor.congestion().window(), 1);
    }
    if (!failed) bench.requestor.fail(Status::kFlushed);
    for (const Completion& done : bench.completions()) ASSERT_EQ(done.id, ++last_done);
    EXPECT_EQ(last_done, posted);
    EXPECT_EQ(bench.pool.in_use(), 0u);
  }
}

}  // namespace
}  // namespace weft::transport
