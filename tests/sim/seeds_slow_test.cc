// Runs with the fault mixes of three hundred seeds, in parts that can run in parallel. `make soak`
// runs ten thousand seeds.
#include "seeds.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kPiece = 60;

class FaultMixSeeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(FaultMixSeeds, NoMessageIsLostDuplicatedOrStuck) {
  expect_seeds_hold("fault-mix", {.first = GetParam(), .count = kPiece});
}

INSTANTIATE_TEST_SUITE_P(, FaultMixSeeds,
                         ::testing::Range<std::uint64_t>(1, 1 + 5 * kPiece, kPiece),
                         [](const auto& piece) { return "From" + std::to_string(piece.param); });

}  // namespace
}  // namespace weft::testing
