// The verbs stand-in for functions that a Weft device does not support: QPs, CQs and related
// objects of plain verbs. MRC has its own (mrc.h). libibverbs would look for a kernel driver behind
// our context, so these functions fail with EOPNOTSUPP. Calls for devices that are not Weft's are
// passed on.
#include <infiniband/verbs.h>

#include "device/c_edge.h"
#include "device/real_verbs.h"
#include "device/software_device.h"

using namespace weft::device;

namespace {

template <typename Next, typename... Args>
auto hand_on(bool ours, Next* next, Args... args) -> decltype(next(args...)) {
  if (ours) return fail_null(EOPNOTSUPP);
  return next == nullptr ? fail_null(EINVAL) : next(args...);
}

bool is_ours(ibv_context* context) { return SoftwareContext::of(context) != nullptr; }
bool is_ours(ibv_pd* pd) { return SoftwarePd::of(pd) != nullptr; }

}  // namespace

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return hand_on(is_ours(context), WEFT_REAL(ibv_create_comp_channel, "IBVERBS_1.0"), context);
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int vector) {
  return hand_on(is_ours(context), WEFT_REAL(ibv_create_cq, "IBVERBS_1.1"), context, cqe,
                 cq_context, channel, vector);
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return hand_on(is_ours(pd), WEFT_REAL(ibv_create_qp, "IBVERBS_1.1"), pd, attr);
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return hand_on(is_ours(pd), WEFT_REAL(ibv_create_srq, "IBVERBS_1.1"), pd, attr);
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return hand_on(is_ours(pd), WEFT_REAL(ibv_create_ah, "IBVERBS_1.1"), pd, attr);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, int access) {
  return hand_on(is_ours(pd), WEFT_REAL(ibv_reg_dmabuf_mr, "IBVERBS_1.12"), pd, offset, length,
                 iova, fd, access);
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  auto* const next = WEFT_REAL(ibv_rereg_mr, "IBVERBS_1.1");
  if (mr == nullptr || is_ours(mr->pd) || next == nullptr) {
    errno = mr == nullptr ? EINVAL : EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
  }
  return next(mr, flags, pd, addr, length, access);
}

// A Weft context has no events here: events of MRC objects come from mrc_get_async_event().
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  auto* const next = WEFT_REAL(ibv_get_async_event, "IBVERBS_1.1");
  if (is_ours(context)) return fail_minus_one(EOPNOTSUPP);
  return next == nullptr ? fail_minus_one(EINVAL) : next(context, event);
}

}  // extern "C"
