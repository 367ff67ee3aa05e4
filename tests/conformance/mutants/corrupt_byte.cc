// Flips a bit of the last byte of every plain write of 4097 bytes.
#include "next.h"

extern "C" int mrc_post_send(mrc_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  for (const ibv_send_wr* at = wr; at != nullptr; at = at->next) {
    if (at->opcode != IBV_WR_RDMA_WRITE || at->num_sge != 1 || at->sg_list[0].length != 4097)
      continue;
    reinterpret_cast<std::uint8_t*>(at->sg_list[0].addr)[4096] ^= 1;
  }
  return WEFT_NEXT(mrc_post_send)(qp, wr, bad);
}
