// Implements mrc.h: hints about the traffic that a program expects.
#include <mrc/mrc.h>

#include <cstring>

#include "device/c_edge.h"
#include "device/mrc_objects.h"

using namespace weft;
using namespace weft::device;

namespace {

constexpr int kKnown = MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS |
                       MRC_QP_HINT_NUM_REMOTE_RECV_PEERS | MRC_QP_HINT_VENDOR_CFG;

void copy(const mrc_qp_hint_attr& from, int mask, mrc_qp_hint_attr& to) {
  if ((mask & MRC_QP_HINT_NUM_QPS_PER_PEER) != 0) to.num_qps_per_peer = from.num_qps_per_peer;
  if ((mask & MRC_QP_HINT_NUM_SEND_PEERS) != 0) to.num_send_peers = from.num_send_peers;
  if ((mask & MRC_QP_HINT_NUM_REMOTE_RECV_PEERS) != 0)
    to.num_remote_recv_peers = from.num_remote_recv_peers;
  if ((mask & MRC_QP_HINT_VENDOR_CFG) != 0)
    std::memcpy(to.vendor_cfg, from.vendor_cfg, sizeof(to.vendor_cfg));
}

bool is_valid(const mrc_qp_hint_attr& attr) {
  return attr.num_qps_per_peer >= 0 && attr.num_send_peers >= 0 && attr.num_remote_recv_peers >= 0;
}

}  // namespace

extern "C" {

mrc_qp_hint* mrc_create_qp_hint(mrc_context* context, mrc_qp_hint_init_attr* init) noexcept {
  return guarded_pointer<mrc_qp_hint>([&]() -> mrc_qp_hint* {
    if (context == nullptr || init == nullptr || !is_valid(init->attr)) return fail_null(EINVAL);
    if (context->hints.fetch_add(1) >= kHintsMax) {
      --context->hints;
      return fail_null(ENOMEM);
    }
    auto* const hint = new mrc_qp_hint{.context = *context, .lock = {}, .attr = init->attr};
    ++context->children;
    return hint;
  });
}

int mrc_destroy_qp_hint(mrc_qp_hint* hint) noexcept {
  const int error = guarded([&] {
    if (hint == nullptr) return EINVAL;
    if (hint->qps.load() != 0) return EBUSY;
    --hint->context.children;
    --hint->context.hints;
    delete hint;
    return 0;
  });
  return returned(error, fail_minus_one);
}

int mrc_query_qp_hint(mrc_qp_hint* hint, mrc_qp_hint_attr* attr, int mask) noexcept {
  const int error = guarded([&] {
    if (hint == nullptr || attr == nullptr || (mask & ~kKnown) != 0) return EINVAL;
    const std::lock_guard guard(hint->lock);
    copy(hint->attr, mask, *attr);
    return 0;
  });
  return returned(error, fail_minus_one);
}

// A QP reads the new hint at its next state transition.
int mrc_modify_qp_hint(mrc_qp_hint* hint, mrc_qp_hint_attr* attr, int mask) noexcept {
  const int error = guarded([&] {
    if (hint == nullptr || attr == nullptr || (mask & ~kKnown) != 0) return EINVAL;
    const std::lock_guard guard(hint->lock);
    mrc_qp_hint_attr next = hint->attr;
    copy(*attr, mask, next);
    if (!is_valid(next)) return EINVAL;
    hint->attr = next;
    return 0;
  });
  return returned(error, fail_minus_one);
}

}  // extern "C"
