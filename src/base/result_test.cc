#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weft {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{ErrorKind::kInvalid, "odd"};
  return n / 2;
}
Result<std::string> quarter_text(int n) {
  WEFT_TRY(const int h, half(n));
  WEFT_TRY(const int q, half(h));
  return std::to_string(q);
}
Result<void> check_quarter(int n) {
  WEFT_CHECK(quarter_text(n));
  return {};
}

TEST(Result, HoldsEitherAValueOrAnError) {
  EXPECT_TRUE(half(4));
  EXPECT_EQ(*half(4), 2);
  EXPECT_EQ(half(4).value(), 2);
  const auto bad = half(3);
  EXPECT_FALSE(bad);
  EXPECT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(bad.error().message, "odd");
}

TEST(Result, TryReturnsTheFirstErrorToTheCaller) {
  EXPECT_EQ(*quarter_text(12), "3");
  EXPECT_EQ(quarter_text(12)->size(), 1u);
  EXPECT_EQ(quarter_text(6).error().message, "odd");
  EXPECT_EQ(quarter_text(5).error().message, "odd");
  EXPECT_TRUE(check_quarter(8));
  EXPECT_EQ(check_quarter(2).error().message, "odd");
}

TEST(Result, CanHoldAMoveOnlyValue) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> out = std::move(result).value();
  EXPECT_EQ(*out, 5);
}

TEST(Result, ErrorCanBeOfAnyType) {
  const Result<int, char> bad('x');
  EXPECT_EQ(bad.error(), 'x');
  const Result<void, char> also_bad('y');
  EXPECT_FALSE(also_bad.has_value());
  EXPECT_EQ(also_bad.error(), 'y');
}

TEST(ResultDeathTest, ReadingTheAbsentValueOrErrorAsserts) {
  Result<int> good(1);
  EXPECT_DEATH((void)good.error(), "weft bug");
  auto bad = half(3);
  EXPECT_DEATH((void)bad.value(), "weft bug");
  EXPECT_DEATH((void)*bad, "weft bug");
}

}  // namespace
}  // namespace weft
