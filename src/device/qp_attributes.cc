#include "device/qp_attributes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/psn.h"

namespace weft::device {
namespace {

constexpr int kVerbsInit = IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
constexpr int kVerbsReceive = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kVerbsSend = IBV_QP_SQ_PSN;

constexpr int kMrcInit = MRC_QP_HINT | MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID;
constexpr int kMrcReceive = MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR_DEST | MRC_QP_CAP;
constexpr int kMrcSend = MRC_QP_MAX_WIMM | MRC_QP_MPR | MRC_QP_RETRY_CNT | MRC_QP_TIMEOUT;

constexpr std::uint32_t kCapMask = MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED | MRC_QP_CAP_DYNAMIC_MPR |
                                   MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED;

Error invalid(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }

// The attributes that a transition accepts. Each attribute belongs to one transition. It is also
// accepted in an earlier transition, because programs set the MPR at RTR. It is not accepted later,
// because a QP that runs would have to change.
struct Allowed {
  bool transition = false;
  int verbs = 0, mrc = 0;
};
Allowed allowed(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_ERR || to == IBV_QPS_RESET) return {.transition = true};
  if (to == IBV_QPS_INIT && (from == IBV_QPS_RESET || from == IBV_QPS_INIT))
    return {true, kVerbsInit, kMrcInit | kMrcReceive | kMrcSend | MRC_QP_VENDOR_CFG};
  if (to == IBV_QPS_RTR && from == IBV_QPS_INIT)
    return {true, kVerbsInit | kVerbsReceive, kMrcReceive | kMrcSend | MRC_QP_VENDOR_CFG};
  if (to == IBV_QPS_RTS && from == IBV_QPS_RTR)
    return {true, kVerbsSend, kMrcSend | MRC_QP_VENDOR_CFG};
  // A transition from RTR to RTR, or RTS to RTS, accepts only verbs attributes that are ignored.
  if (to == from && (to == IBV_QPS_RTR || to == IBV_QPS_RTS)) return {.transition = true};
  return {};
}

Result<void> take_verbs(const ibv_qp_attr& attr, int mask, const QpLimits& limits,
                        QpAttributes& out) {
  if ((mask & IBV_QP_PKEY_INDEX) != 0) {
    if (attr.pkey_index != 0) return invalid("pkey_index: there is one P_Key, at index 0");
    out.pkey_index = attr.pkey_index;
  }
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) out.access = attr.qp_access_flags;
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    const std::uint32_t bytes = bytes_of(attr.path_mtu);
    if (bytes == 0 || bytes > limits.mtu) {
      return invalid(fmt::format("path_mtu {}: the device has an MTU of {}",
                                 static_cast<int>(attr.path_mtu), limits.mtu));
    }
    out.mtu = bytes;
  }
  if ((mask & IBV_QP_AV) != 0) {
    if (attr.ah_attr.is_global == 0)
      return invalid("ah_attr.is_global is 0: a peer is named by its GID");
    out.address = attr.ah_attr;
    out.has_address = true;
  }
  if ((mask & IBV_QP_DEST_QPN) != 0) {
    out.peer_qpn = attr.dest_qp_num;
    out.has_peer_qpn = true;
  }
  if ((mask & IBV_QP_RQ_PSN) != 0) out.receive_psn = attr.rq_psn & Psn::kMask;
  if ((mask & IBV_QP_SQ_PSN) != 0) out.send_psn = attr.sq_psn & Psn::kMask;
  return {};
}

Result<void> take_mrc(const mrc_qp_attr& attr, int mask, const QpLimits& limits,
                      QpAttributes& out) {
  const auto window = [&](std::uint8_t mpr) { return mpr >= 1 && mpr <= limits.mpr_max; };
  const auto immediates = [&](std::uint16_t n) { return n >= 1 && n <= limits.wimm_max; };
  if (((mask & MRC_QP_MPR) != 0 && !window(attr.mpr.mpr)) ||
      ((mask & MRC_QP_MPR_DEST) != 0 && !window(attr.mpr.mpr_dest)))
    return invalid(fmt::format("an MPR is 1 to {}", limits.mpr_max));
  if (((mask & MRC_QP_MAX_WIMM) != 0 && !immediates(attr.wimm.max_wimm)) ||
      ((mask & MRC_QP_MAX_WIMM_DEST) != 0 && !immediates(attr.wimm.max_wimm_dest)))
    return invalid(fmt::format("max_wimm is 1 to {}", limits.wimm_max));
  if ((mask & MRC_QP_TIMEOUT) != 0 && attr.timeout > 24) return invalid("timeout is 0 to 24");
  if ((mask & MRC_QP_RETRY_CNT) != 0 && (attr.retry.linear_cnt > 7 || attr.retry.exp_cnt > 25))
    return invalid("linear_cnt is 0 to 7, exp_cnt 0 to 25");
  if ((mask & MRC_QP_CAP) != 0 && (attr.cap & ~kCapMask) != 0)
    return invalid(fmt::format("cap {:#x} has bits that are not known", attr.cap));
  if ((mask & MRC_QP_MPR) != 0) out.mpr = attr.mpr.mpr;
  if ((mask & MRC_QP_MPR_DEST) != 0) out.mpr_dest = attr.mpr.mpr_dest;
  if ((mask & MRC_QP_MAX_WIMM) != 0) out.wimm = attr.wimm.max_wimm;
  if ((mask & MRC_QP_MAX_WIMM_DEST) != 0) out.wimm_dest = attr.wimm.max_wimm_dest;
  if ((mask & MRC_QP_TIMEOUT) != 0) out.timeout = attr.timeout;
  if ((mask & MRC_QP_RETRY_CNT) != 0) {
    out.linear_count = attr.retry.linear_cnt;
    out.exponential_count = attr.retry.exp_cnt;
  }
  if ((mask & MRC_QP_EV_PROFILE_ID) != 0) out.ev_profile = attr.profile.ev_profile_id;
  if ((mask & MRC_QP_CC_PROFILE_ID) != 0) out.cc_profile = attr.profile.cc_profile_id;
  if ((mask & MRC_QP_HINT) != 0) out.hint = attr.qp_hint;
  if ((mask & MRC_QP_CAP) != 0) out.cap = attr.cap;
  if ((mask & MRC_QP_VENDOR_CFG) != 0)
    std::memcpy(out.vendor.data(), attr.vendor_cfg, out.vendor.size());
  return {};
}

}  // namespace

std::uint32_t bytes_of(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << static_cast<unsigned>(mtu) : 0;
}

ibv_mtu mtu_of(std::uint32_t bytes) {
  int mtu = IBV_MTU_4096;
  while (mtu > IBV_MTU_256 && 128u << mtu > bytes) --mtu;
  return static_cast<ibv_mtu>(mtu);
}

Result<QpAttributes> changed(const QpAttributes& now, const QpChange& change,
                             const QpLimits& limits) {
  if ((change.verbs_mask != 0 && change.verbs == nullptr) ||
      (change.mrc_mask != 0 && change.mrc == nullptr))
    return invalid("a mask without attributes");
  if ((change.verbs_mask & IBV_QP_CUR_STATE) != 0 && change.verbs->cur_qp_state != now.state)
    return invalid(fmt::format("the QP is in state {}, not in {}", static_cast<int>(now.state),
                               static_cast<int>(change.verbs->cur_qp_state)));
  const ibv_qp_state to =
      (change.verbs_mask & IBV_QP_STATE) != 0 ? change.verbs->qp_state : now.state;
  const Allowed may = allowed(now.state, to);
  if (!may.transition) {
    return invalid(fmt::format("no way leads from state {} to {}", static_cast<int>(now.state),
                               static_cast<int>(to)));
  }
  const int verbs_left =
      change.verbs_mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE | kIgnoredVerbs | may.verbs);
  const int mrc_left = change.mrc_mask & ~may.mrc;
  if (verbs_left != 0 || mrc_left != 0) {
    return invalid(
        fmt::format("on the way from state {} to {} these have no place: verbs {:#x}, "
                    "MRC {:#x}",
                    static_cast<int>(now.state), static_cast<int>(to),
                    static_cast<unsigned>(verbs_left), static_cast<unsigned>(mrc_left)));
  }
  if (to == IBV_QPS_RESET) return QpAttributes{.mtu = limits.mtu};
  QpAttributes out = now;
  out.state = to;
  if (change.verbs != nullptr)
    WEFT_CHECK(take_verbs(*change.verbs, change.verbs_mask, limits, out));
  if (change.mrc != nullptr) WEFT_CHECK(take_mrc(*change.mrc, change.mrc_mask, limits, out));
  if (to == IBV_QPS_RTR && now.state != to && (!out.has_address || !out.has_peer_qpn))
    return invalid("RTR needs IBV_QP_AV and IBV_QP_DEST_QPN: who the peer is has no default");
  return out;
}

}  // namespace weft::device
