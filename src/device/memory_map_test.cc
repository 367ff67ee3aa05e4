// Which uses of a memory range are allowed, according to the text of /proc/PID/maps.
#include "device/memory_map.h"

#include <gtest/gtest.h>

namespace weft::device {
namespace {

constexpr std::string_view kMaps =
    "1000-3000 rw-p 00000000 00:00 0 [heap]\n"
    "3000-4000 r--p 00000000 08:01 77 /lib/x\n"
    "4000-5000 ---p 00000000 00:00 0\n"
    "6000-7000 rw-s 00000000 00:05 9 /dev/shm/y\n";

TEST(MemoryMapTest, WholeRangeMustAllowTheUse) {
  EXPECT_TRUE(is_usable(kMaps, {.at = 0x1000, .size = 0x2000}, MemoryUse::kWrite));
  EXPECT_TRUE(is_usable(kMaps, {.at = 0x1001, .size = 1}, MemoryUse::kWrite));
  EXPECT_TRUE(is_usable(kMaps, {.at = 0x1000, .size = 0x3000}, MemoryUse::kRead));
  EXPECT_FALSE(is_usable(kMaps, {.at = 0x1000, .size = 0x2001}, MemoryUse::kWrite));
  EXPECT_FALSE(is_usable(kMaps, {.at = 0x1000, .size = 0x3001}, MemoryUse::kRead));
  EXPECT_FALSE(is_usable(kMaps, {.at = 0xfff, .size = 2}, MemoryUse::kRead));
  EXPECT_FALSE(is_usable(kMaps, {.at = 0x5800, .size = 0x1000}, MemoryUse::kRead));
  EXPECT_TRUE(is_usable(kMaps, {.at = 0x6fff, .size = 1}, MemoryUse::kWrite));
  EXPECT_FALSE(is_usable(kMaps, {.at = 0x6fff, .size = 2}, MemoryUse::kWrite));
  EXPECT_FALSE(is_usable("", {.at = 0x1000, .size = 1}, MemoryUse::kRead));
}

}  // namespace
}  // namespace weft::device
