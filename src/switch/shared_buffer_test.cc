#include "switch/shared_buffer.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace weft::switching {
namespace {

Time ns(std::int64_t n) { return Time::from_start(Duration::ns(n)); }

TEST(SharedBuffer, LimitIsTheConfiguredShareOfTheFreeBytes) {
  SharedBuffer half(1000, 50), twice(1000, 200);
  EXPECT_EQ(half.limit(ns(0)), 500u);
  EXPECT_EQ(twice.limit(ns(0)), 2000u);
  half.take(400, ns(10));
  EXPECT_EQ(half.limit(ns(0)), 300u);
  EXPECT_EQ(half.free_bytes(), 600u);
}

TEST(SharedBuffer, BytesOfAPacketAreFreeOnceItHasLeft) {
  SharedBuffer buffer(1000, 100);
  buffer.take(300, ns(20));
  buffer.take(500, ns(10));
  EXPECT_TRUE(buffer.has_room(200));
  EXPECT_FALSE(buffer.has_room(201));
  EXPECT_EQ(buffer.limit(ns(9)), 200u);
  EXPECT_EQ(buffer.limit(ns(10)), 700u) << "its last byte has left at that instant";
  EXPECT_EQ(buffer.limit(ns(19)), 700u);
  EXPECT_EQ(buffer.limit(ns(20)), 1000u);
}

// At any time the free bytes are the size of the buffer less the packets that have not left.
TEST(SharedBuffer, FreeBytesAreTheBufferLessAllQueuedPackets) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    SharedBuffer buffer(100'000, 100);
    std::vector<std::pair<Time, std::uint32_t>> inside;
    for (int i = 0; i < 2'000; ++i) {
      const Time now = ns(i * 10);
      std::uint64_t used = 0;
      for (const auto& [leaves, size] : inside) used += leaves > now ? size : 0;
      ASSERT_EQ(buffer.limit(now), 100'000 - used) << "seed " << seed << ", step " << i;
      const std::uint32_t size = 64 + prng.below(9000);
      if (!buffer.has_room(size)) continue;
      const Time leaves = now + Duration::ns(1 + prng.below(300));
      buffer.take(size, leaves);
      inside.emplace_back(leaves, size);
    }
  }
}

}  // namespace
}  // namespace weft::switching
