// Immediates: delivered in post order, each after everything before it has arrived. Their limit,
// and missing receives.
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "base/prng.h"
#include "transport/responder.h"
#include "transport/test_responder.h"

namespace weft::transport {
namespace {

using test::only;
using test::ResponderBench;
using wire::Opcode;

TEST(ResponderImmediate, ImmediateWaitsForEverythingBeforeIt) {
  ResponderBench bench(Psn(10));
  bench.receives.push(501);
  bench.write(Psn(12), {.opcode = Opcode::kWriteLastImm,
                        .solicited = true,
                        .immediate = 0xcafe,
                        .rqmsn = 0,
                        .message_size = 192});
  bench.write(Psn(10), {.opcode = Opcode::kWriteFirst});
  EXPECT_TRUE(bench.completions.empty());
  bench.write(Psn(11));
  ASSERT_EQ(bench.completions.size(), 1u);
  const Completion& done = bench.completions.front();
  EXPECT_EQ(done.id, 501u);
  EXPECT_EQ(done.qpn, ResponderBench::kLocalQpn);
  EXPECT_EQ(done.kind, CompletionKind::kReceiveImmediate);
  EXPECT_EQ(done.status, Status::kOk);
  EXPECT_EQ(done.immediate, 0xcafeu);
  EXPECT_EQ(done.size, 192u);
  EXPECT_TRUE(done.solicited);
  EXPECT_TRUE(bench.receives.empty());
}

TEST(ResponderImmediate, ImmediatesAreDeliveredInPostOrderWhateverTheOrderOfArrival) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    const std::uint32_t count = 1 + prng.below(256);
    const Psn first(0xff'ffff - prng.below(count + 1));
    ResponderBench bench(first, {.window = 256, .wimm_max = 256});
    std::vector<bool> with_immediate(count);
    std::vector<std::uint16_t> rqmsn(count);
    std::uint16_t counted = prng.below(2) == 0 ? 0 : 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      with_immediate[i] = prng.below(2) == 0;
      if (with_immediate[i]) rqmsn[i] = counted++;
    }
    for (std::uint32_t i = 0; i < count; ++i) bench.receives.push(i);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[prng.below(i)]);
    for (std::uint32_t i : order) {
      const Opcode opcode = with_immediate[i] ? Opcode::kWriteOnlyImm : Opcode::kWriteOnly;
      ASSERT_EQ(bench.write(first + static_cast<std::int32_t>(i),
                            {.opcode = opcode, .immediate = i, .rqmsn = rqmsn[i]}),
                Status::kOk);
    }
    std::uint32_t receive = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!with_immediate[i]) continue;
      ASSERT_FALSE(bench.completions.empty());
      ASSERT_EQ(bench.completions.front().immediate, i);
      ASSERT_EQ(bench.completions.front().id, receive++);
      bench.completions.pop();
    }
    EXPECT_TRUE(bench.completions.empty());
  }
}

TEST(ResponderImmediate, AsManyImmediatesWaitAsAgreedAndOneMoreIsInvalid) {
  for (std::uint16_t limit = 1; limit <= 300; ++limit) {
    const Psn first = Psn(0) - limit / 2 - 1;
    ResponderBench bench(first, {.window = 512, .wimm_max = limit});
    for (std::uint32_t i = 0; i <= limit; ++i) bench.receives.push(i);
    // All packets but the first arrive: all immediates wait.
    for (std::int32_t i = limit; i >= 1; --i) {
      ASSERT_EQ(bench.write(first + i, {.opcode = Opcode::kWriteOnlyImm}), Status::kOk) << limit;
    }
    ASSERT_TRUE(bench.completions.empty());
    ASSERT_EQ(bench.write(first + (limit + 1), {.opcode = Opcode::kWriteOnlyImm}),
              Status::kLocalAccess)
        << limit;
    const auto naks = only<wire::TransportAck>(bench.queue_due_answers());
    ASSERT_EQ(naks.size(), 1u);
    ASSERT_EQ(naks[0].syndrome, wire::AckSyndrome::kNakInvalidRequest);
  }
}

// Full windows of immediates, many times, across the wraps of PSNs (2^24) and of the sender's
// 16-bit count.
TEST(ResponderImmediate, EveryLimitWorksAcrossAllWraps) {
  for (std::uint16_t limit = 1; limit <= 300; ++limit) {
    const std::uint32_t total = 1200u - 1200u % limit;
    const Psn first = Psn(0) - static_cast<std::int32_t>(total / 2);
    ResponderBench bench(first, {.window = 512, .wimm_max = limit});
    std::uint32_t delivered = 0;
    for (std::uint32_t from = 0; from < total; from += limit) {
      for (std::uint32_t i = 0; i < limit; ++i) bench.receives.push(from + i);
      for (std::uint32_t i = limit; i-- > 0;) {
        ASSERT_EQ(bench.write(first + static_cast<std::int32_t>(from + i),
                              {.opcode = Opcode::kWriteOnlyImm, .size = 0, .immediate = from + i}),
                  Status::kOk);
      }
      for (; !bench.completions.empty(); bench.completions.pop()) {
        ASSERT_EQ(bench.completions.front().immediate, delivered) << limit;
        ASSERT_EQ(bench.completions.front().id, delivered);
        ++delivered;
      }
      bench.queue_due_answers();
    }
    ASSERT_EQ(delivered, total) << limit;
  }
}

TEST(ResponderImmediate, RqmsnCountsFromZeroOrOneAndNeverSkips) {
  const auto naks_after = [](std::initializer_list<std::uint16_t> numbers) {
    ResponderBench bench(Psn(10));
    for (std::uint64_t id = 0; id < 8; ++id) bench.receives.push(id);
    Psn psn(10);
    for (const std::uint16_t rqmsn : numbers) {
      bench.write(psn, {.opcode = Opcode::kWriteOnlyImm, .rqmsn = rqmsn});
      psn = psn + 1;
    }
    int invalid = 0;
    for (const auto& ack : only<wire::TransportAck>(bench.queue_due_answers()))
      invalid += ack.syndrome == wire::AckSyndrome::kNakInvalidRequest;
    return invalid;
  };
  EXPECT_EQ(naks_after({0, 1, 2}), 0);
  EXPECT_EQ(naks_after({1, 2, 3}), 0);
  EXPECT_EQ(naks_after({2}), 1);
  EXPECT_EQ(naks_after({0xffff}), 1);
  EXPECT_EQ(naks_after({0, 2}), 1);
  EXPECT_EQ(naks_after({0, 1, 1}), 1);
}

TEST(ResponderImmediate, ImmediateWithoutAPostedReceiveIsRefusedAndTheNakRepeated) {
  ResponderBench bench(Psn(10));
  bench.receives.push(1);
  EXPECT_EQ(bench.write(Psn(10), {.opcode = Opcode::kWriteOnlyImm}), Status::kOk);
  EXPECT_EQ(bench.write(Psn(11), {.opcode = Opcode::kWriteOnlyImm}), Status::kLocalAccess);
  EXPECT_EQ(bench.completions.size(), 1u);
  const auto naks = only<wire::TransportAck>(bench.queue_due_answers());
  ASSERT_EQ(naks.size(), 1u);
  EXPECT_EQ(naks[0].syndrome, wire::AckSyndrome::kNakRemoteOperational);
  EXPECT_EQ(naks[0].msn, 1u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.responder.repeat_nak(bench.control));
  EXPECT_EQ(only<wire::TransportAck>(test::take_all(bench.control)).size(), 3u);
}

TEST(ResponderImmediate, ReceivePostedBeforeDeliveryIsInTime) {
  ResponderBench bench(Psn(10));
  EXPECT_EQ(bench.write(Psn(11), {.opcode = Opcode::kWriteOnlyImm}), Status::kOk);
  bench.receives.push(1);
  EXPECT_EQ(bench.write(Psn(10)), Status::kOk);
  EXPECT_EQ(bench.completions.size(), 1u);
}

TEST(ResponderImmediate, DuplicateImmediateIsNotDelivered) {
  ResponderBench bench(Psn(10));
  bench.receives.push(1);
  bench.receives.push(2);
  bench.write(Psn(10), {.opcode = Opcode::kWriteOnlyImm});
  bench.write(Psn(10), {.opcode = Opcode::kWriteOnlyImm});
  bench.write(Psn(12), {.opcode = Opcode::kWriteOnlyImm, .rqmsn = 1});
  bench.write(Psn(12), {.opcode = Opcode::kWriteOnlyImm, .rqmsn = 1});
  EXPECT_EQ(bench.completions.size(), 1u);
  bench.write(Psn(11));
  EXPECT_EQ(bench.completions.size(), 2u);
  EXPECT_TRUE(bench.receives.empty());
}

}  // namespace
}  // namespace weft::transport
