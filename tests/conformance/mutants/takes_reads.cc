// Accepts an RDMA READ, which MRC does not have, and ignores it.
#include "next.h"

extern "C" int mrc_post_send(mrc_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  if (wr == nullptr) return WEFT_NEXT(mrc_post_send)(qp, wr, bad);
  for (ibv_send_wr** at = &wr; *at != nullptr;) {
    if ((*at)->opcode == IBV_WR_RDMA_READ) {
      *at = (*at)->next;
    } else {
      at = &(*at)->next;
    }
  }
  return wr == nullptr ? 0 : WEFT_NEXT(mrc_post_send)(qp, wr, bad);
}
