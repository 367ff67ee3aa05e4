// Its first PSN is one higher than the configured one.
#include "next.h"

extern "C" int mrc_modify_qp(mrc_qp* qp, ibv_qp_attr* verbs, int verbs_mask, mrc_qp_attr* attr,
                             int mask) noexcept {
  ibv_qp_attr other{};
  if (verbs != nullptr) other = *verbs;
  if ((verbs_mask & IBV_QP_SQ_PSN) != 0) ++other.sq_psn;
  return WEFT_NEXT(mrc_modify_qp)(qp, verbs != nullptr ? &other : nullptr, verbs_mask, attr, mask);
}
