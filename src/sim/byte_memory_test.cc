#include "sim/byte_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::sim {
namespace {

constexpr std::uint32_t kSize = 100;

world::RegionQuery query(const ByteMemory::Range& range, std::uint64_t offset, std::uint32_t size) {
  return {.key = range.key, .at = range.at + offset, .size = size};
}

TEST(ByteMemory, PlacesBytesOfOneHostAtAnother) {
  ByteMemory memory(ByteMemory::Kind::kBytes, 2);
  std::array<std::byte, kSize> source{};
  source[7] = std::byte{42};
  const auto from = memory.add(0, source).value();
  const auto to = memory.allocate(1, kSize).value();
  world::Region region;
  ASSERT_TRUE(memory.of(1).region(query(to, 10, 20), region));
  memory.of(1).place(region, {.at = from.at + 5, .size = 20});
  EXPECT_EQ(to.bytes[12], std::byte{42});
  EXPECT_EQ(to.bytes[11], std::byte{0});
}

TEST(ByteMemory, RegionChecksOwnerKeyAndBounds) {
  ByteMemory memory(ByteMemory::Kind::kBytes, 2);
  const auto range = memory.allocate(1, kSize).value();
  world::Region region;
  EXPECT_TRUE(memory.of(1).region(query(range, 0, kSize), region));
  EXPECT_TRUE(memory.of(1).region(query(range, kSize, 0), region));
  EXPECT_FALSE(memory.of(1).region(query(range, 1, kSize), region));
  EXPECT_FALSE(memory.of(1).region(query(range, ~std::uint64_t{0}, 1), region));
  EXPECT_FALSE(memory.of(0).region(query(range, 0, 1), region)) << "of another host";
  EXPECT_FALSE(memory.of(1).region({.key = 0, .at = range.at, .size = 1}, region));
  EXPECT_FALSE(memory.of(1).region({.key = 9, .at = range.at, .size = 1}, region));
  memory.remove(range.key);
  EXPECT_FALSE(memory.of(1).region(query(range, 0, 1), region)) << "removed";
}

TEST(ByteMemory, BytesThatAreGoneLeaveTheDestinationUnchanged) {
  ByteMemory memory(ByteMemory::Kind::kBytes, 2);
  const auto from = memory.allocate(0, kSize).value();
  const auto to = memory.allocate(1, kSize).value();
  to.bytes[0] = std::byte{7};
  world::Region region;
  ASSERT_TRUE(memory.of(1).region(query(to, 0, kSize), region));
  memory.remove(from.key);
  memory.of(1).place(region, {.at = from.at, .size = kSize});
  EXPECT_EQ(to.bytes[0], std::byte{7});
  memory.remove(to.key);
  memory.of(1).place(region, {.at = from.at, .size = kSize});  // both are gone
}

TEST(ByteMemory, SharedBytesOutliveTheirRange) {
  ByteMemory memory(ByteMemory::Kind::kBytes, 2);
  const auto range = memory.allocate(0, kSize).value();
  range.bytes[3] = std::byte{9};
  const auto shared = memory.share(range.key, kSize);
  ASSERT_NE(shared, nullptr);
  memory.remove(range.key);
  EXPECT_EQ(shared.get()[3], std::byte{9});
  EXPECT_EQ(memory.share(range.key, kSize), nullptr);
  EXPECT_EQ(memory.share(77, kSize), nullptr);
}

TEST(ByteMemory, AddressesDoNotDependOnTheHeap) {
  ByteMemory with(ByteMemory::Kind::kBytes, 1), without(ByteMemory::Kind::kBoundsOnly, 1);
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{5000}, std::uint64_t{0}}) {
    const auto a = with.allocate(0, size).value(), b = without.allocate(0, size).value();
    EXPECT_EQ(a.at, b.at);
    EXPECT_EQ(a.key, b.key);
    EXPECT_NE(a.bytes, nullptr);
    EXPECT_EQ(b.bytes, nullptr);
  }
  EXPECT_FALSE(without.allocate(0, 1ull << 40));
}

}  // namespace
}  // namespace weft::sim
