#include "transport/psn_window.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <set>

#include "base/prng.h"

namespace weft::transport {
namespace {

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

Psn open_and_send(PsnWindow& window, Time now, std::uint16_t ev = 0) {
  PsnRecord* record = window.open();
  EXPECT_NE(record, nullptr);
  const Psn psn = window.next() - 1;
  window.sent(psn, *record, now, ev);
  return psn;
}

TEST(PsnBlockPool, PoolIsBoundedAndCountsItsBlocks) {
  PsnBlockPool pool(3);
  std::set<std::uint32_t> taken;
  for (int i = 0; i < 3; ++i) taken.insert(pool.take());
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_EQ(pool.take(), PsnBlockPool::kNone);
  EXPECT_EQ(pool.in_use(), 3u);
  pool[1].lost = 7;
  pool.give_back(1);
  EXPECT_EQ(pool.in_use(), 2u);
  EXPECT_EQ(pool.take(), 1u);
  EXPECT_EQ(pool[1].lost, 0u);
}

// With a window that is no power of two, a modulo would make records collide at the wrap. For every
// MPR each record keeps its content while the whole window is open, from before the wrap to after
// it.
TEST(PsnWindow, RecordsNeverCollideForAnyMprAcrossTheWrap) {
  for (std::uint32_t mpr = 1; mpr <= 255; ++mpr) {
    const std::uint32_t size = mpr * 128;
    PsnBlockPool pool(size / 64 + 2);
    const Psn first = Psn(0) - static_cast<std::int32_t>(size / 2 + 13);
    PsnWindow window(pool, size, first);
    for (std::uint32_t i = 0; i < size; ++i) {
      PsnRecord* record = window.open();
      ASSERT_NE(record, nullptr) << "mpr " << mpr;
      record->sent_at_ps = i;
    }
    ASSERT_EQ(window.open(), nullptr) << "mpr " << mpr;
    ASSERT_EQ(window.span(), size);
    for (std::uint32_t i = 0; i < size; ++i) {
      ASSERT_EQ(window.record(first + static_cast<std::int32_t>(i)).sent_at_ps, i) << "mpr " << mpr;
    }
    window.clear();
    ASSERT_EQ(pool.in_use(), 0u);
  }
}

TEST(PsnWindow, WindowMovesAcrossTheWrapWithABoundedPool) {
  for (std::uint32_t mpr : {1u, 12u, 24u, 100u, 255u}) {
    const std::uint32_t size = mpr * 128;
    PsnBlockPool pool(size / 64 + 2);
    const Psn first = Psn(0) - static_cast<std::int32_t>(size);
    PsnWindow window(pool, size, first);
    for (std::uint32_t i = 0; i < 3 * size; ++i) {
      if (window.span() == size) {
        const Psn psn = window.cack() + 1;
        ASSERT_TRUE(window.receive(psn, window.record(psn)));
        window.advance(psn);
      }
      open_and_send(window, at(1));
    }
    EXPECT_EQ(window.cack(), first + static_cast<std::int32_t>(2 * size - 1));
    EXPECT_LE(pool.in_use(), size / 64 + 1);
  }
}

TEST(PsnWindow, IdleWindowHoldsNoBlock) {
  for (std::uint32_t first : {0u, 1u, 63u, 64u, 0xff'ffffu, 0xff'ffc0u}) {
    PsnBlockPool pool(64);
    PsnWindow window(pool, 1024, Psn(first));
    EXPECT_TRUE(window.is_idle());
    EXPECT_EQ(pool.in_use(), 0u);
    for (int count : {1, 63, 64, 65, 200, 1024}) {
      for (int i = 0; i < count; ++i) open_and_send(window, at(1));
      EXPECT_GT(pool.in_use(), 0u);
      const Psn last = window.next() - 1;
      for (Psn psn = window.cack() + 1; psn.since(last) <= 0; psn = psn + 1)
        window.receive(psn, window.record(psn));
      window.advance(last);
      EXPECT_TRUE(window.is_idle());
      EXPECT_EQ(pool.in_use(), 0u) << first << " " << count;
    }
  }
}

TEST(PsnWindow, WindowAtThePoolsBoundOpensAgainLater) {
  PsnBlockPool pool(1);
  PsnWindow window(pool, 1024, Psn(0));
  for (int i = 0; i < 64; ++i) open_and_send(window, at(1));
  EXPECT_EQ(window.open(), nullptr);
  EXPECT_EQ(window.next(), Psn(64));
  for (std::uint32_t i = 0; i < 64; ++i) window.receive(Psn(i), window.record(Psn(i)));
  window.advance(Psn(63));
  EXPECT_NE(window.open(), nullptr);
}

TEST(PsnWindow, OldestIsThePsnWhoseNewestCopyWasSentFirst) {
  PsnBlockPool pool(8);
  PsnWindow window(pool, 256, Psn(0xff'fffe));
  for (int i = 0; i < 4; ++i) open_and_send(window, at(i));
  const Psn first(0xff'fffe);
  EXPECT_EQ(window.oldest(), first);
  window.lose(first, window.record(first));
  EXPECT_EQ(window.oldest(), first + 1);
  EXPECT_EQ(window.first_lost(), first);
  window.sent(first, window.record(first), at(9), 5);
  EXPECT_EQ(window.record(first).copies, 2);
  EXPECT_EQ(window.record(first).ev, 5);
  // The send order is 1, 2, 3, 0.
  Psn psn = window.oldest();
  for (std::int32_t i : {1, 2, 3}) {
    EXPECT_EQ(psn, first + i);
    psn = window.after(window.record(psn));
  }
  EXPECT_EQ(psn, first);
}

TEST(PsnWindowDeathTest, BrokenStatesStopTheProgram) {
  PsnBlockPool pool(8);
  PsnWindow window(pool, 256, Psn(0));
  for (int i = 0; i < 3; ++i) open_and_send(window, at(i));
  window.lose(Psn(1), window.record(Psn(1)));
  EXPECT_DEATH(window.lose(Psn(1), window.record(Psn(1))), "assertion failed");
  EXPECT_DEATH(window.sent(Psn(0), window.record(Psn(0)), at(4), 0), "assertion failed");
  EXPECT_DEATH(window.advance(Psn(0)), "assertion failed") << "it is not received";
  EXPECT_DEATH(window.record(Psn(3)), "assertion failed") << "it is not sent";
}

TEST(PsnWindowDeathTest, BrokenListStopsTheProgram) {
  PsnBlockPool pool(8);
  PsnWindow window(pool, 256, Psn(0));
  for (int i = 0; i < 4; ++i) open_and_send(window, at(i));
  window.record(Psn(1)).newer = 3;
  EXPECT_DEATH(window.receive(Psn(1), window.record(Psn(1))), "assertion failed");
}

TEST(PsnWindow, ContainsHoldsForExactlyThePsnsOfTheWindow) {
  PsnBlockPool pool(8);
  PsnWindow window(pool, 256, Psn(0xff'ffff));
  EXPECT_FALSE(window.contains(Psn(0xff'ffff)));
  open_and_send(window, at(1));
  open_and_send(window, at(1));
  EXPECT_FALSE(window.contains(Psn(0xff'fffe)));
  EXPECT_TRUE(window.contains(Psn(0xff'ffff)));
  EXPECT_TRUE(window.contains(Psn(0)));
  EXPECT_FALSE(window.contains(Psn(1)));
  EXPECT_FALSE(window.contains(Psn(0x7f'ffff)));
}

// Compared with a plain model: a map of states and a list in send order.
TEST(PsnWindow, WindowAgreesWithAModelUnderRandomCalls) {
  enum class State { kOutstanding, kLost, kReceived };
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    const std::uint32_t size = 128 * (1 + prng.below(6));
    PsnBlockPool pool(size / 64 + 2);
    const Psn first(0xff'ffff - prng.below(2 * size));
    PsnWindow window(pool, size, first);
    std::int32_t base = 0, next = 0;  // distances from `first`
    std::map<std::int32_t, State> model;
    std::list<std::int32_t> order;
    for (int step = 0; step < 6000; ++step) {
      const std::int32_t pick = next > base ? base + static_cast<std::int32_t>(prng.below(
                                                         static_cast<std::uint32_t>(next - base)))
                                            : -1;
      const Psn psn = first + pick;
      switch (prng.below(6)) {
        case 0:
        case 1:
          if (PsnRecord* record = window.open()) {
            window.sent(first + next, *record, at(step), 0);
            model[next] = State::kOutstanding;
            order.push_back(next++);
          } else {
            ASSERT_EQ(next - base, static_cast<std::int32_t>(size));
          }
          break;
        case 2:
          if (pick < 0 || model[pick] != State::kOutstanding) break;
          window.lose(psn, window.record(psn));
          model[pick] = State::kLost;
          order.remove(pick);
          break;
        case 3:
          if (pick < 0) break;
          EXPECT_EQ(window.receive(psn, window.record(psn)), model[pick] != State::kReceived);
          if (model[pick] == State::kOutstanding) order.remove(pick);
          model[pick] = State::kReceived;
          break;
        case 4: {
          if (window.lost() == 0) break;
          const Psn lost = window.first_lost();
          window.sent(lost, window.record(lost), at(step), 1);
          model[lost.since(first)] = State::kOutstanding;
          order.push_back(lost.since(first));
          break;
        }
        default: {
          std::int32_t edge = base;
          while (edge < next && model[edge] == State::kReceived) ++edge;
          if (edge == base) break;
          window.advance(first + (edge - 1));
          model.erase(model.begin(), model.lower_bound(edge));
          base = edge;
        }
      }
      std::uint32_t lost = 0, received = 0;
      std::int32_t first_lost = -1;
      for (const auto& [i, state] : model) {
        if (state == State::kLost && lost++ == 0) first_lost = i;
        received += state == State::kReceived;
      }
      ASSERT_EQ(window.span(), model.size());
      ASSERT_EQ(window.outstanding(), order.size());
      ASSERT_EQ(window.lost(), lost);
      ASSERT_EQ(window.received_above_cack(), received);
      if (lost > 0) {
        ASSERT_EQ(window.first_lost(), first + first_lost);
      }
      if (!order.empty()) {
        ASSERT_EQ(window.oldest(), first + order.front());
      }
      if (model.empty()) {
        ASSERT_EQ(pool.in_use(), 0u);
      }
    }
  }
}

}  // namespace
}  // namespace weft::transport
