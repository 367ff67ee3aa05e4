// QP hints, in which an application describes the traffic to expect.
#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

struct Hint {
  Host host;
  const Library& library;
  mrc_qp_hint* hint = nullptr;
  explicit Hint(Session& session) : host(session), library(host.library) {
    mrc_qp_hint_init_attr init{};
    init.attr.num_qps_per_peer = 2;
    init.attr.num_send_peers = 3;
    init.attr.num_remote_recv_peers = 4;
    hint = library.mrc_create_qp_hint(host.context, &init);
    works("mrc_create_qp_hint", hint);
  }
  ~Hint() { library.mrc_destroy_qp_hint.call_if_present(hint); }
  Hint(const Hint&) = delete;
  Hint& operator=(const Hint&) = delete;
  static constexpr int kAll =
      MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS | MRC_QP_HINT_NUM_REMOTE_RECV_PEERS;
  mrc_qp_hint_attr query(int mask = kAll) const {
    mrc_qp_hint_attr attr{};
    works("mrc_query_qp_hint", library.mrc_query_qp_hint(hint, &attr, mask));
    return attr;
  }
};

void query_returns_attributes(Session& session) {
  Hint hint(session);
  const mrc_qp_hint_attr attr = hint.query();
  equal("num_qps_per_peer", attr.num_qps_per_peer, 2);
  equal("num_send_peers", attr.num_send_peers, 3);
  equal("num_remote_recv_peers", attr.num_remote_recv_peers, 4);
}

void modify_changes_one(Session& session) {
  Hint hint(session);
  mrc_qp_hint_attr attr{};
  attr.num_send_peers = 77;
  attr.num_qps_per_peer = 88;
  works("mrc_modify_qp_hint",
        hint.library.mrc_modify_qp_hint(hint.hint, &attr, MRC_QP_HINT_NUM_SEND_PEERS));
  const mrc_qp_hint_attr now = hint.query();
  equal("num_send_peers, which the mask named,", now.num_send_peers, 77);
  equal("num_qps_per_peer, which it did not,", now.num_qps_per_peer, 2);
}

void unknown_bit_is_refused(Session& session) {
  Hint hint(session);
  mrc_qp_hint_attr attr{};
  fails_minus_one("mrc_modify_qp_hint with an unknown mask bit",
                  hint.library.mrc_modify_qp_hint(hint.hint, &attr, 1 << 12), {EINVAL});
  fails_minus_one("mrc_query_qp_hint with an unknown mask bit",
                  hint.library.mrc_query_qp_hint(hint.hint, &attr, 1 << 12), {EINVAL});
}

// Runs `check` on a QP in INIT that was given a hint at its transition to INIT.
void with_qp(Session& session, void (*check)(Hint&, End&)) {
  Hint hint(session);
  {
    End end(hint.host);
    mrc_qp_attr attr{};
    attr.qp_hint = hint.hint;
    works("mrc_modify_qp to INIT with a hint", end.to_init(kRemoteWrite, &attr, MRC_QP_HINT));
    check(hint, end);
  }
}

void hint_in_use_is_busy(Hint& hint, End&) {
  fails_minus_one("mrc_destroy_qp_hint while a QP names it",
                  hint.library.mrc_destroy_qp_hint(hint.hint), {EBUSY});
}

void query_of_qp_returns_hint(Hint& hint, End& end) {
  mrc_qp_attr now{};
  works("mrc_query_qp", end.library.mrc_query_qp(end.qp, nullptr, 0, &now, MRC_QP_HINT, nullptr));
  equal("qp_hint", static_cast<const void*>(now.qp_hint), static_cast<const void*>(hint.hint));
}

void released_hint_is_destroyed(Session& session) {
  Hint hint(session);
  {
    End end(hint.host);
    mrc_qp_attr attr{};
    attr.qp_hint = hint.hint;
    works("mrc_modify_qp to INIT with a hint", end.to_init(kRemoteWrite, &attr, MRC_QP_HINT));
  }
  works("mrc_destroy_qp_hint after the QP is gone", hint.library.mrc_destroy_qp_hint(hint.hint));
  mrc_qp_hint_init_attr init{};
  hint.hint = hint.library.mrc_create_qp_hint(hint.host.context, &init);
  works("another", hint.hint);
}

void null_means_no_hint(Session& session) {
  Host host(session);
  End end(host);
  mrc_qp_attr attr{};
  works("mrc_modify_qp to INIT with qp_hint NULL", end.to_init(kRemoteWrite, &attr, MRC_QP_HINT));
}

constexpr Test kTests[] = {
    {.id = "api.hint.query",
     .clause = "mrc.h: mrc_query_qp_hint",
     .what = "returns the attributes with which the hint was created",
     .body = query_returns_attributes},
    {.id = "api.hint.modify",
     .clause = "mrc.h: mrc_modify_qp_hint",
     .what = "changes the attributes in the mask and no others",
     .body = modify_changes_one},
    {.id = "api.hint.unknown-mask",
     .clause = "mrc.h: mrc_modify_qp_hint, mrc_query_qp_hint",
     .what = "a mask bit that the header does not define is EINVAL",
     .body = unknown_bit_is_refused},
    {.id = "api.hint.busy",
     .clause = "mrc.h: mrc_destroy_qp_hint",
     .what = "EBUSY while a QP uses the hint",
     .body = [](Session& s) { with_qp(s, hint_in_use_is_busy); }},
    {.id = "api.hint.query-qp",
     .clause = "mrc.h: mrc_query_qp, MRC_QP_HINT",
     .what = "a query of a QP returns its hint",
     .body = [](Session& s) { with_qp(s, query_of_qp_returns_hint); }},
    {.id = "api.hint.released",
     .clause = "mrc.h: mrc_destroy_qp_hint",
     .what = "a hint can be destroyed after its QP is destroyed",
     .body = released_hint_is_destroyed},
    {.id = "api.hint.none",
     .clause = "mrc.h: struct mrc_qp_attr, qp_hint",
     .what = "NULL means no hint and is accepted",
     .body = null_means_no_hint},
};

}  // namespace

std::span<const Test> hint_tests() { return kTests; }

}  // namespace weft::conformance
