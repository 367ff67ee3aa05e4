#include "net/bulk_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/prng.h"

namespace weft::net {
namespace {

TEST(BulkCopy, BothRoutinesCopyEveryByteAndNoOther) {
  constexpr std::size_t kMost = 3 * kBulkMin, kAround = 64;
  std::vector<std::byte> from(kMost + 1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  alignas(64) static std::byte memory[kMost + 2 * kAround];
  for (const auto routine : {CopyRoutine::kThroughCaches, CopyRoutine::kPastCaches}) {
    for (const std::size_t size : {kBulkMin, kBulkMin + 1, kBulkMin + 63, 2 * kBulkMin, kMost}) {
      for (const std::size_t skew : {0, 1}) {
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(routine) << ", " << size << ", " << skew);
        std::memset(memory, 0xee, sizeof(memory));
        std::byte* const to = memory + kAround + (size % 2 == 0 ? 0 : 7);
        copy_bulk(routine, to, from.data() + skew, size);
        EXPECT_EQ(std::memcmp(to, from.data() + skew, size), 0);
        const auto untouched = [](std::byte b) { return b == std::byte{0xee}; };
        EXPECT_TRUE(std::all_of(memory, to, untouched));
        EXPECT_TRUE(std::all_of(to + size, std::end(memory), untouched));
      }
    }
  }
}

// A flow of copies: `Cost` gives the time per byte, in ps, of each routine. look() is called every
// 256 KiB.
class Flow {
 public:
  struct Cost {
    std::int64_t through = 0, past = 0;
    std::int64_t first = 0;  // extra cost per byte of the first MiB after a change
    std::int64_t of(CopyRoutine routine) const {
      return routine == CopyRoutine::kThroughCaches ? through : past;
    }
  };

  // The bytes copied by each routine.
  struct Used {
    std::uint64_t through = 0, past = 0;
  };
  Used run(std::uint64_t bytes, Cost cost, Duration pause = {}) {
    Used used;
    for (const std::uint64_t end = bytes_ + bytes; bytes_ < end; bytes_ += kStep) {
      const CopyRoutine before = choice_.routine();
      choice_.look(now_, bytes_);
      if (choice_.routine() != before) changed_at_ = bytes_;
      (choice_.routine() == CopyRoutine::kThroughCaches ? used.through : used.past) += kStep;
      std::int64_t ps_per_byte = cost.of(choice_.routine());
      if (bytes_ - changed_at_ < (1u << 20)) ps_per_byte += cost.first;
      now_ += Duration::ps(ps_per_byte * static_cast<std::int64_t>(kStep)) + pause;
    }
    return used;
  }
  void rest(Duration pause) { now_ += pause; }
  // Runs until the routine has changed for good, not only while it is measured: for 8 MiB.
  void run_until_it_changes(Cost cost) {
    const CopyRoutine before = choice_.routine();
    for (std::uint64_t other = 0; other < (8u << 20);) {
      run(kStep, cost);
      other = choice_.routine() == before ? 0 : other + kStep;
    }
  }

 private:
  static constexpr std::uint64_t kStep = 256u << 10;
  CopyChoice choice_{CopyChoice::kWriterStay};
  Time now_;
  std::uint64_t bytes_ = 0, changed_at_ = 0;
};

constexpr std::uint64_t kMiB = 1u << 20;

TEST(CopyChoice, TheFasterRoutineIsFoundAndKept) {
  Flow flow;
  flow.run(64 * kMiB, {.through = 100, .past = 50});
  const Flow::Used later = flow.run(4096 * kMiB, {.through = 100, .past = 50});
  EXPECT_LT(later.through, 4096 * kMiB / 50);  // used only while it is measured
  EXPECT_GT(later.through, 0u);
}

TEST(CopyChoice, TheRoutineChangesWhenTheOtherBecomesFaster) {
  Flow flow;
  for (int turn = 0; turn < 3; ++turn) {
    flow.run(4096 * kMiB, {.through = 50, .past = 100});
    EXPECT_LT(flow.run(1024 * kMiB, {.through = 50, .past = 100}).past, 1024 * kMiB / 50);
    // The other routine is measured after at most 512 MiB, the longest stay.
    flow.run(520 * kMiB, {.through = 100, .past = 50});
    EXPECT_LT(flow.run(1024 * kMiB, {.through = 100, .past = 50}).through, 1024 * kMiB / 25);
  }
}

TEST(CopyChoice, TheFirstBytesAfterAChangeAreNotTimed) {
  Flow flow;
  const Flow::Cost cost{.through = 100, .past = 50, .first = 300};
  flow.run(64 * kMiB, cost);
  EXPECT_LT(flow.run(1024 * kMiB, cost).through, 1024 * kMiB / 25);
}

TEST(CopyChoice, AfterAChangeTheNextTrialComesSoon) {
  Flow flow;
  const Flow::Cost usual{.through = 50, .past = 100};
  flow.run(4096 * kMiB, usual);
  flow.run_until_it_changes({.through = 100, .past = 50});  // not justified by `usual`
  EXPECT_LT(flow.run(128 * kMiB, usual).past, 32 * kMiB);
}

TEST(CopyChoice, TheRoutineStaysWhenTheOtherIsNotFaster) {
  Flow even;
  EXPECT_LT(even.run(4096 * kMiB, {.through = 50, .past = 47}).past, 4096 * kMiB / 32);
  // A flow that mostly waits: its times say nothing about copies.
  Flow slow;
  EXPECT_LT(slow.run(4096 * kMiB, {.through = 50, .past = 40}, Duration::us(100)).past,
            4096 * kMiB / 50);
}

// Messages of 1 MiB with pauses between them do not make the slower routine win.
TEST(CopyChoice, PausesDoNotInfluenceTheChoice) {
  for (const Duration longest : {Duration::us(300), Duration::ms(5)}) {
    std::uint64_t slower = 0, all = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Prng prng(seed);
      Flow flow;
      for (int message = 0; message < 2000; ++message) {
        const auto pause = static_cast<std::uint32_t>(longest.ns());
        slower += flow.run(kMiB, {.through = 50, .past = 100}).past;
        flow.rest(Duration::ns(static_cast<std::int64_t>(prng.below(pause))));
        all += kMiB;
      }
    }
    EXPECT_LT(slower, all / 20) << longest.to_us();
  }
}

// The writer and the reader of one ring, each with its own choice. The slower end sets the pace.
TEST(CopyChoice, AGainOfOneEndIsNotCreditedToTheOther) {
  CopyChoice writer(CopyChoice::kWriterStay), reader(CopyChoice::kReaderStay);
  constexpr std::uint64_t kStep = 256u << 10;
  Time now;
  std::uint64_t reader_past = 0;
  for (std::uint64_t bytes = 0; bytes < 4096 * kMiB; bytes += kStep) {
    writer.look(now, bytes);
    reader.look(now, bytes);
    const std::int64_t in = writer.routine() == CopyRoutine::kPastCaches ? 50 : 100;
    const std::int64_t out = reader.routine() == CopyRoutine::kPastCaches ? 60 : 45;
    if (reader.routine() == CopyRoutine::kPastCaches) reader_past += kStep;
    now += Duration::ps(std::max(in, out) * static_cast<std::int64_t>(kStep));
  }
  EXPECT_EQ(writer.routine(), CopyRoutine::kPastCaches);
  EXPECT_LT(reader_past, 4096 * kMiB / 50);
}

}  // namespace
}  // namespace weft::net
