// Implements mrc.h: QPs.
#include <mrc/mrc.h>

#include <algorithm>
#include <cstring>

#include "device/c_edge.h"
#include "device/mrc_objects.h"
#include "os/log.h"

using namespace weft;
using namespace weft::device;

namespace {

constexpr std::uint64_t kOps = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
static_assert(kOps == (1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM));

int check(const mrc_context* context, const mrc_qp_init_attr* init) {
  if (context == nullptr || init == nullptr || init->send_cq == nullptr ||
      init->recv_cq == nullptr || SoftwarePd::of(init->pd) == nullptr)
    return EINVAL;
  if (&init->send_cq->context != context || &init->recv_cq->context != context ||
      init->pd->context != context->verbs.ibv())
    return EINVAL;
  const ibv_qp_cap& cap = init->cap;
  if (cap.max_send_wr > kWorkMax || cap.max_recv_wr > kWorkMax || cap.max_send_sge > kPiecesMax ||
      cap.max_recv_sge > kPiecesMax || cap.max_inline_data > kInlineMax)
    return EINVAL;
  if ((init->send_ops_flags & ~kOps) != 0) return EOPNOTSUPP;
  // Use memcpy: a C program may store a number in an enum that equals no enumerator.
  std::uint32_t protocol = 0;
  static_assert(sizeof(protocol) == sizeof(init->protocol_version));
  std::memcpy(&protocol, &init->protocol_version, sizeof(protocol));
  if (protocol != MRC_PROTOCOL_VERSION_0 && protocol != MRC_PROTOCOL_VERSION_1) return EINVAL;
  return 0;
}

QueuePair::Options options_for(mrc_context& context, const mrc_qp_init_attr& init,
                               const mrc_qp& handle) {
  // If the program sets no flags, both operations are allowed.
  const std::uint64_t ops = init.send_ops_flags == 0 ? kOps : init.send_ops_flags;
  return {.qp = {.sends = {.depth = init.cap.max_send_wr,
                           .pieces_max = init.cap.max_send_sge,
                           .inline_max = init.cap.max_inline_data},
                 .receives = init.cap.max_recv_wr,
                 .domain = SoftwarePd::of(init.pd)->domain,
                 .send_cq = &init.send_cq->queue,
                 .receive_cq = &init.recv_cq->queue,
                 .signal_all = init.sq_sig_all != 0,
                 .events = &context.verbs.events,
                 .owner = &context,
                 .handle = &handle},
          .receive_pieces_max = std::max(init.cap.max_recv_sge, 1u),
          .opcodes = static_cast<std::uint32_t>(ops)};
}

// How many QPs share the initial window, according to the QP's hint.
std::uint32_t qps_sharing_path_of(mrc_qp_hint* hint) {
  if (hint == nullptr) return 1;
  const std::lock_guard guard(hint->lock);
  const auto at_least_one = [](int n) {
    return static_cast<std::uint32_t>(std::clamp(n, 1, 4096));
  };
  return at_least_one(hint->attr.num_qps_per_peer) * at_least_one(hint->attr.num_remote_recv_peers);
}

void fill(const QpAttributes& from, ibv_qp_attr& to) {
  to = {};
  to.qp_state = to.cur_qp_state = from.state;
  to.path_mtu = mtu_of(from.mtu);
  to.rq_psn = from.receive_psn;
  to.sq_psn = from.send_psn;
  to.dest_qp_num = from.peer_qpn;
  to.qp_access_flags = from.access;
  to.ah_attr = from.address;
  to.pkey_index = from.pkey_index;
  to.port_num = kVerbsPort;
}

void fill(const QpAttributes& from, mrc_qp_attr& to) {
  to = {};
  to.mpr = {.mpr = from.mpr, .mpr_dest = from.mpr_dest};
  to.wimm = {.max_wimm = from.wimm, .max_wimm_dest = from.wimm_dest};
  to.timeout = from.timeout;
  to.profile = {.ev_profile_id = from.ev_profile, .cc_profile_id = from.cc_profile};
  to.retry = {.linear_cnt = from.linear_count, .exp_cnt = from.exponential_count};
  to.qp_hint = from.hint;
  to.cap = from.cap;
  std::memcpy(to.vendor_cfg, from.vendor.data(), from.vendor.size());
}

void use_hint(mrc_qp& qp, mrc_qp_hint* hint) {
  if (hint != nullptr) ++hint->qps;
  if (qp.hint != nullptr) --qp.hint->qps;
  qp.hint = hint;
}

}  // namespace

extern "C" {

mrc_qp* mrc_create_qp(mrc_context* context, mrc_qp_init_attr* init) noexcept {
  return guarded_pointer<mrc_qp>([&]() -> mrc_qp* {
    if (const int error = check(context, init)) return fail_null(error);
    auto out = std::make_unique<mrc_qp>();
    out->context = context;
    auto qp = QueuePair::create(context->engine, options_for(*context, *init, *out));
    if (!qp) return fail_null(errno_of(qp.error().kind));
    out->qp = std::move(qp).value();
    // Report to the program the sizes that the QP really has.
    init->cap.max_send_wr = out->qp->qp().sends.limits().depth;
    init->cap.max_recv_wr = out->qp->qp().receives.depth();
    init->cap.max_send_sge = out->qp->qp().sends.limits().pieces_max;
    init->cap.max_recv_sge = out->qp->options().receive_pieces_max;
    out->init = *init;
    out->verbs_qp.context = context->verbs.ibv();
    out->verbs_qp.qp_context = init->qp_context;
    out->verbs_qp.pd = init->pd;
    out->verbs_qp.handle = out->verbs_qp.qp_num = out->qp->qpn();
    out->verbs_qp.state = IBV_QPS_RESET;
    out->verbs_qp.qp_type = IBV_QPT_RC;
    ++context->children;
    ++init->send_cq->qps;
    ++init->recv_cq->qps;
    ++SoftwarePd::of(init->pd)->children;
    return out.release();
  });
}

int mrc_destroy_qp(mrc_qp* qp) noexcept {
  const int error = guarded([&] {
    if (qp == nullptr) return EINVAL;
    mrc_context& context = *qp->context;
    qp->qp.reset();
    context.verbs.events.forget(qp);
    use_hint(*qp, nullptr);
    --SoftwarePd::of(qp->init.pd)->children;
    --qp->init.send_cq->qps;
    --qp->init.recv_cq->qps;
    delete qp;
    --context.children;
    return 0;
  });
  return returned(error, fail_value);
}

int mrc_modify_qp(mrc_qp* qp, ibv_qp_attr* verbs, int verbs_mask, mrc_qp_attr* attr,
                  int mask) noexcept {
  const int error = guarded([&] {
    if (qp == nullptr || (mask != 0 && attr == nullptr)) return EINVAL;
    const std::lock_guard guard(qp->modify_lock);
    mrc_qp_hint* const hint = (mask & MRC_QP_HINT) != 0 ? attr->qp_hint : qp->hint;
    if (hint != nullptr && &hint->context != qp->context) return EINVAL;
    const auto done = qp->qp->modify(
        {.change = {.verbs = verbs, .verbs_mask = verbs_mask, .mrc = attr, .mrc_mask = mask},
         .qps_sharing_path = qps_sharing_path_of(hint)});
    if (!done) {
      os::log(os::LogLevel::kInfo, "QP {:#x}: mrc_modify_qp: {}", qp->qp->qpn(),
              done.error().message);
      return errno_of(done.error().kind);
    }
    const QpAttributes now = qp->qp->attributes();
    qp->verbs_qp.state = now.state;
    use_hint(*qp, now.hint);
    return 0;
  });
  return returned(error, fail_value);
}

int mrc_query_qp(mrc_qp* qp, ibv_qp_attr* verbs, int verbs_mask, mrc_qp_attr* attr, int mask,
                 mrc_qp_init_attr* init) noexcept {
  const int error = guarded([&] {
    if (qp == nullptr || (verbs_mask != 0 && verbs == nullptr) || (mask != 0 && attr == nullptr))
      return EINVAL;
    const QpAttributes now = qp->qp->attributes();
    if (verbs != nullptr) {
      fill(now, *verbs);
      verbs->cap = qp->init.cap;
    }
    if (attr != nullptr) fill(now, *attr);
    if (init != nullptr) *init = qp->init;
    return 0;
  });
  return returned(error, fail_value);
}

int mrc_get_qpn(mrc_qp* qp, std::uint32_t* qpn) noexcept {
  const int error = guarded([&] {
    if (qp == nullptr || qpn == nullptr) return EINVAL;
    *qpn = qp->qp->qpn();
    return 0;
  });
  return returned(error, fail_minus_one);
}

int mrc_post_send(mrc_qp* qp, ibv_send_wr* work, ibv_send_wr** bad) noexcept {
  if (is_forked_child()) return fail_value(EPERM);
  if (qp == nullptr || work == nullptr) return fail_value(EINVAL);
  return returned(qp->qp->post_send(work, bad), fail_value);
}

int mrc_post_recv(mrc_qp* qp, ibv_recv_wr* work, ibv_recv_wr** bad) noexcept {
  if (is_forked_child()) return fail_minus_one(EPERM);
  if (qp == nullptr || work == nullptr) return fail_minus_one(EINVAL);
  return returned(qp->qp->post_recv(work, bad), fail_minus_one);
}

}  // extern "C"
