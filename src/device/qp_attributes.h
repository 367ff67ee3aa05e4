// The attributes of a QP, and which state transition accepts which attribute (reference section
// 2.4). Pure.
//
// Attributes that a program does not set have defaults. Verbs attributes without a meaning in MRC
// are ignored, because programs set them.
#pragma once

#include <infiniband/verbs.h>
#include <mrc/mrc.h>

#include <array>
#include <cstdint>

#include "base/result.h"

namespace weft::device {

struct QpLimits {
  std::uint32_t mtu = 4096;
  std::uint16_t wimm_max = 1024;
  std::uint8_t mpr_max = 255;
};

struct QpAttributes {
  ibv_qp_state state = IBV_QPS_RESET;
  // --- verbs
  std::uint16_t pkey_index = 0;
  unsigned access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  std::uint32_t mtu = 4096;
  ibv_ah_attr address{};
  bool has_address = false, has_peer_qpn = false;
  std::uint32_t peer_qpn = 0, receive_psn = 0, send_psn = 0;
  // --- MRC
  std::uint8_t mpr = 32, mpr_dest = 32;
  std::uint16_t wimm = 128, wimm_dest = 128;
  std::uint8_t timeout = 10, linear_count = 7, exponential_count = 13;  // docs/decisions/0005
  std::uint64_t ev_profile = 0, cc_profile = 0;
  mrc_qp_hint* hint = nullptr;
  std::uint32_t cap = 0;
  std::array<std::uint8_t, MRC_MAX_VENDOR_CFG_SIZE> vendor{};
};

// The arguments of mrc_modify_qp. A pointer may be null if its mask is 0.
struct QpChange {
  const ibv_qp_attr* verbs = nullptr;
  int verbs_mask = 0;
  const mrc_qp_attr* mrc = nullptr;
  int mrc_mask = 0;
};

// Verbs attributes without a meaning for an MRC QP.
inline constexpr int kIgnoredVerbs =
    IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

// Returns the attributes of the QP after the change. Errors: kInvalid with a one-line message.
Result<QpAttributes> changed(const QpAttributes& now, const QpChange& change,
                             const QpLimits& limits);

// Convert between ibv_mtu and bytes; 0 if there is no such value.
std::uint32_t bytes_of(ibv_mtu mtu);
ibv_mtu mtu_of(std::uint32_t bytes);

}  // namespace weft::device
