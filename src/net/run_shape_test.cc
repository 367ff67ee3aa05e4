#include "net/run_shape.h"

#include <gtest/gtest.h>

namespace weft::net {
namespace {

TEST(RunShape, ShapeOfArrivalsIsDecidedAnewAfter256Runs) {
  RunShape shape;
  EXPECT_FALSE(shape.note({.count = RunShape::kRunsJudged - 1, .packets = 255}));
  EXPECT_FALSE(shape.packets_arrive_singly());
  EXPECT_TRUE(shape.note({.count = 1, .packets = 1}));
  EXPECT_TRUE(shape.packets_arrive_singly());
  EXPECT_FALSE(shape.note({.count = RunShape::kRunsJudged, .packets = 300}));  // no change
  EXPECT_TRUE(shape.note({.count = RunShape::kRunsJudged, .packets = 2 * RunShape::kRunsJudged}));
  EXPECT_FALSE(shape.packets_arrive_singly());
}

}  // namespace
}  // namespace weft::net
