// Posting: which requests each QP state accepts, and which request *bad_wr names.
#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

struct Poster {
  Host host;
  End end;
  explicit Poster(Session& session, const EndOptions& options = {})
      : host(session), end(host, options) {}
  ibv_send_wr write(ibv_sge* sges, int count) const {
    const Address self = end.address();
    ibv_send_wr wr{};
    wr.sg_list = sges;
    wr.num_sge = count;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = self.at;
    wr.wr.rdma.rkey = self.rkey;
    return wr;
  }
};

void send_in(Session& session, ibv_qp_state state) {
  Poster poster(session);
  if (state != IBV_QPS_RESET) works("to INIT", poster.end.to_init());
  if (state == IBV_QPS_RTR) works("to RTR", poster.end.to_rtr(poster.end.address()));
  fails_value("mrc_post_send", poster.end.post(poster.end.address(), {.size = 8}), {EINVAL});
}

void receive_in_reset(Session& session) {
  Poster poster(session);
  ibv_recv_wr wr{}, *bad = nullptr;
  const int got = poster.end.library.mrc_post_recv(poster.end.qp, &wr, &bad);
  holds(got != 0, "mrc_post_recv in RESET is refused", "it worked");
  equal("*bad_wr", static_cast<const void*>(bad), static_cast<const void*>(&wr));
}

void receive_in_init(Session& session) {
  Poster poster(session);
  works("to INIT", poster.end.to_init());
  works("mrc_post_recv in INIT", poster.end.post_receive(1));
}

// Posts two requests; `spoil` makes the second invalid. The first must be carried out, and *bad_wr
// must name the second.
void second_is_bad(Session& session, void (*spoil)(ibv_send_wr&), Errnos errors) {
  Poster poster(session, {.pieces = 2, .inline_bytes = 32});
  End& end = poster.end;
  end.connect(end.address());
  ibv_sge sges[8]{};
  for (ibv_sge& sge : sges)
    sge = {.addr = reinterpret_cast<std::uintptr_t>(end.memory.data()),
           .length = 8,
           .lkey = end.mr->lkey};
  ibv_send_wr first = poster.write(sges, 1), second = poster.write(sges, 1), *bad = nullptr;
  first.wr_id = 1;
  first.send_flags = second.send_flags = IBV_SEND_SIGNALED;
  first.next = &second;
  spoil(second);
  fails_value("mrc_post_send", end.library.mrc_post_send(end.qp, &first, &bad), errors);
  equal("*bad_wr: the second request,", static_cast<const void*>(bad),
        static_cast<const void*>(&second));
  completed_as(end.wait_send(), IBV_WC_SUCCESS, 1);
  equal("state", static_cast<int>(end.state()), static_cast<int>(IBV_QPS_RTS));
}

// The peer acknowledges nothing, so the queue fills. Then posting must return ENOMEM, and *bad_wr
// must name the first request that did not fit.
void queue_full(Session& session) {
  Poster poster(session, {.depth = 8});
  End& end = poster.end;
  End silent(poster.host);
  works("to INIT", end.to_init());
  works("to RTR", end.to_rtr(silent.address()));
  works("to RTS", end.to_rts());
  int taken = 0, error = 0;
  while (taken < 100'000 && (error = end.post(silent.address(), {.size = 8})) == 0) ++taken;
  holds(taken >= 8, "8 requests at least, as asked for", text_of_value(taken));
  fails_value("one more", error, {ENOMEM, EAGAIN});
}

void receive_queue_full(Session& session) {
  Poster poster(session, {.depth = 8});
  works("to INIT", poster.end.to_init());
  int taken = 0;
  while (taken < 100'000 && poster.end.post_receive(1) == 0) ++taken;
  holds(taken >= 8, "8 receives at least, as asked for", text_of_value(taken));
  holds(taken < 100'000, "an end to it", "100000 were taken");
}

void one_operation(Session& session) {
  Poster poster(session, {.send_ops = IBV_QP_EX_WITH_RDMA_WRITE});
  poster.end.connect(poster.end.address());
  fails_value("a WRITE_WITH_IMM on a QP made for WRITE",
              poster.end.post(poster.end.address(), {.size = 8, .immediate = 1}),
              {EINVAL, EOPNOTSUPP, ENOTSUP});
}

void null_arguments(Session& session) {
  Poster poster(session);
  poster.end.connect(poster.end.address());
  ibv_send_wr* bad = nullptr;
  fails_value("mrc_post_send(NULL)", poster.end.library.mrc_post_send(nullptr, nullptr, &bad),
              {EINVAL});
}

constexpr Errnos kUnsupported = {EINVAL, EOPNOTSUPP, ENOTSUP};

constexpr Test kTests[] = {
    {.id = "api.post.send.reset",
     .clause = "mrc.h: mrc_post_send, as ibv_post_send",
     .what = "a send in RESET is EINVAL",
     .body = [](Session& s) { send_in(s, IBV_QPS_RESET); }},
    {.id = "api.post.send.init",
     .clause = "mrc.h: mrc_post_send, as ibv_post_send",
     .what = "a send in INIT is EINVAL",
     .body = [](Session& s) { send_in(s, IBV_QPS_INIT); }},
    {.id = "api.post.send.rtr",
     .clause = "mrc.h: mrc_post_send, as ibv_post_send",
     .what = "a send in RTR is EINVAL",
     .body = [](Session& s) { send_in(s, IBV_QPS_RTR); }},
    {.id = "api.post.recv.reset",
     .clause = "mrc.h: mrc_post_recv, as ibv_post_recv",
     .what = "a receive in RESET is refused, and *bad_wr names it",
     .body = receive_in_reset},
    {.id = "api.post.recv.init",
     .clause = "mrc.h: mrc_post_recv; IBA: from INIT on",
     .certainty = Certainty::kOurs,
     .what = "receives are accepted from INIT on",
     .body = receive_in_init},
    {.id = "api.post.op.send",
     .clause = "mrc.h: mrc_post_send: no other operation",
     .what = "a SEND is refused; earlier requests of the list are carried out",
     .body =
         [](Session& s) {
           second_is_bad(
               s, [](auto& wr) { wr.opcode = IBV_WR_SEND; }, kUnsupported);
         }},
    {.id = "api.post.op.read",
     .clause = "mrc.h: mrc_post_send: no other operation",
     .what = "an RDMA READ is refused",
     .body =
         [](Session& s) {
           second_is_bad(
               s, [](auto& wr) { wr.opcode = IBV_WR_RDMA_READ; }, kUnsupported);
         }},
    {.id = "api.post.op.atomic",
     .clause = "mrc.h: mrc_post_send: no other operation",
     .what = "an atomic operation is refused",
     .body =
         [](Session& s) {
           second_is_bad(
               s, [](auto& wr) { wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD; }, kUnsupported);
         }},
    {.id = "api.post.sge.too-many",
     .clause = "mrc.h: struct ibv_qp_cap, max_send_sge",
     .what = "more pieces than the QP permits are refused",
     .body =
         [](Session& s) {
           second_is_bad(s, [](auto& wr) { wr.num_sge = 8; }, {EINVAL, ENOMEM});
         }},
    {.id = "api.post.sge.negative",
     .clause = "mrc.h: mrc_post_send, as ibv_post_send",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a negative number of pieces is refused",
     .body =
         [](Session& s) {
           second_is_bad(s, [](auto& wr) { wr.num_sge = -1; }, {EINVAL, ENOMEM});
         }},
    {.id = "api.post.inline.too-long",
     .clause = "mrc.h: struct ibv_qp_cap, max_inline_data",
     .what = "more inline bytes than any QP permits are refused",
     .body =
         [](Session& s) {
           second_is_bad(s,
                         [](auto& wr) {
                           wr.send_flags |= IBV_SEND_INLINE;
                           wr.sg_list[1].length = 1 << 20;
                           wr.sg_list = &wr.sg_list[1];
                         },
                         {EINVAL, ENOMEM});
         }},
    {.id = "api.post.send.full",
     .clause = "mrc.h: mrc_post_send, as ibv_post_send: ENOMEM",
     .what = "a full send queue refuses the next request",
     .body = queue_full},
    {.id = "api.post.recv.full",
     .clause = "mrc.h: mrc_post_recv, as ibv_post_recv",
     .what = "a full receive queue refuses the next request",
     .body = receive_queue_full},
    {.id = "api.post.op.not-asked-for",
     .clause = "mrc.h: struct mrc_qp_init_attr, send_ops_flags",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "an operation that the QP was not created for is refused",
     .body = one_operation},
    {.id = "api.post.null",
     .clause = "mrc.h: [verbs]",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "NULL instead of an object is EINVAL, not a crash",
     .body = null_arguments},
};

}  // namespace

std::span<const Test> post_tests() { return kTests; }

}  // namespace weft::conformance
