// Endpoint operations and EV events of mrc_ctl.h.
#include "conformance/controller.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

// Sends endpoint requests to the device's own address. The device must answer them like requests
// from another host.
struct Asking {
  Controller controller;
  std::vector<mrc_ctl_ep_req> requests;
  std::vector<mrc_ctl_ep_rsp> answers;
  int count = -1;
  Asking(Session& session, std::uint16_t n) : controller(session) {
    if ((controller.device.opt_attr & MRC_CTL_OPT_CAP_EP_OP_EV_PROBE) == 0)
      skip("the device sends no EV probes");
    for (std::uint16_t i = 0; i < n; ++i) {
      mrc_ctl_ep_req request{};
      request.req_id = static_cast<std::uint16_t>(100 + i);
      request.sgid = request.dgid = controller.host.gid;
      request.ev_fmt_mode = controller.mode();
      request.req_ev = controller.ev(i);
      requests.push_back(request);
    }
    answers.resize(n);
  }
  int send_probes(std::uint32_t timeout_ns, mrc_ctl_ep_op_type op = MRC_CTL_EP_OP_EV_PROBE) {
    const int got = controller.library.mrc_ctl_ep_batch_send_wait(
        controller.host.context, controller.host.session.options().dscp_control, op,
        requests.data(), static_cast<int>(requests.size()), timeout_ns, answers.data(), &count);
    if (got == -1 && errno == EPERM) skip("endpoint operations need CAP_NET_ADMIN");
    return got;
  }
};

void probes_are_answered(Session& session) {
  Asking asking(session, 4);
  works("mrc_ctl_ep_batch_send_wait of 4 probes", asking.send_probes(4'000'000'000u));
  equal("answers", asking.count, 4);
  std::uint32_t seen = 0;
  for (const mrc_ctl_ep_rsp& answer : asking.answers) {
    holds(answer.req_id >= 100 && answer.req_id < 104, "an id that was asked with",
          text_of_value(answer.req_id));
    seen |= 1u << (answer.req_id - 100);
    holds(answer.rtt > 0 && answer.rtt < 4'000'000'000u, "an RTT above 0 and below the timeout",
          text_of_value(answer.rtt));
    holds(answer.port >= 1, "a port from 1 on", text_of_value(answer.port));
  }
  equal_hex("each id once, as bits:", seen, 0xf);
}

void missing_answers_time_out(Session& session) {
  Asking asking(session, 2);
  asking.requests[1].dgid.raw[15] = 251;
  fails_minus_one("a batch of which one is not answered", asking.send_probes(200'000'000),
                  {ETIMEDOUT});
}

void early_answers_are_returned(Session& session) {
  Asking asking(session, 2);
  asking.requests[1].dgid.raw[15] = 251;
  asking.send_probes(200'000'000);
  equal("answers that did come", asking.count, 1);
  equal("its request id", asking.answers[0].req_id, 100);
}

void duplicate_id_is_refused(Session& session) {
  Asking asking(session, 2);
  asking.requests[1].req_id = asking.requests[0].req_id;
  fails_minus_one("one id for two requests", asking.send_probes(1'000'000), {EINVAL});
}

void unknown_port_is_refused(Session& session) {
  Asking asking(session, 1);
  asking.requests[0].req_ev.port = 200;
  fails_minus_one("a port that is not there", asking.send_probes(1'000'000), {EINVAL});
}

void empty_batch_is_refused(Session& session) {
  Asking asking(session, 1);
  asking.requests.clear();
  fails_minus_one("no requests", asking.send_probes(1'000'000), {EINVAL});
}

void unknown_operation_is_refused(Session& session) {
  Asking asking(session, 1);
  const int another = 7;
  mrc_ctl_ep_op_type op{};
  std::memcpy(&op, &another, sizeof(op));
  fails_minus_one("an operation that is not there", asking.send_probes(1'000'000, op),
                  {ENOTSUP, EOPNOTSUPP, EINVAL});
}

void event_cq_works(Session& session) {
  Controller controller(session);
  if ((controller.device.opt_attr & MRC_CTL_OPT_CAP_EV_EVENT) == 0)
    skip("the device reports no EV events");
  mrc_cq* const cq = controller.library.mrc_ctl_create_ev_event_cq(controller.host.context, 16,
                                                                   nullptr, nullptr, 0);
  if (cq == nullptr && errno == EPERM) skip("the caller may not have EV events");
  works("mrc_ctl_create_ev_event_cq", cq);
  mrc_ctl_ev_event events[4]{};
  equal("mrc_ctl_poll_ev_event without events",
        controller.library.mrc_ctl_poll_ev_event(cq, 4, events), 0);
  works("mrc_destroy_cq", controller.library.mrc_destroy_cq(cq));
}

void wrong_cq_kind_is_refused(Session& session) {
  Controller controller(session);
  mrc_cq* const cq =
      controller.library.mrc_create_cq(controller.host.context, 4, nullptr, nullptr, 0);
  works("mrc_create_cq", cq);
  mrc_ctl_ev_event event{};
  const int got = controller.library.mrc_ctl_poll_ev_event(cq, 1, &event);
  controller.library.mrc_destroy_cq(cq);
  equal("mrc_ctl_poll_ev_event of a CQ of another kind: -EINVAL,", got, -EINVAL);
}

void event_cq_refused(Session& session) {
  Controller controller(session);
  if ((controller.device.opt_attr & MRC_CTL_OPT_CAP_EV_EVENT) == 0)
    skip("the device reports no EV events");
  fails_null("mrc_ctl_create_ev_event_cq of no entries",
             controller.library.mrc_ctl_create_ev_event_cq(controller.host.context, 0, nullptr,
                                                           nullptr, 0),
             {EINVAL});
}

#define WEFT_CLAUSE "mrc_ctl.h: mrc_ctl_ep_batch_send_wait"
constexpr Test kTests[] = {
    {.id = "api.ctl.ep.probe",
     .clause = WEFT_CLAUSE,
     .what = "four EV probes are answered, each id once, with an RTT and a port",
     .body = probes_are_answered},
    {.id = "api.ctl.ep.timeout",
     .clause = WEFT_CLAUSE ", ETIMEDOUT",
     .what = "missing answers give ETIMEDOUT",
     .body = missing_answers_time_out},
    {.id = "api.ctl.ep.partial",
     .clause = WEFT_CLAUSE,
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "answers that arrived before the timeout are returned",
     .body = early_answers_are_returned},
    {.id = "api.ctl.ep.same-id",
     .clause = "mrc_ctl.h: struct mrc_ctl_ep_req, req_id",
     .what = "a request id that occurs twice in a batch is EINVAL",
     .body = duplicate_id_is_refused},
    {.id = "api.ctl.ep.port",
     .clause = WEFT_CLAUSE ", EINVAL",
     .what = "a port that the device does not have is EINVAL",
     .body = unknown_port_is_refused},
    {.id = "api.ctl.ep.none",
     .clause = WEFT_CLAUSE ", EINVAL",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "an empty batch is EINVAL",
     .body = empty_batch_is_refused},
    {.id = "api.ctl.ep.operation",
     .clause = WEFT_CLAUSE ", ENOTSUP",
     .what = "an operation that does not exist is refused",
     .body = unknown_operation_is_refused},
    {.id = "api.ctl.event.cq",
     .clause = "mrc_ctl.h: mrc_ctl_create_ev_event_cq",
     .what = "a CQ of EV events can be created, is empty, and is destroyed like any CQ",
     .body = event_cq_works},
    {.id = "api.ctl.event.kind",
     .clause = "mrc_ctl.h: mrc_ctl_poll_ev_event",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "polling a completion CQ for EV events returns a negated errno value",
     .body = wrong_cq_kind_is_refused},
    {.id = "api.ctl.event.size",
     .clause = "mrc_ctl.h: mrc_ctl_create_ev_event_cq",
     .what = "a CQ of EV events with no entries is refused",
     .body = event_cq_refused},
};

}  // namespace

std::span<const Test> ctl_endpoint_tests() { return kTests; }

}  // namespace weft::conformance
