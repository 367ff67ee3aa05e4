#include "config/units.h"

#include <gtest/gtest.h>

namespace weft::config {
namespace {

TEST(Units, SizesAreExact) {
  EXPECT_EQ(*size_from("4096"), 4096u);
  EXPECT_EQ(*size_from("16MiB"), 16u << 20);
  EXPECT_EQ(*size_from("2MB"), 2'000'000u);
  EXPECT_EQ(*size_from("1.5KiB"), 1536u);
  EXPECT_EQ(*size_from("0.1kB"), 100u);
  EXPECT_EQ(*size_from("3 GiB"), 3ull << 30);
}

TEST(Units, DurationsAreExactToThePicosecond) {
  EXPECT_EQ(*duration_from("5us"), Duration::us(5));
  EXPECT_EQ(*duration_from("1.5ms"), Duration::us(1500));
  EXPECT_EQ(*duration_from("0.001ns"), Duration::ps(1));
  EXPECT_EQ(*duration_from("2s"), Duration::s(2));
}

TEST(Units, RatesAndSharesAreExact) {
  EXPECT_EQ(rate_from("100Gbps")->bits_per_second(), 100'000'000'000u);
  EXPECT_EQ(rate_from("12.5Gbps")->bits_per_second(), 12'500'000'000u);
  EXPECT_EQ(*ppm_from("1%"), 10'000u);
  EXPECT_EQ(*ppm_from("0.1%"), 1'000u);
  EXPECT_EQ(*ppm_from("100%"), 1'000'000u);
}

TEST(Units, MistakesNameTheKnownUnits) {
  EXPECT_EQ(
      size_from("16Mib").error(),
      "\"16Mib\" has the unknown unit \"Mib\"; expected a size as \"16MiB\" (units B, kB, MB, "
      "GB, KiB, MiB, GiB) or a whole number of bytes");
  EXPECT_EQ(duration_from("5").error(),
            "\"5\" has no unit; expected a duration as \"5us\" (units ps, ns, us, ms, s)");
  EXPECT_EQ(duration_from("soon").error(),
            "\"soon\" is not a number; expected a duration as \"5us\" (units ps, ns, us, ms, s)");
  EXPECT_EQ(
      rate_from("100Gb/s").error(),
      "\"100Gb/s\" has the unknown unit \"Gb/s\"; expected a rate as \"100Gbps\" (units Mbps, "
      "Gbps, Tbps)");
  EXPECT_EQ(ppm_from("-1%").error().substr(0, 26), "\"-1%\" is negative; expecte");
  EXPECT_EQ(ppm_from("-x").error().substr(0, 22), "\"-x\" is not a number; ");
  EXPECT_EQ(ppm_from("101%").error(), "\"101%\" is more than the whole; expected at most 100%");
}

TEST(Units, EmptyNegativeAndInexactValuesAreRefused) {
  EXPECT_FALSE(size_from(""));
  EXPECT_FALSE(size_from("."));
  EXPECT_FALSE(size_from("1."));
  EXPECT_FALSE(size_from("-1"));
  EXPECT_FALSE(size_from("0.5"));  // half a byte
  EXPECT_FALSE(size_from("99999999999999999999999999"));
  EXPECT_FALSE(duration_from("0.0001ps"));
  EXPECT_FALSE(duration_from("100000000s"));
  EXPECT_FALSE(rate_from("0Gbps"));
  EXPECT_FALSE(ppm_from("0.00001%"));
}

}  // namespace
}  // namespace weft::config
