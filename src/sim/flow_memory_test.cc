#include "sim/flow_memory.h"

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

constexpr std::uint64_t kBase = 1ull << 40;

// Range 0 belongs to host 1, range 1 to host 0; messages of 1,000 bytes.
FlowMemory make(MemoryKind kind) {
  return FlowMemory(kind,
                    {{.owner = 1, .base = kBase, .span = 10'000, .message_size = 1'000},
                     {.owner = 0, .base = 2 * kBase, .span = 500, .message_size = 1'000}},
                    2);
}

bool allowed(FlowMemory& memory, fabric::HostIndex host, const world::RegionQuery& query) {
  world::Region out;
  return memory.of(host).region(query, out);
}

TEST(FlowMemory, RegionChecksOwnerKeyAndBounds) {
  for (const MemoryKind kind : {MemoryKind::kNone, MemoryKind::kProvenance, MemoryKind::kBytes}) {
    FlowMemory memory = make(kind);
    EXPECT_TRUE(allowed(memory, 1, {.key = 1, .at = kBase, .size = 10'000}));
    EXPECT_TRUE(allowed(memory, 1, {.key = 1, .at = kBase + 9'999, .size = 1}));
    EXPECT_TRUE(allowed(memory, 1, {.key = 1, .at = kBase + 10'000, .size = 0}));
    EXPECT_FALSE(allowed(memory, 0, {.key = 1, .at = kBase, .size = 1}))
        << "the range belongs to another host";
    EXPECT_FALSE(allowed(memory, 1, {.key = 2, .at = kBase, .size = 1}))
        << "the key belongs to another range";
    EXPECT_FALSE(allowed(memory, 1, {.key = 0, .at = kBase, .size = 1}));
    EXPECT_FALSE(allowed(memory, 1, {.key = 3, .at = kBase, .size = 1}));
    EXPECT_FALSE(allowed(memory, 1, {.key = 1, .at = kBase - 1, .size = 1}));
    EXPECT_FALSE(allowed(memory, 1, {.key = 1, .at = kBase, .size = 10'001}));
    EXPECT_FALSE(allowed(memory, 1, {.key = 1, .at = kBase + 9'999, .size = 2}));
    EXPECT_FALSE(allowed(memory, 1, {.key = 1, .at = ~0ull, .size = 2}))
        << "wraps at the end of the address space";
  }
}

void place(FlowMemory& memory, std::uint64_t to, std::uint64_t from, std::uint32_t size) {
  memory.of(1).place({.at = kBase + to, .size = size}, {.at = kBase + from, .size = size});
}

TEST(FlowMemory, BytesFromTheCorrectAddressCountAsRight) {
  for (const MemoryKind kind : {MemoryKind::kProvenance, MemoryKind::kBytes}) {
    FlowMemory memory = make(kind);
    EXPECT_EQ(memory.correct_bytes(0, 0, 1'000), 0u);
    place(memory, 1'600, 1'600, 400);
    EXPECT_EQ(memory.correct_bytes(0, 1, 1'000), 400u);
    place(memory, 1'000, 1'000, 600);
    EXPECT_EQ(memory.correct_bytes(0, 1, 1'000), 1'000u);
    EXPECT_EQ(memory.correct_bytes(0, 0, 1'000), 0u);
    EXPECT_EQ(memory.correct_bytes(0, 2, 1'000), 0u);
  }
}

TEST(FlowMemory, BytesFromAnotherAddressDoNotCountAsRight) {
  FlowMemory provenance = make(MemoryKind::kProvenance);
  place(provenance, 0, 1, 1'000);
  EXPECT_EQ(provenance.correct_bytes(0, 0, 1'000), 0u);
  FlowMemory bytes = make(MemoryKind::kBytes);
  place(bytes, 0, 1, 1'000);
  EXPECT_LT(bytes.correct_bytes(0, 0, 1'000), 50u) << "one byte in 256 is equal by chance";
}

TEST(FlowMemory, OneWrongByteIsDetected) {
  FlowMemory memory = make(MemoryKind::kBytes);
  place(memory, 0, 0, 1'000);
  ASSERT_EQ(memory.correct_bytes(0, 0, 1'000), 1'000u);
  std::uint64_t from = 501;  // the loop finds a byte that differs from the correct one
  do {
    place(memory, 500, from++, 1);
  } while (memory.correct_bytes(0, 0, 1'000) == 1'000);
  EXPECT_EQ(memory.correct_bytes(0, 0, 1'000), 999u);
}

// A packet that is placed twice was not recognised as a duplicate.
TEST(FlowMemory, ProvenanceCountsBytesThatWerePlacedTwice) {
  FlowMemory memory = make(MemoryKind::kProvenance);
  place(memory, 0, 0, 1'000);
  place(memory, 0, 0, 1'000);
  EXPECT_EQ(memory.correct_bytes(0, 0, 1'000), 2'000u);
}

TEST(FlowMemory, KindNoneStoresNoContent) {
  FlowMemory memory = make(MemoryKind::kNone);
  const std::uint64_t before = memory.bytes();
  for (std::uint64_t i = 0; i < 10; ++i) place(memory, i * 1'000, i * 1'000, 1'000);
  EXPECT_EQ(memory.bytes(), before);
}

}  // namespace
}  // namespace weft::sim
