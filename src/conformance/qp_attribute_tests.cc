// Attributes of a QP: the transitions, limits and defaults of MRC's attributes; verbs attributes
// that mean nothing for MRC.
#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

struct One {
  Host host;
  End end;
  explicit One(Session& session) : host(session), end(host) {}
  mrc_qp_attr query() {
    mrc_qp_attr attr{};
    constexpr int kAll = 0x3ff;
    works("mrc_query_qp", end.library.mrc_query_qp(end.qp, nullptr, 0, &attr, kAll, nullptr));
    return attr;
  }
  void to_rtr() {
    works("mrc_modify_qp to INIT", end.to_init());
    works("mrc_modify_qp to RTR", end.to_rtr(end.address()));
  }
};

// Sets an attribute in RTS, and queries it.
void rts_takes(Session& session, int mask, void (*set)(mrc_qp_attr&),
               void (*check)(const mrc_qp_attr&)) {
  One one(session);
  one.to_rtr();
  mrc_qp_attr attr{};
  set(attr);
  works("mrc_modify_qp to RTS with it", one.end.to_rts(&attr, mask));
  check(one.query());
}

void rts_refuses(Session& session, int mask, void (*set)(mrc_qp_attr&), const char* what) {
  One one(session);
  one.to_rtr();
  mrc_qp_attr attr{};
  set(attr);
  fails_value(std::string("mrc_modify_qp to RTS with ") + what, one.end.to_rts(&attr, mask),
              {EINVAL});
  equal("state afterwards", static_cast<int>(one.end.state()), static_cast<int>(IBV_QPS_RTR));
}

void rtr_takes(Session& session, int mask, void (*set)(mrc_qp_attr&),
               void (*check)(const mrc_qp_attr&)) {
  One one(session);
  works("mrc_modify_qp to INIT", one.end.to_init());
  mrc_qp_attr attr{};
  set(attr);
  works("mrc_modify_qp to RTR with it",
        one.end.to_rtr(one.end.address(), IBV_MTU_1024, &attr, mask));
  check(one.query());
}

void values_above_limits_are_refused(Session& session) {
  One one(session);
  if (one.host.attr.mpr_attr.max_mpr == 255) skip("the device takes every MPR there is");
  one.to_rtr();
  mrc_qp_attr attr{};
  attr.mpr.mpr = static_cast<std::uint8_t>(one.host.attr.mpr_attr.max_mpr + 1);
  fails_value("mrc_modify_qp to RTS with an MPR above max_mpr", one.end.to_rts(&attr, MRC_QP_MPR),
              {EINVAL});
}

void defaults_within_limits(Session& session) {
  One one(session);
  one.to_rtr();
  works("mrc_modify_qp to RTS, MRC mask 0", one.end.to_rts());
  const mrc_qp_attr attr = one.query();
  const auto& device = one.host.attr;
  holds(attr.mpr.mpr >= 1 && attr.mpr.mpr <= device.mpr_attr.max_mpr, "an MPR of 1 to max_mpr",
        text_of_value(attr.mpr.mpr));
  holds(attr.mpr.mpr_dest >= 1 && attr.mpr.mpr_dest <= device.mpr_attr.max_mpr,
        "an MPR_DEST of 1 to max_mpr", text_of_value(attr.mpr.mpr_dest));
  holds(attr.wimm.max_wimm >= 1 && attr.wimm.max_wimm <= device.wimm_attr.max_wimm,
        "a MAX_WIMM of 1 to the device's", text_of_value(attr.wimm.max_wimm));
  holds(attr.timeout <= 24, "a timeout of at most 24", text_of_value(attr.timeout));
  holds(attr.retry.linear_cnt <= 7 && attr.retry.exp_cnt <= 25, "retries of at most 7 and 25",
        fmt::format("{} and {}", attr.retry.linear_cnt, attr.retry.exp_cnt));
}

// OCP's benchmark sets PORT, TIMEOUT, RETRY_CNT, RNR_RETRY and similar attributes; they must be
// accepted.
void verbs_attributes_are_ignored(Session& session) {
  One one(session);
  const Address self = one.end.address();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = kRemoteWrite;
  const Library& library = one.end.library;
  works("INIT with PORT",
        library.mrc_modify_qp(one.end.qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                              nullptr, 0));
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = self.gid;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(session.options().gid_index);
  attr.dest_qp_num = self.qpn;
  attr.min_rnr_timer = 12;
  attr.max_dest_rd_atomic = 1;
  works("RTR with MIN_RNR_TIMER and MAX_DEST_RD_ATOMIC",
        library.mrc_modify_qp(one.end.qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC,
                              nullptr, 0));
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 7;
  attr.retry_cnt = 14;
  attr.rnr_retry = 14;
  attr.max_rd_atomic = 1;
  works("RTS with TIMEOUT, RETRY_CNT, RNR_RETRY and MAX_QP_RD_ATOMIC",
        library.mrc_modify_qp(one.end.qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
                              nullptr, 0));
  equal("state", static_cast<int>(one.end.state()), static_cast<int>(IBV_QPS_RTS));
}

void query_returns_verbs_attributes(Session& session) {
  One one(session);
  one.to_rtr();
  works("mrc_modify_qp to RTS", one.end.to_rts());
  ibv_qp_attr attr{};
  works("mrc_query_qp",
        one.end.library.mrc_query_qp(
            one.end.qp, &attr,
            IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_PATH_MTU,
            nullptr, 0, nullptr));
  equal_hex("dest_qp_num", attr.dest_qp_num, one.end.qpn());
  equal_hex("rq_psn", attr.rq_psn, one.end.options.psn);
  equal("path_mtu", static_cast<int>(attr.path_mtu), static_cast<int>(IBV_MTU_1024));
}

void unknown_profile_is_refused(Session& session) {
  One one(session);
  mrc_qp_attr attr{};
  attr.profile.ev_profile_id = 1ull << 40;
  fails_value("mrc_modify_qp to INIT with EV profile 2^40",
              one.end.to_init(kRemoteWrite, &attr, MRC_QP_EV_PROFILE_ID), {EINVAL, ENOENT});
  attr.profile.cc_profile_id = 1ull << 40;
  fails_value("mrc_modify_qp to INIT with CC profile 2^40",
              one.end.to_init(kRemoteWrite, &attr, MRC_QP_CC_PROFILE_ID), {EINVAL, ENOENT});
}

constexpr Test kTests[] = {
    {.id = "api.qp.attr.defaults",
     .clause = "OCP's benchmark: MRC mask 0 everywhere",
     .what = "attributes that no transition set have defaults within the limits",
     .body = defaults_within_limits},
    {.id = "api.qp.attr.verbs-ignored",
     .clause = "mrc.h: mrc_modify_qp, attributes without meaning",
     .what = "PORT, TIMEOUT, RETRY_CNT, RNR and RD_ATOMIC attributes are ignored, not refused",
     .body = verbs_attributes_are_ignored},
    {.id = "api.qp.attr.verbs-query",
     .clause = "mrc.h: mrc_query_qp",
     .what = "a query returns peer, PSN and MTU",
     .body = query_returns_verbs_attributes},
    {.id = "api.qp.attr.mpr",
     .clause = "mrc.h: MRC_QP_MPR at RTS",
     .what = "an MPR of 8 is accepted, and a query returns it",
     .body =
         [](Session& s) {
           rts_takes(
               s, MRC_QP_MPR, [](auto& a) { a.mpr.mpr = 8; },
               [](const auto& a) { equal("mpr", a.mpr.mpr, 8); });
         }},
    {.id = "api.qp.attr.mpr-early",
     .clause = "OCP's mrc_qp example: MPR and MAX_WIMM at RTR",
     .what = "MPR and MAX_WIMM are already accepted at RTR",
     .body =
         [](Session& s) {
           rtr_takes(
               s, MRC_QP_MPR | MRC_QP_MAX_WIMM,
               [](auto& a) {
                 a.mpr.mpr = 8;
                 a.wimm.max_wimm = 32;
               },
               [](const auto& a) {
                 equal("mpr", a.mpr.mpr, 8);
                 equal("max_wimm", a.wimm.max_wimm, 32);
               });
         }},
    {.id = "api.qp.attr.mpr-dest",
     .clause = "mrc.h: MRC_QP_MPR_DEST at RTR",
     .what = "an MPR_DEST of 8 is accepted, and a query returns it",
     .body =
         [](Session& s) {
           rtr_takes(
               s, MRC_QP_MPR_DEST, [](auto& a) { a.mpr.mpr_dest = 8; },
               [](const auto& a) { equal("mpr_dest", a.mpr.mpr_dest, 8); });
         }},
    {.id = "api.qp.attr.wimm-dest",
     .clause = "mrc.h: MRC_QP_MAX_WIMM_DEST at RTR",
     .what = "a MAX_WIMM_DEST of 32 is accepted, and a query returns it",
     .body =
         [](Session& s) {
           rtr_takes(
               s, MRC_QP_MAX_WIMM_DEST, [](auto& a) { a.wimm.max_wimm_dest = 32; },
               [](const auto& a) { equal("max_wimm_dest", a.wimm.max_wimm_dest, 32); });
         }},
    {.id = "api.qp.attr.wimm",
     .clause = "mrc.h: MRC_QP_MAX_WIMM at RTS",
     .what = "a MAX_WIMM of 32 is accepted, and a query returns it",
     .body =
         [](Session& s) {
           rts_takes(
               s, MRC_QP_MAX_WIMM, [](auto& a) { a.wimm.max_wimm = 32; },
               [](const auto& a) { equal("max_wimm", a.wimm.max_wimm, 32); });
         }},
    {.id = "api.qp.attr.timeout",
     .clause = "mrc.h: MRC_QP_TIMEOUT at RTS",
     .what = "a timeout of 24, the largest, is accepted, and a query returns it",
     .body =
         [](Session& s) {
           rts_takes(
               s, MRC_QP_TIMEOUT, [](auto& a) { a.timeout = 24; },
               [](const auto& a) { equal("timeout", a.timeout, 24); });
         }},
    {.id = "api.qp.attr.timeout-limit",
     .clause = "mrc.h: struct mrc_qp_attr, timeout at most 24",
     .what = "a timeout of 25 is EINVAL",
     .body =
         [](Session& s) {
           rts_refuses(
               s, MRC_QP_TIMEOUT, [](auto& a) { a.timeout = 25; }, "timeout 25");
         }},
    {.id = "api.qp.attr.retry",
     .clause = "mrc.h: MRC_QP_RETRY_CNT at RTS",
     .what =
         "7 linear and 25 exponential retries, the largest, are accepted, and a query returns them",
     .body =
         [](Session& s) {
           rts_takes(
               s, MRC_QP_RETRY_CNT,
               [](auto& a) {
                 a.retry.linear_cnt = 7;
                 a.retry.exp_cnt = 25;
               },
               [](const auto& a) {
                 equal("linear_cnt", a.retry.linear_cnt, 7);
                 equal("exp_cnt", a.retry.exp_cnt, 25);
               });
         }},
    {.id = "api.qp.attr.linear-limit",
     .clause = "mrc.h: struct mrc_qp_attr, linear_cnt at most 7",
     .what = "8 linear retries are EINVAL",
     .body =
         [](Session& s) {
           rts_refuses(
               s, MRC_QP_RETRY_CNT, [](auto& a) { a.retry.linear_cnt = 8; }, "linear_cnt 8");
         }},
    {.id = "api.qp.attr.exp-limit",
     .clause = "mrc.h: struct mrc_qp_attr, exp_cnt at most 25",
     .what = "26 exponential retries are EINVAL",
     .body =
         [](Session& s) {
           rts_refuses(
               s, MRC_QP_RETRY_CNT, [](auto& a) { a.retry.exp_cnt = 26; }, "exp_cnt 26");
         }},
    {.id = "api.qp.attr.mpr-limit",
     .clause = "mrc.h: struct mrc_device_attr, max_mpr",
     .what = "an MPR above the device's is EINVAL",
     .body = values_above_limits_are_refused},
    {.id = "api.qp.attr.cap",
     .clause = "mrc.h: MRC_QP_CAP at RTR",
     .what = "capabilities are accepted at RTR, and a query returns them",
     .body =
         [](Session& s) {
           rtr_takes(
               s, MRC_QP_CAP, [](auto& a) { a.cap = MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED; },
               [](const auto& a) {
                 equal_hex("cap", a.cap, MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED);
               });
         }},
    {.id = "api.qp.attr.unknown-profile",
     .clause = "mrc.h: struct mrc_qp_attr, profiles by number",
     .what = "an EV or CC profile that the device does not have is refused",
     .body = unknown_profile_is_refused},
};

}  // namespace

std::span<const Test> qp_attribute_tests() { return kTests; }

}  // namespace weft::conformance
