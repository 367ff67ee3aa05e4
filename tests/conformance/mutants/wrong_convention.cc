// Returns -1 with errno where the API returns the errno value itself.
#include "next.h"

extern "C" int mrc_modify_qp(mrc_qp* qp, ibv_qp_attr* verbs, int verbs_mask, mrc_qp_attr* attr,
                             int mask) noexcept {
  return WEFT_NEXT(mrc_modify_qp)(qp, verbs, verbs_mask, attr, mask) == 0 ? 0 : -1;
}
