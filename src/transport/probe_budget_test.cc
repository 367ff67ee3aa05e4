#include "transport/probe_budget.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

int taken(ProbeBudget& budget, Time now, int asked) {
  int out = 0;
  for (int i = 0; i < asked; ++i) out += budget.take(now) ? 1 : 0;
  return out;
}

TEST(ProbeBudget, BudgetGivesABurstAndThenItsRate) {
  ProbeBudget budget(10);
  const Time start = Time::from_start(Duration::s(3));
  EXPECT_EQ(taken(budget, start, 1000), 80);
  EXPECT_EQ(taken(budget, start + Duration::us(50), 1000), 0);
  EXPECT_EQ(taken(budget, start + Duration::us(150), 1000), 1);  // the remainder is not lost
  EXPECT_EQ(taken(budget, start + Duration::ms(2), 1000), 19);
  EXPECT_EQ(taken(budget, start + Duration::s(9), 1000), 80);
}

TEST(ProbeBudget, BudgetOfRateZeroHasNoBound) {
  ProbeBudget budget(0);
  EXPECT_EQ(taken(budget, Time(), 100'000), 100'000);
}

}  // namespace
}  // namespace weft::transport
