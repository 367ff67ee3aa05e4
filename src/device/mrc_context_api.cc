// Implements mrc.h: API versions, devices and contexts, asynchronous events.
#include <mrc/mrc.h>

#include "device/c_edge.h"
#include "device/mrc_objects.h"

using namespace weft;
using namespace weft::device;

namespace {

int query_device(ibv_context* context, mrc_device_attr* attr, int* supported) {
  if (context == nullptr || attr == nullptr || supported == nullptr) return EINVAL;
  *attr = {};
  SoftwareContext* const ours = SoftwareContext::of(context);
  *supported = ours != nullptr ? 1 : 0;
  if (ours == nullptr) return 0;
  const QpLimits limits;
  attr->mrc_protocol_version = MRC_PROTOCOL_VERSION_1;
  attr->wimm_attr.max_wimm = attr->wimm_attr.max_wimm_dest = limits.wimm_max;
  attr->mpr_attr.max_mpr = limits.mpr_max;
  attr->mpr_attr.mpr_resolution = 1;
  attr->qp_attr.max_qp_hint = kHintsMax;
  attr->cap = MRC_DEVICE_CAP_TRIM_NACK | MRC_DEVICE_CAP_DYNAMIC_MPR;
  return 0;
}

}  // namespace

extern "C" {

void mrc_query_version(std::uint32_t* current, std::uint32_t* last, std::uint32_t* vendor,
                       std::uint32_t* last_vendor) noexcept {
  if (current != nullptr) *current = MRC_API_CURRENT_VERSION;
  if (last != nullptr) *last = MRC_API_LAST_SUPPORTED_VERSION;
  if (vendor != nullptr) *vendor = MRC_API_VER(1, 0, 0);
  if (last_vendor != nullptr) *last_vendor = 0;
}

int mrc_query_device(ibv_context* context, mrc_device_attr* attr, int* supported) noexcept {
  return returned(guarded([&] { return query_device(context, attr, supported); }), fail_minus_one);
}

// `mrc` may be null: a program passes null to learn whether the device supports MRC at all.
int mrc_query_device_ex(ibv_context* context, mrc_context* mrc, mrc_device_attr* attr,
                        int* supported) noexcept {
  const int error = guarded([&] {
    if (mrc != nullptr && mrc->verbs.ibv() != context) return EINVAL;
    return query_device(context, attr, supported);
  });
  return returned(error, fail_minus_one);
}

mrc_context* mrc_create_context(ibv_context* verbs, mrc_context_attr* attr) noexcept {
  return guarded_pointer<mrc_context>([&]() -> mrc_context* {
    if (verbs == nullptr) return fail_null(EINVAL);
    SoftwareContext* const ours = SoftwareContext::of(verbs);
    if (ours == nullptr) return fail_null(EOPNOTSUPP);
    // Accept every version up to ours: OCP's benchmark asks for 0.0.1.
    const std::uint32_t version = attr == nullptr ? 0 : attr->mrc_api_version_used;
    if (version > MRC_API_CURRENT_VERSION) return fail_null(EINVAL);
    auto engine = ours->engine();
    if (!engine) return fail_null(errno_of(engine.error().kind));
    auto context = std::unique_ptr<mrc_context>(
        new mrc_context{.verbs = *ours,
                        .engine = **engine,
                        .api_version = version == 0 ? MRC_API_CURRENT_VERSION : version});
    (*engine)->add_listener(ours->events, context.get());
    ++ours->children;
    return context.release();
  });
}

int mrc_destroy_context(mrc_context* context) noexcept {
  const int error = guarded([&] {
    if (context == nullptr) return EINVAL;
    if (context->children.load() != 0) return EBUSY;
    context->engine.remove_listener(context);
    context->verbs.events.forget_owner(context);
    --context->verbs.children;
    delete context;
    return 0;
  });
  return returned(error, fail_minus_one);
}

int mrc_get_async_event(mrc_context* context, mrc_async_event* event) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || event == nullptr) return EINVAL;
    AsyncEvent got;
    if (const int none = context->verbs.events.get(context, got)) return none;
    event->event_type = got.type;
    if (got.element == nullptr) {
      event->element.port_num = got.port;
    } else if (got.type == IBV_EVENT_CQ_ERR) {
      event->element.cq = static_cast<mrc_cq*>(const_cast<void*>(got.element));
    } else {
      event->element.qp = static_cast<mrc_qp*>(const_cast<void*>(got.element));
    }
    return 0;
  });
  return returned(error, fail_minus_one);
}

void mrc_ack_async_event(mrc_async_event* event) noexcept {
  if (event == nullptr || is_forked_child()) return;
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      if (event->element.cq != nullptr)
        event->element.cq->context.verbs.events.acknowledge(event->element.cq);
      return;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_ACCESS_ERR:
      if (event->element.qp != nullptr)
        event->element.qp->context->verbs.events.acknowledge(event->element.qp);
      return;
    default:
      return;  // a port event has no object, and needs no acknowledgement
  }
}

}  // extern "C"
