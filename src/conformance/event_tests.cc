// Events of CQs on their channel, and asynchronous events of a context.
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>

#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

// Two connected ends. The CQs of `b` use a completion channel, and `b` has posted receives.
struct Listening {
  Host host;
  const Library& library;
  mrc_comp_channel* channel = nullptr;
  int fd = -1;
  std::unique_ptr<End> a, b;
  explicit Listening(Session& session) : host(session), library(host.library) {
    works("mrc_create_comp_channel", library.mrc_create_comp_channel(host.context, &channel));
    works("mrc_get_comp_channel_fd", library.mrc_get_comp_channel_fd(channel, &fd));
    a = std::make_unique<End>(host);
    b = std::make_unique<End>(host, EndOptions{.channel = channel});
    const Address of_a = a->address(), of_b = b->address();
    a->connect(of_b);
    b->connect(of_a);
    for (std::uint64_t i = 0; i < 8; ++i) b->receive(i);
  }
  ~Listening() {
    a.reset();
    b.reset();
    library.mrc_destroy_comp_channel.call_if_present(channel);
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  void arm(int solicited_only) {
    works("mrc_req_notify_cq", library.mrc_req_notify_cq(b->receive_cq, solicited_only));
  }
  void send(unsigned flags = IBV_SEND_SIGNALED) {
    a->write(b->address(),
             {.size = 8, .id = 1, .flags = flags | IBV_SEND_SIGNALED, .immediate = 1});
    completed_as(a->wait_send(), IBV_WC_SUCCESS, 1);
  }
  // Waits until the channel is readable. Throws Failure at the test's time limit.
  void expect_event() {
    pollfd what{.fd = fd, .events = POLLIN, .revents = 0};
    while (poll(&what, 1, 10) != 1) {
      if (host.session.is_over()) fail("the channel becomes readable", "it does not");
    }
  }
  void expect_no_event() {
    pollfd what{.fd = fd, .events = POLLIN, .revents = 0};
    holds(poll(&what, 1, 20) == 0, "no event on the channel", "it is readable");
  }
  mrc_cq* take_event() {
    mrc_cq* cq = nullptr;
    void* context = nullptr;
    works("mrc_get_cq_event", library.mrc_get_cq_event(channel, &cq, &context));
    equal("cq_context", static_cast<const void*>(context), static_cast<const void*>(b.get()));
    return cq;
  }
};

void one_event_per_arming(Session& session) {
  Listening in(session);
  in.arm(0);
  in.send();
  in.expect_event();
  mrc_cq* const cq = in.take_event();
  equal("the CQ", static_cast<const void*>(cq), static_cast<const void*>(in.b->receive_cq));
  in.library.mrc_ack_cq_events(cq, 1);
  in.b->wait_receive();
  in.send();
  in.b->wait_receive();
  in.expect_no_event();
}

void solicited(Session& session) {
  Listening in(session);
  in.arm(1);
  in.send();
  in.b->wait_receive();
  in.expect_no_event();
  in.send(IBV_SEND_SOLICITED);
  in.expect_event();
  in.library.mrc_ack_cq_events(in.take_event(), 1);
}

void error_is_solicited(Session& session) {
  Listening in(session);
  in.arm(1);
  works("to ERR", in.b->to(IBV_QPS_ERR));
  in.expect_event();
  in.library.mrc_ack_cq_events(in.take_event(), 1);
}

void destroy_waits_for_acknowledgement(Session& session) {
  Listening in(session);
  in.arm(0);
  in.send();
  in.expect_event();
  mrc_cq* const cq = in.take_event();
  works("mrc_destroy_qp", in.library.mrc_destroy_qp(in.b->qp));
  in.b->qp = nullptr;
  std::atomic<bool> acknowledged{false};
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    acknowledged = true;
    in.library.mrc_ack_cq_events(cq, 1);
  });
  const int destroyed = in.library.mrc_destroy_cq(cq);
  const bool waited = acknowledged;
  other.join();
  works("mrc_destroy_cq", destroyed);
  in.b->receive_cq = nullptr;
  holds(waited, "mrc_destroy_cq returns after the event is acknowledged", "before");
}

// The next asynchronous event. Throws Failure at the test's time limit.
mrc_async_event next_event(Session& session, Host& host) {
  fcntl(host.verbs->async_fd, F_SETFL, fcntl(host.verbs->async_fd, F_GETFL) | O_NONBLOCK);
  mrc_async_event event{};
  while (host.library.mrc_get_async_event(host.context, &event) != 0) {
    if (session.is_over()) fail("an asynchronous event", "none came");
    std::this_thread::sleep_for(milliseconds(1));
  }
  return event;
}

void refused_write_gives_event(Session& session) {
  Pair pair(session);
  Address wrong = pair.b.address();
  wrong.rkey ^= 0x100;
  pair.a.write(wrong, {.size = 8, .id = 1});
  completed_as(pair.a.wait_send(), IBV_WC_REM_ACCESS_ERR, 1);
  for (int i = 0; i < 2; ++i) {
    mrc_async_event event = next_event(session, pair.host);
    const bool is_responder = event.element.qp == pair.b.qp;
    const ibv_event_type type = event.event_type;
    pair.host.library.mrc_ack_async_event(&event);
    if (!is_responder) continue;
    equal("IBV_EVENT_QP_ACCESS_ERR", static_cast<int>(type),
          static_cast<int>(IBV_EVENT_QP_ACCESS_ERR));
    return;
  }
  fail("an event about the responder's QP", "two about another");
}

void no_event_gives_eagain(Session& session) {
  Host host(session);
  fcntl(host.verbs->async_fd, F_SETFL, fcntl(host.verbs->async_fd, F_GETFL) | O_NONBLOCK);
  mrc_async_event event{};
  const int got = host.library.mrc_get_async_event(host.context, &event);
  const int error = errno;
  holds(got != 0 && error == EAGAIN, "a failure with EAGAIN on a non-blocking descriptor",
        fmt::format("{}, errno {}", got, errno_name(error)));
}

void overrun_is_reported(Session& session) {
  Host host(session);
  End a(host, {.depth = 64, .cq_entries = 4}), b(host);
  const Address of_a = a.address(), of_b = b.address();
  a.connect(of_b);
  b.connect(of_a);
  for (std::uint64_t i = 0; i < 64; ++i) {
    if (a.post(of_b, {.size = 8, .id = i}) != 0) break;
  }
  const auto until = Clock::now() + milliseconds(1500);
  fcntl(host.verbs->async_fd, F_SETFL, fcntl(host.verbs->async_fd, F_GETFL) | O_NONBLOCK);
  mrc_async_event event{};
  while (host.library.mrc_get_async_event(host.context, &event) != 0) {
    if (Clock::now() > until) skip("the CQ has more entries than 4, and took all of them");
    std::this_thread::sleep_for(milliseconds(1));
  }
  equal("IBV_EVENT_CQ_ERR", static_cast<int>(event.event_type), static_cast<int>(IBV_EVENT_CQ_ERR));
  host.library.mrc_ack_async_event(&event);
}

constexpr Test kTests[] = {
    {.id = "api.event.cq",
     .clause = "mrc.h: mrc_req_notify_cq, mrc_get_cq_event",
     .what = "an armed CQ reports the next completion on its channel, once",
     .body = one_event_per_arming},
    {.id = "api.event.solicited",
     .clause = "mrc.h: mrc_req_notify_cq, solicited_only",
     .what = "a CQ armed for solicited events reports only a solicited immediate",
     .body = solicited},
    {.id = "api.event.error-solicited",
     .clause = "ibv_req_notify_cq: errors count as solicited",
     .what = "a CQ armed for solicited events also reports a failed completion",
     .body = error_is_solicited},
    {.id = "api.event.destroy-waits",
     .clause = "mrc.h: mrc_destroy_cq",
     .what = "destroying a CQ waits until its events are acknowledged",
     .body = destroy_waits_for_acknowledgement},
    {.id = "api.async.access",
     .clause = "mrc.h: mrc_get_async_event",
     .what = "the responder of a refused write gets IBV_EVENT_QP_ACCESS_ERR",
     .body = refused_write_gives_event},
    {.id = "api.async.none",
     .clause = "mrc.h: mrc_get_async_event, as ibv_get_async_event",
     .what = "a non-blocking context without events gives EAGAIN",
     .body = no_event_gives_eagain},
    {.id = "api.async.cq-overrun",
     .clause = "ibv_create_cq: IBV_EVENT_CQ_ERR",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "an overrun CQ is reported as IBV_EVENT_CQ_ERR",
     .body = overrun_is_reported},
};

}  // namespace

std::span<const Test> event_tests() { return kTests; }

}  // namespace weft::conformance
