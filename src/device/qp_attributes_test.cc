// Which state transition of a QP accepts which attributes.
#include "device/qp_attributes.h"

#include <gtest/gtest.h>

namespace weft::device {
namespace {

constexpr QpLimits kLimits;

QpAttributes in(ibv_qp_state state) {
  QpAttributes out;
  out.state = state;
  return out;
}

Result<QpAttributes> go(const QpAttributes& from, ibv_qp_state to) {
  ibv_qp_attr verbs{};
  verbs.qp_state = to;
  return changed(from, {.verbs = &verbs, .verbs_mask = IBV_QP_STATE}, kLimits);
}

TEST(QpAttributesTest, OnlyTheTransitionsOfVerbsAreAllowed) {
  const ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                 IBV_QPS_ERR};
  for (const ibv_qp_state from : states) {
    EXPECT_TRUE(go(in(from), IBV_QPS_ERR));
    EXPECT_TRUE(go(in(from), IBV_QPS_RESET));
    EXPECT_FALSE(go(in(from), IBV_QPS_SQD));
    EXPECT_EQ(bool(go(in(from), IBV_QPS_INIT)), from == IBV_QPS_RESET || from == IBV_QPS_INIT);
    EXPECT_EQ(bool(go(in(from), IBV_QPS_RTS)), from == IBV_QPS_RTR || from == IBV_QPS_RTS);
  }
  QpAttributes known = in(IBV_QPS_INIT);
  EXPECT_FALSE(go(known, IBV_QPS_RTR));
  known.has_address = known.has_peer_qpn = true;
  EXPECT_TRUE(go(known, IBV_QPS_RTR));
}

TEST(QpAttributesTest, ResetRestoresTheDefaults) {
  QpAttributes told = in(IBV_QPS_RTS);
  told.mpr = 5;
  told.has_address = true;
  const auto fresh = go(told, IBV_QPS_RESET);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->mpr, QpAttributes{}.mpr);
  EXPECT_FALSE(fresh->has_address);
}

// Programs set these attributes, although they mean nothing for an MRC QP.
TEST(QpAttributesTest, UnsupportedVerbsAttributesAreIgnored) {
  ibv_qp_attr verbs{};
  verbs.qp_state = IBV_QPS_RTS;
  verbs.timeout = 7;
  verbs.retry_cnt = 14;
  verbs.sq_psn = 0x1ff'ffff;
  const auto out = changed(
      in(IBV_QPS_RTR),
      {.verbs = &verbs, .verbs_mask = IBV_QP_STATE | IBV_QP_SQ_PSN | kIgnoredVerbs}, kLimits);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->timeout, 10);
  EXPECT_EQ(out->send_psn, 0xff'ffffu);
}

TEST(QpAttributesTest, EachMrcAttributeHasALastTransitionThatTakesIt) {
  struct Row {
    int mask;
    bool init, rtr, rts;
  };
  const Row rows[] = {{MRC_QP_HINT, true, false, false},
                      {MRC_QP_EV_PROFILE_ID, true, false, false},
                      {MRC_QP_CC_PROFILE_ID, true, false, false},
                      {MRC_QP_MPR_DEST, true, true, false},
                      {MRC_QP_MAX_WIMM_DEST, true, true, false},
                      {MRC_QP_CAP, true, true, false},
                      {MRC_QP_MPR, true, true, true},
                      {MRC_QP_MAX_WIMM, true, true, true},
                      {MRC_QP_TIMEOUT, true, true, true},
                      {MRC_QP_RETRY_CNT, true, true, true},
                      {MRC_QP_VENDOR_CFG, true, true, true},
                      {1 << 10, false, false, false}};
  mrc_qp_attr mrc{};
  mrc.mpr = {.mpr = 1, .mpr_dest = 1};
  mrc.wimm = {.max_wimm = 1, .max_wimm_dest = 1};
  for (const Row& row : rows) {
    const auto taken = [&](ibv_qp_state from, ibv_qp_state to) {
      QpAttributes now = in(from);
      now.has_address = now.has_peer_qpn = true;
      ibv_qp_attr verbs{};
      verbs.qp_state = to;
      return bool(changed(
          now, {.verbs = &verbs, .verbs_mask = IBV_QP_STATE, .mrc = &mrc, .mrc_mask = row.mask},
          kLimits));
    };
    EXPECT_EQ(taken(IBV_QPS_RESET, IBV_QPS_INIT), row.init) << row.mask;
    EXPECT_EQ(taken(IBV_QPS_INIT, IBV_QPS_RTR), row.rtr) << row.mask;
    EXPECT_EQ(taken(IBV_QPS_RTR, IBV_QPS_RTS), row.rts) << row.mask;
    EXPECT_FALSE(taken(IBV_QPS_RTS, IBV_QPS_ERR)) << row.mask;
  }
}

TEST(QpAttributesTest, MtusConvertBetweenVerbsEnumAndBytes) {
  EXPECT_EQ(bytes_of(IBV_MTU_256), 256u);
  EXPECT_EQ(bytes_of(IBV_MTU_4096), 4096u);
  EXPECT_EQ(bytes_of(static_cast<ibv_mtu>(0)), 0u);
  EXPECT_EQ(bytes_of(static_cast<ibv_mtu>(6)), 0u);
  for (const std::uint32_t bytes : {256u, 512u, 1024u, 2048u, 4096u})
    EXPECT_EQ(bytes_of(mtu_of(bytes)), bytes);
}

}  // namespace
}  // namespace weft::device
