// HostMemory: the access that a key gives, and when a looked-up place becomes invalid.
#include "net/host_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::net {
namespace {

TEST(HostMemoryTest, APlaceHoldsOnlyItsRegionAndIsValidUntilTheEpochChanges) {
  HostMemory memory(4, 1);
  std::array<std::byte, 100> bytes;
  const auto key = memory.add({.memory = bytes, .domain = 7, .named_at = 1000});
  ASSERT_TRUE(key);
  const std::uint64_t epoch = memory.epoch();
  HostMemory::Place place;
  EXPECT_FALSE(memory.locate(*key + 1, 7, place));
  EXPECT_FALSE(memory.locate(*key, 8, place));
  ASSERT_TRUE(memory.locate(*key, 7, place));
  EXPECT_EQ(place.key, *key);
  EXPECT_EQ(place.at, reinterpret_cast<std::uintptr_t>(bytes.data()));
  EXPECT_TRUE(place.holds(1000, 100));
  EXPECT_TRUE(place.holds(1099, 1));
  EXPECT_TRUE(place.holds(1100, 0));
  EXPECT_FALSE(place.holds(1099, 2));
  EXPECT_FALSE(place.holds(1101, 0));
  EXPECT_FALSE(place.holds(999, 1));
  EXPECT_FALSE(place.holds(~std::uint64_t{0}, 1));
  EXPECT_EQ(memory.epoch(), epoch);
  ASSERT_TRUE(memory.remove(*key));
  EXPECT_NE(memory.epoch(), epoch);
}

// region(), which serves packets of the peer, obeys the same rules as locate().
TEST(HostMemoryTest, RegionChecksTheSameBoundsAsPlace) {
  HostMemory memory(4, 1);
  std::array<std::byte, 64> bytes;
  const auto key = memory.add({.memory = bytes, .domain = 7, .named_at = 1000});
  ASSERT_TRUE(key);
  HostMemory::Place place;
  ASSERT_TRUE(memory.locate(*key, 7, place));
  for (std::uint64_t from = 990; from < 1080; ++from) {
    for (std::uint32_t size = 1; size < 70; ++size) {
      world::Region region;
      const bool found = memory.region(
          {.key = *key, .at = from, .size = size, .access = world::Access::kLocal, .domain = 7},
          region);
      ASSERT_EQ(found, place.holds(from, size)) << from << " " << size;
      if (found) {
        ASSERT_EQ(region.at, from + (place.at - place.named_at));
      }
    }
  }
}

}  // namespace
}  // namespace weft::net
