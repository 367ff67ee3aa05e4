// Implements mrc_ctl.h: EV events and endpoint operations.
#include <time.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/bytes.h"
#include "device/ctl_api.h"
#include "device/peer_planes.h"
#include "os/clock.h"

using namespace weft;
using namespace weft::control;
using namespace weft::device;

namespace {

// The size of an event in API 1.0.0, which has no `state`. Programs compiled for that API have
// arrays with this stride.
constexpr std::size_t kOldEventBytes = 48;
static_assert(offsetof(mrc_ctl_ev_event, state) == kOldEventBytes);

void give(const EvEvent& event, bool with_state, std::byte* to) {
  mrc_ctl_ev_event out{};
  out.profile_id = event.profile_id;
  out.ev = to_api(event.ev);
  out.drop_count = event.drop_count;
  out.state = static_cast<mrc_ctl_ev_state>(event.state);
  std::memcpy(to, &out, with_state ? sizeof out : kOldEventBytes);
}

Ipv6 ip_of(const ibv_gid& gid) {
  std::array<std::byte, 16> bytes;
  std::memcpy(bytes.data(), gid.raw, bytes.size());
  return base::load_ipv6(bytes, 0);
}

bool is_format_mode(std::uint32_t mode) {
  return mode == MRC_CTL_EV_FMT_MODE_STEV || mode == MRC_CTL_EV_FMT_MODE_SRV6 ||
         mode == MRC_CTL_EV_FMT_MODE_UDP;
}

struct Batch {
  std::uint8_t traffic_class = 0;
  std::uint32_t op = 0;
  std::span<const mrc_ctl_ep_req> requests{};
};

int asks_of(mrc_context& context, const Batch& batch, std::vector<transport::EndpointAsk>& out) {
  std::set<std::uint16_t> ids;
  const auto& ours = context.engine.addresses();
  for (const mrc_ctl_ep_req& request : batch.requests) {
    const std::uint32_t port = request.req_ev.port;
    if (port == 0 || port > ours.size() || !is_format_mode(raw(request.ev_fmt_mode))) return EINVAL;
    if (!ids.insert(request.req_id).second) return EINVAL;
    if (!(ip_of(request.sgid) == ours[0].ip())) return EINVAL;
    const auto peer = peer_planes(ours, {.gid = ip_of(request.dgid), .qpn = kHostQpn});
    if (!peer) return EINVAL;
    const auto ev = device_ev(controller(context), context.engine.evs(),
                              static_cast<fabric::EvFormatMode>(raw(request.ev_fmt_mode)),
                              ev_from(request.req_ev));
    if (!ev) return ev.error().code;
    const bool probe = batch.op == MRC_CTL_EP_OP_EV_PROBE;
    const bool control = !probe || batch.traffic_class == 46;
    out.push_back(
        {.id = request.req_id,
         .op = probe ? wire::EndpointOp::kEvProbe : wire::EndpointOp::kPortStatusUpdate,
         .to = peer->ports[port - 1],
         .port = static_cast<world::PortIndex>(port - 1),
         .ev = ev->value,
         .port_status = probe ? 0 : request.op.port_status_update.port_status,
         .traffic = control ? transport::AskClass::kControl : transport::AskClass::kData});
  }
  return 0;
}

// Posts all requests or none.
int post(DeviceEngine& engine, const std::vector<transport::EndpointAsk>& asks) {
  return engine.with_lock([&](DeviceEngine::Parts& parts) {
    // The program may just have enabled the port, and the endpoint must know that before it sends.
    parts.agent.service(parts.now, parts.endpoint);
    for (const transport::EndpointAsk& ask : asks) {
      if (parts.endpoint.post_endpoint_request(parts.now, ask)) continue;
      parts.endpoint.cancel_endpoint_requests();
      return EAGAIN;
    }
    return 0;
  });
}

}  // namespace

extern "C" {

mrc_cq* mrc_ctl_create_ev_event_cq(mrc_context* context, int cqe, void* program,
                                   mrc_comp_channel* channel, int vector) noexcept {
  return guarded_pointer<mrc_cq>([&]() -> mrc_cq* {
    if (context == nullptr || cqe < 1 || cqe > static_cast<int>(kEventsMin))
      return fail_null(EINVAL);
    ControllerState& state = controller(*context);
    if (const auto may = state.check_permission(); !may) return fail_null(code_of(may.error()));
    auto directory = state.events_directory(ControllerState::Make::kYes);
    if (!directory) return fail_null(EIO);
    auto queue = EvEventQueue::open(std::move(directory).value());
    if (!queue) return fail_null(errno_of(queue.error().kind));
    mrc_cq* const cq = mrc_create_cq(context, cqe, program, channel, vector);
    if (cq == nullptr) return nullptr;
    auto events =
        EvEventCq::create(std::move(queue).value(), channel == nullptr ? nullptr : &cq->queue);
    // A new generation makes processes with QPs look for new event listeners.
    const int told = events ? code_of(state.touch()) : EMFILE;
    if (told != 0) {
      mrc_destroy_cq(cq);
      return fail_null(told);
    }
    cq->events = std::move(events).value();
    return cq;
  });
}

int mrc_ctl_poll_ev_event(mrc_cq* cq, int count, mrc_ctl_ev_event* out) noexcept {
  const int error = guarded([&] {
    return cq == nullptr || cq->events == nullptr || count < 0 || (count > 0 && out == nullptr)
               ? EINVAL
               : 0;
  });
  if (error != 0) return -fail_value(error);
  // This process may have QPs itself, and perhaps no thread drives them now: without this call
  // their events would not arrive.
  cq->context.engine.poll();
  const bool with_state = cq->context.api_version >= MRC_API_VER(1, 0, 1);
  const std::size_t stride = with_state ? sizeof(mrc_ctl_ev_event) : kOldEventBytes;
  auto* to = reinterpret_cast<std::byte*>(out);
  std::array<EvEvent, 32> events;
  int total = 0;
  while (total < count) {
    const auto wanted =
        std::min<std::size_t>(events.size(), static_cast<std::size_t>(count - total));
    const std::size_t got = cq->events->poll(std::span(events).first(wanted));
    for (std::size_t i = 0; i < got; ++i, to += stride) give(events[i], with_state, to);
    total += static_cast<int>(got);
    if (got < wanted) break;
  }
  return total;
}

int mrc_ctl_ep_batch_send_wait(mrc_context* context, std::uint8_t traffic_class,
                               mrc_ctl_ep_op_type op, mrc_ctl_ep_req* requests, int count,
                               std::uint32_t timeout_ns, mrc_ctl_ep_rsp* answers,
                               int* answer_count) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || requests == nullptr || answers == nullptr ||
        answer_count == nullptr || count < 1 || count > static_cast<int>(DeviceEngine::kAsksMax) ||
        traffic_class > 63) {
      return EINVAL;
    }
    *answer_count = 0;
    if (raw(op) > MRC_CTL_EP_OP_PORT_STATUS_UPDATE) return ENOTSUP;
    if (const auto may = controller(*context).check_permission(); !may) return code_of(may.error());
    const Batch batch{.traffic_class = traffic_class,
                      .op = raw(op),
                      .requests = {requests, static_cast<std::size_t>(count)}};
    std::vector<transport::EndpointAsk> asks;
    if (const int bad = asks_of(*context, batch, asks)) return bad;
    DeviceEngine& engine = context->engine;
    const std::unique_lock one(engine.asks_lock(), std::try_to_lock);
    if (!one.owns_lock()) return EAGAIN;  // another thread's batch is in progress
    if (const int bad = post(engine, asks)) return bad;
    const Time limit = os::clock_now() + Duration::ns(timeout_ns);
    std::array<transport::EndpointAnswer, 64> got;
    for (;;) {
      engine.poll();
      const std::size_t n = engine.with_lock(
          [&](DeviceEngine::Parts& parts) { return parts.endpoint.poll_endpoint_answers(got); });
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t rtt = std::clamp<std::int64_t>(got[i].rtt.ns(), 0, 0xffff'ffff);
        answers[(*answer_count)++] = {.req_id = got[i].id,
                                      .port = static_cast<std::uint8_t>(got[i].port + 1),
                                      .rtt = static_cast<unsigned>(rtt),
                                      .adj_svc_time = 0};
      }
      if (*answer_count == count) return 0;
      if (os::clock_now() >= limit) break;
      if (n == 0) {
        const timespec moment{.tv_sec = 0, .tv_nsec = 20'000};
        nanosleep(&moment, nullptr);
      }
    }
    engine.with_lock([](DeviceEngine::Parts& parts) {
      parts.endpoint.cancel_endpoint_requests();
      return 0;
    });
    return ETIMEDOUT;
  });
  return returned(error, fail_minus_one);
}

}  // extern "C"
