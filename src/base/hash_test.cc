#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace weft {
namespace {

// Fixed values: the hash of a run is the same with every compiler and on every machine.
TEST(TraceHash, KnownInputsGiveTheGoldenHashes) {
  TraceHash numbers;
  numbers.fold(1);
  numbers.fold(2);
  EXPECT_EQ(numbers.value(), 0xbafc02ce6055c6f2u);
  std::array<std::byte, 11> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
  TraceHash of_bytes;
  of_bytes.fold(ConstBytes(bytes));
  EXPECT_EQ(of_bytes.value(), 0xf21ad7ef150628ffu);
}

TEST(TraceHash, OrderAndLengthChangeTheHash) {
  std::set<std::uint64_t> seen;
  TraceHash ab, ba;
  ab.fold(1);
  ab.fold(2);
  ba.fold(2);
  ba.fold(1);
  seen.insert(ab.value());
  seen.insert(ba.value());
  // Zeros of different lengths differ.
  const std::array<std::byte, 32> zeros{};
  for (std::size_t size = 0; size <= zeros.size(); ++size) {
    TraceHash hash;
    hash.fold(ConstBytes(zeros).first(size));
    seen.insert(hash.value());
  }
  EXPECT_EQ(seen.size(), 2 + 33u);
}

TEST(TraceHash, EveryBitOfTheInputChangesTheHash) {
  std::array<std::byte, 24> bytes{};
  std::set<std::uint64_t> seen;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    TraceHash hash;
    hash.fold(ConstBytes(bytes));
    seen.insert(hash.value());
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  EXPECT_EQ(seen.size(), 8 * bytes.size());
}

}  // namespace
}  // namespace weft
