#include "os/cpu_quota.h"

#include <gtest/gtest.h>

namespace weft::os {
namespace {

TEST(CpuQuota, KernelTextIsParsed) {
  EXPECT_DOUBLE_EQ(quota_from("150000 100000\n").value(), 1.5);
  EXPECT_FALSE(quota_from("max 100000\n"));
  EXPECT_FALSE(quota_from("-1\n 100000\n"));  // cgroup version 1: no limit
  EXPECT_FALSE(quota_from(" "));
}

}  // namespace
}  // namespace weft::os
