// Compares the queue with a model: a list sorted by (time, order of insertion).
#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"

namespace weft::sim {
namespace {

Time at(std::int64_t ps) { return Time::from_start(Duration::ps(ps)); }

struct Model {
  // Sorted; the first `popped` events were already popped.
  std::vector<Event> events;
  std::size_t popped = 0;

  void push(const Event& event) {
    const auto later = [](const Event& a, const Event& b) { return a.at < b.at; };
    events.insert(std::upper_bound(events.begin() + static_cast<std::ptrdiff_t>(popped),
                                   events.end(), event, later),
                  event);
  }
  const Event* next(std::int64_t limit) const {
    return popped < events.size() && events[popped].at <= limit ? &events[popped] : nullptr;
  }
};

// The delay of the next push: none, within the current bucket, within each wheel, or beyond both.
std::int64_t draw_delay(Prng& prng) {
  switch (prng.below(8)) {
    case 0:
      return 0;
    case 1:
      return prng.below(16);
    case 2:
      return prng.below(1 << 10);
    case 3:
    case 4:
      return prng.below(1 << 22);
    case 5:
      return static_cast<std::int64_t>(prng.next() % (1ull << 34));
    case 6:
      return static_cast<std::int64_t>(prng.next() % (1ull << 38));
    default:
      return static_cast<std::int64_t>(prng.below(64)) << 22;  // on the boundaries of buckets
  }
}

void compare_with_model(std::uint64_t seed, int operations) {
  Prng prng(seed);
  EventQueue queue;
  Model model;
  std::int64_t now = 0;
  std::uint32_t number = 0;
  for (int i = 0; i < operations; ++i) {
    // The queue repeatedly grows to some hundred events and shrinks, sometimes to none.
    const std::uint32_t pushes = prng.below(i / 64 % 2 == 0 ? 4 : 2);
    for (std::uint32_t k = 0; k < pushes; ++k) {
      const Event event{
          .at = now + draw_delay(prng), .what = number++, .arg = static_cast<std::uint32_t>(seed)};
      queue.push(at(event.at), event.what, event.arg);
      model.push(event);
    }
    const std::int64_t limit = now + draw_delay(prng);
    const std::uint32_t pops = 1 + prng.below(3);
    for (std::uint32_t k = 0; k < pops; ++k) {
      const Event* expected = model.next(limit);
      Event got;
      ASSERT_EQ(queue.pop(at(limit), got), expected != nullptr)
          << "seed " << seed << ", operation " << i;
      if (expected == nullptr) break;
      ASSERT_EQ(got.at, expected->at) << "seed " << seed << ", operation " << i;
      ASSERT_EQ(got.what, expected->what) << "seed " << seed << ", operation " << i;
      ASSERT_EQ(got.arg, expected->arg);
      now = got.at;
      ++model.popped;
    }
    // Like a world, move the time to the limit if no event is before it.
    if (model.next(limit) == nullptr) now = std::max(now, limit);
    ASSERT_EQ(queue.pending(), model.events.size() - model.popped);
    ASSERT_EQ(queue.empty(), queue.pending() == 0);
  }
}

TEST(EventQueue, PopsInOrderOfTimeThenInsertion) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    compare_with_model(seed, 1'000);
    if (HasFatalFailure()) return;
  }
}

// Compares a million events with a stable sort.
TEST(EventQueue, AMillionEventsPushedFirstPopInOrder) {
  Prng prng(7);
  EventQueue queue;
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    // Many events share a picosecond.
    events.push_back({.at = static_cast<std::int64_t>(prng.below(1 << 20)) << prng.below(16),
                      .what = i,
                      .arg = 0});
    queue.push(at(events.back().at), i, 0);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  for (const Event& expected : events) {
    Event got;
    ASSERT_TRUE(queue.pop(kNever, got));
    ASSERT_EQ(got.at, expected.at);
    ASSERT_EQ(got.what, expected.what);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, AnEventPushedForTheCurrentTimeComesLast) {
  EventQueue queue;
  Event got;
  for (std::uint32_t i = 0; i < 3; ++i) queue.push(at(500), i, 0);
  ASSERT_TRUE(queue.pop(at(500), got));
  queue.push(at(500), 3, 0);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(queue.pop(at(500), got));
    EXPECT_EQ(got.what, i);
  }
  EXPECT_FALSE(queue.pop(kNever, got));
}

TEST(EventQueue, PopReturnsNoEventBeyondTheLimit) {
  EventQueue queue;
  Event got;
  queue.push(at(1'000'001), 1, 0);
  EXPECT_FALSE(queue.pop(at(1'000'000), got));
  // Earlier than the pending event, but not before the limit of the last pop.
  queue.push(at(1'000'000), 2, 0);
  ASSERT_TRUE(queue.pop(at(1'000'000), got));
  EXPECT_EQ(got.what, 2u);
  EXPECT_FALSE(queue.pop(at(1'000'000), got));
  EXPECT_EQ(queue.pending(), 1u);
}

// A pop with a limit far ahead must not delay events that are pushed after it.
TEST(EventQueue, APopWithAFarLimitDoesNotDelayLaterPushes) {
  EventQueue queue;
  Event got;
  queue.push(Time::from_start(Duration::s(3600)), 9, 0);
  EXPECT_FALSE(queue.pop(Time::from_start(Duration::s(1800)), got));
  queue.push(Time::from_start(Duration::s(1800) + Duration::ps(1)), 1, 0);
  queue.push(Time::from_start(Duration::s(1800)), 0, 0);
  for (const std::uint32_t expected : {0u, 1u, 9u}) {
    ASSERT_TRUE(queue.pop(kNever, got));
    EXPECT_EQ(got.what, expected);
  }
}

TEST(EventQueue, PeekShowsEventsInTheOrderOfPops) {
  EventQueue queue;
  Event got;
  for (std::uint32_t i = 0; i < 100; ++i) queue.push(at(1'000 - i), i, 0);
  ASSERT_TRUE(queue.pop(kNever, got));
  EXPECT_EQ(got.what, 99u);
  for (std::size_t ahead = 0; ahead < 50; ++ahead) {
    const Event* event = queue.peek(ahead);
    ASSERT_NE(event, nullptr) << "all events are in one bucket, so they are sorted";
    EXPECT_EQ(event->what, 98u - ahead);
  }
  EXPECT_EQ(queue.peek(99), nullptr);
}

// Memory of popped events is reused: repeating the same load takes no more memory.
TEST(EventQueue, MemoryOfPoppedEventsIsReused) {
  EventQueue queue;
  Event got;
  std::int64_t now = 0;
  std::uint64_t after_first = 0;
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t i = 0; i < 10'000; ++i) queue.push(at(now + 1 + i * 997), i, 0);
    while (queue.pop(kNever, got)) now = got.at;
    if (round == 0) after_first = queue.bytes();
  }
  EXPECT_LE(queue.bytes(), after_first + after_first / 4);
}

}  // namespace
}  // namespace weft::sim
