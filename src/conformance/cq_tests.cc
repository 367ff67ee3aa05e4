// Completion channels and completion queues that no QP uses.
#include <fcntl.h>
#include <poll.h>

#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

struct Channel {
  const Library& library;
  mrc_comp_channel* channel = nullptr;
  int fd = -1;
  explicit Channel(Host& host) : library(host.library) {
    works("mrc_create_comp_channel", library.mrc_create_comp_channel(host.context, &channel));
    works("mrc_create_comp_channel's out", channel);
    works("mrc_get_comp_channel_fd", library.mrc_get_comp_channel_fd(channel, &fd));
  }
  ~Channel() { library.mrc_destroy_comp_channel.call_if_present(channel); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
};

void channel_fd(Session& session) {
  Host host(session);
  Channel channel(host);
  pollfd what{.fd = channel.fd, .events = POLLIN, .revents = 0};
  const int ready = poll(&what, 1, 0);
  equal("poll() of the channel's descriptor without events", ready, 0);
}

void channel_non_blocking(Session& session) {
  Host host(session);
  Channel channel(host);
  holds(fcntl(channel.fd, F_SETFL, fcntl(channel.fd, F_GETFL) | O_NONBLOCK) == 0,
        "O_NONBLOCK can be set", "fcntl failed");
  mrc_cq* cq = nullptr;
  void* context = nullptr;
  fails_minus_one("mrc_get_cq_event of a non-blocking channel without events",
                  host.library.mrc_get_cq_event(channel.channel, &cq, &context), {EAGAIN});
}

void channel_in_use_is_busy(Session& session) {
  Host host(session);
  Channel channel(host);
  mrc_cq* const cq = host.library.mrc_create_cq(host.context, 4, nullptr, channel.channel, 0);
  works("mrc_create_cq on a channel", cq);
  fails_value("mrc_destroy_comp_channel with a CQ",
              host.library.mrc_destroy_comp_channel(channel.channel), {EBUSY});
  works("mrc_destroy_cq", host.library.mrc_destroy_cq(cq));
}

void cq_of_this_size_works(Session& session) {
  Host host(session);
  for (const int entries : {1, 7, 1000}) {
    mrc_cq* const cq = host.library.mrc_create_cq(host.context, entries, nullptr, nullptr, 0);
    works(fmt::format("mrc_create_cq of {} entries", entries), cq);
    works("mrc_destroy_cq", host.library.mrc_destroy_cq(cq));
  }
}

void cq_is_refused(Session& session, int entries, int vector, const char* what) {
  Host host(session);
  fails_null(what, host.library.mrc_create_cq(host.context, entries, nullptr, nullptr, vector),
             {EINVAL, ENOMEM});
}

void poll_empty(Session& session) {
  Host host(session);
  mrc_cq* const cq = host.library.mrc_create_cq(host.context, 4, nullptr, nullptr, 0);
  works("mrc_create_cq", cq);
  ibv_wc wc[4];
  equal("mrc_poll_cq of an empty CQ", host.library.mrc_poll_cq(cq, 4, wc), 0);
  equal("mrc_poll_cq for no entries", host.library.mrc_poll_cq(cq, 0, wc), 0);
  host.library.mrc_destroy_cq(cq);
}

void poll_negative(Session& session) {
  Host host(session);
  mrc_cq* const cq = host.library.mrc_create_cq(host.context, 4, nullptr, nullptr, 0);
  works("mrc_create_cq", cq);
  ibv_wc wc[1];
  const int got = host.library.mrc_poll_cq(cq, -1, wc);
  holds(got <= 0, "no entries for a count of -1", text_of_value(got));
  host.library.mrc_destroy_cq(cq);
}

void cq_in_use_is_busy(Session& session) {
  Host host(session);
  End end(host);
  fails_value("mrc_destroy_cq with a QP on it", host.library.mrc_destroy_cq(end.send_cq), {EBUSY});
  works("the QP afterwards", end.to_init());
}

void null_arguments(Session& session) {
  Host host(session);
  const Library& library = host.library;
  mrc_comp_channel* channel = nullptr;
  ibv_wc wc{};
  int fd = 0;
  fails_null("mrc_create_cq(NULL)", library.mrc_create_cq(nullptr, 1, nullptr, nullptr, 0),
             {EINVAL});
  fails_minus_one("mrc_poll_cq(NULL)", library.mrc_poll_cq(nullptr, 1, &wc), {EINVAL});
  fails_value("mrc_destroy_cq(NULL)", library.mrc_destroy_cq(nullptr), {EINVAL});
  fails_value("mrc_create_comp_channel(NULL)", library.mrc_create_comp_channel(nullptr, &channel),
              {EINVAL});
  fails_minus_one("mrc_get_comp_channel_fd(NULL)", library.mrc_get_comp_channel_fd(nullptr, &fd),
                  {EINVAL});
}

constexpr Test kTests[] = {
    {.id = "api.channel.fd",
     .clause = "mrc.h: mrc_get_comp_channel_fd",
     .what = "the descriptor can be polled and is not readable without events",
     .body = channel_fd},
    {.id = "api.channel.non-blocking",
     .clause = "mrc.h: mrc_get_cq_event, as ibv_get_cq_event",
     .what = "a non-blocking channel without events gives -1 and EAGAIN",
     .body = channel_non_blocking},
    {.id = "api.channel.busy",
     .clause = "mrc.h: mrc_destroy_comp_channel",
     .what = "EBUSY while a CQ uses the channel",
     .body = channel_in_use_is_busy},
    {.id = "api.cq.sizes",
     .clause = "mrc.h: mrc_create_cq",
     .what = "CQs of 1, 7 and 1000 entries can be created and destroyed",
     .body = cq_of_this_size_works},
    {.id = "api.cq.no-entries",
     .clause = "mrc.h: mrc_create_cq, as ibv_create_cq",
     .what = "a CQ of no entries is refused",
     .body = [](Session& s) { cq_is_refused(s, 0, 0, "mrc_create_cq of 0 entries"); }},
    {.id = "api.cq.negative",
     .clause = "mrc.h: mrc_create_cq, as ibv_create_cq",
     .what = "a CQ of -1 entries is refused",
     .body = [](Session& s) { cq_is_refused(s, -1, 0, "mrc_create_cq of -1 entries"); }},
    {.id = "api.cq.vector",
     .clause = "mrc.h: mrc_create_cq, as ibv_create_cq",
     .what = "a completion vector that the device does not have is refused",
     .body = [](Session& s) { cq_is_refused(s, 4, 1 << 20, "mrc_create_cq on vector 2^20"); }},
    {.id = "api.cq.poll-empty",
     .clause = "mrc.h: mrc_poll_cq",
     .what = "an empty CQ gives 0",
     .body = poll_empty},
    {.id = "api.cq.poll-negative",
     .clause = "mrc.h: mrc_poll_cq",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a negative count gives no completions",
     .body = poll_negative},
    {.id = "api.cq.busy",
     .clause = "mrc.h: mrc_destroy_cq, as ibv_destroy_cq",
     .what = "EBUSY while a QP uses the CQ, and no completion is lost by the attempt",
     .body = cq_in_use_is_busy},
    {.id = "api.cq.null",
     .clause = "mrc.h: [-1], [NULL], [verbs]",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "NULL instead of an object is EINVAL, not a crash",
     .body = null_arguments},
};

}  // namespace

std::span<const Test> cq_tests() { return kTests; }

}  // namespace weft::conformance
