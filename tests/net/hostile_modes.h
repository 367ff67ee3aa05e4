// Test fixtures with a HostilePair in plain and in secured mode, and the invariants that must hold
// after any attack.
#pragma once

#include <gtest/gtest.h>

#include "hostile_pair.h"

namespace weft::hostile {

class Plain : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(pair.open(Security::kPlain)); }
  void TearDown() override { EXPECT_TRUE(pair.all_canaries_intact()); }
  Psn first_psn(const End& end) { return Psn(end.hello.first_psn); }
  HostilePair pair;
};

class Secured : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(pair.open(Security::kSecured)); }
  void TearDown() override {
    EXPECT_TRUE(pair.all_canaries_intact());
    for (End* end : {&pair.a, &pair.b}) {
      if (end->net == nullptr) continue;
      EXPECT_EQ(end->net->endpoint().qp_state(end->hello.qpn), transport::QpState::kReadyToSend);
    }
  }
  HostilePair pair;
};

}  // namespace weft::hostile
