// State transitions of a QP: RESET, INIT, RTR, RTS; and from every state to ERR and to RESET.
#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

// An end in the given state. It is its own peer.
struct InState {
  Host host;
  End end;
  InState(Session& session, ibv_qp_state state) : host(session), end(host) {
    if (state == IBV_QPS_RESET) return;
    if (state == IBV_QPS_ERR) {
      works("mrc_modify_qp to ERR", end.to(IBV_QPS_ERR));
      return;
    }
    works("mrc_modify_qp to INIT", end.to_init());
    if (state == IBV_QPS_INIT) return;
    works("mrc_modify_qp to RTR", end.to_rtr(end.address()));
    if (state == IBV_QPS_RTR) return;
    works("mrc_modify_qp to RTS", end.to_rts());
  }
};

int move_to(End& end, ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_INIT:
      return end.to_init();
    case IBV_QPS_RTR:
      return end.to_rtr(end.address());
    case IBV_QPS_RTS:
      return end.to_rts();
    default:
      return end.to(to);
  }
}

template <ibv_qp_state kFrom, ibv_qp_state kTo>
void allowed(Session& session) {
  InState in(session, kFrom);
  works("the transition", move_to(in.end, kTo));
  equal("state", static_cast<int>(in.end.state()), static_cast<int>(kTo));
}

template <ibv_qp_state kFrom, ibv_qp_state kTo>
void refused(Session& session) {
  InState in(session, kFrom);
  fails_value("the transition", move_to(in.end, kTo), {EINVAL});
  equal("state afterwards", static_cast<int>(in.end.state()), static_cast<int>(kFrom));
}

void cur_state_wrong(Session& session) {
  InState in(session, IBV_QPS_RESET);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.cur_qp_state = IBV_QPS_RTS;
  fails_value(
      "mrc_modify_qp with a wrong CUR_STATE",
      in.end.library.mrc_modify_qp(
          in.end.qp, &attr,
          IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, nullptr, 0),
      {EINVAL});
  equal("state afterwards", static_cast<int>(in.end.state()), static_cast<int>(IBV_QPS_RESET));
}

void cur_state_right(Session& session) {
  InState in(session, IBV_QPS_RESET);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.cur_qp_state = IBV_QPS_RESET;
  works("mrc_modify_qp with the right CUR_STATE",
        in.end.library.mrc_modify_qp(
            in.end.qp, &attr,
            IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, nullptr, 0));
}

// A transition to RTR must fail if an attribute without a default is missing.
void missing_attribute(Session& session, int without) {
  InState in(session, IBV_QPS_INIT);
  const Address self = in.end.address();
  mrclib::QpChange change = mrclib::to_rtr({.gid = self.gid,
                                            .qpn = self.qpn,
                                            .mtu = IBV_MTU_1024,
                                            .gid_index = session.options().gid_index});
  fails_value(
      "mrc_modify_qp to RTR without it",
      in.end.library.mrc_modify_qp(in.end.qp, &change.attr, change.mask & ~without, nullptr, 0),
      {EINVAL});
  equal("state afterwards", static_cast<int>(in.end.state()), static_cast<int>(IBV_QPS_INIT));
}

void not_global(Session& session) {
  InState in(session, IBV_QPS_INIT);
  mrclib::QpChange change = mrclib::to_rtr({.qpn = in.end.qpn(), .mtu = IBV_MTU_1024});
  change.attr.ah_attr.is_global = 0;
  fails_value("mrc_modify_qp to RTR with is_global 0",
              in.end.library.mrc_modify_qp(in.end.qp, &change.attr, change.mask, nullptr, 0),
              {EINVAL});
}

void reserved_peer(Session& session) {
  InState in(session, IBV_QPS_INIT);
  Address reserved = in.end.address();
  reserved.qpn = 2;
  fails_value("mrc_modify_qp to RTR with peer QPN 2", in.end.to_rtr(reserved), {EINVAL});
}

void mtu_too_large(Session& session) {
  InState in(session, IBV_QPS_INIT);
  const auto beyond = static_cast<ibv_mtu>(6);
  fails_value("mrc_modify_qp to RTR with path_mtu 6", in.end.to_rtr(in.end.address(), beyond),
              {EINVAL});
}

// After RESET a QP must work like a new one.
void reset_and_reuse(Session& session) {
  Pair pair(session);
  const std::uint32_t qpn = pair.a.qpn();
  for (int round = 0; round < 3; ++round) {
    pair.a.write(pair.b.address(), {.size = 100, .id = 1});
    completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 1);
    works("to RESET", pair.a.to(IBV_QPS_RESET));
    works("to RESET", pair.b.to(IBV_QPS_RESET));
    equal_hex("the QP's number after RESET", pair.a.qpn(), qpn);
    pair.a.options.psn = 1000u * static_cast<std::uint32_t>(round);
    const Address of_a = pair.a.address(), of_b = pair.b.address();
    pair.a.connect(of_b);
    pair.b.connect(of_a);
  }
}

#define WEFT_CLAUSE "mrc.h: mrc_modify_qp, as ibv_modify_qp"
constexpr Test kTests[] = {
    {.id = "api.qp.reset-init",
     .clause = WEFT_CLAUSE,
     .what = "RESET to INIT, MRC mask 0",
     .body = allowed<IBV_QPS_RESET, IBV_QPS_INIT>},
    {.id = "api.qp.init-rtr",
     .clause = WEFT_CLAUSE,
     .what = "INIT to RTR, MRC mask 0",
     .body = allowed<IBV_QPS_INIT, IBV_QPS_RTR>},
    {.id = "api.qp.rtr-rts",
     .clause = WEFT_CLAUSE,
     .what = "RTR to RTS, MRC mask 0",
     .body = allowed<IBV_QPS_RTR, IBV_QPS_RTS>},
    {.id = "api.qp.reset-err",
     .clause = WEFT_CLAUSE,
     .what = "RESET to ERR",
     .body = allowed<IBV_QPS_RESET, IBV_QPS_ERR>},
    {.id = "api.qp.init-err",
     .clause = WEFT_CLAUSE,
     .what = "INIT to ERR",
     .body = allowed<IBV_QPS_INIT, IBV_QPS_ERR>},
    {.id = "api.qp.rtr-err",
     .clause = WEFT_CLAUSE,
     .what = "RTR to ERR",
     .body = allowed<IBV_QPS_RTR, IBV_QPS_ERR>},
    {.id = "api.qp.rts-err",
     .clause = WEFT_CLAUSE,
     .what = "RTS to ERR",
     .body = allowed<IBV_QPS_RTS, IBV_QPS_ERR>},
    {.id = "api.qp.init-reset",
     .clause = WEFT_CLAUSE,
     .what = "INIT to RESET",
     .body = allowed<IBV_QPS_INIT, IBV_QPS_RESET>},
    {.id = "api.qp.rtr-reset",
     .clause = WEFT_CLAUSE,
     .what = "RTR to RESET",
     .body = allowed<IBV_QPS_RTR, IBV_QPS_RESET>},
    {.id = "api.qp.rts-reset",
     .clause = WEFT_CLAUSE,
     .what = "RTS to RESET",
     .body = allowed<IBV_QPS_RTS, IBV_QPS_RESET>},
    {.id = "api.qp.err-reset",
     .clause = WEFT_CLAUSE,
     .what = "ERR to RESET",
     .body = allowed<IBV_QPS_ERR, IBV_QPS_RESET>},
    {.id = "api.qp.no-reset-rtr",
     .clause = WEFT_CLAUSE,
     .what = "the transition from RESET to RTR is refused",
     .body = refused<IBV_QPS_RESET, IBV_QPS_RTR>},
    {.id = "api.qp.no-reset-rts",
     .clause = WEFT_CLAUSE,
     .what = "the transition from RESET to RTS is refused",
     .body = refused<IBV_QPS_RESET, IBV_QPS_RTS>},
    {.id = "api.qp.no-init-rts",
     .clause = WEFT_CLAUSE,
     .what = "the transition from INIT to RTS is refused",
     .body = refused<IBV_QPS_INIT, IBV_QPS_RTS>},
    {.id = "api.qp.no-rts-init",
     .clause = WEFT_CLAUSE,
     .what = "the transition from RTS to INIT is refused",
     .body = refused<IBV_QPS_RTS, IBV_QPS_INIT>},
    {.id = "api.qp.no-rts-rtr",
     .clause = WEFT_CLAUSE,
     .what = "the transition from RTS to RTR is refused",
     .body = refused<IBV_QPS_RTS, IBV_QPS_RTR>},
    {.id = "api.qp.no-err-rts",
     .clause = WEFT_CLAUSE,
     .what = "the transition from ERR to RTS is refused",
     .body = refused<IBV_QPS_ERR, IBV_QPS_RTS>},
    {.id = "api.qp.no-sqd",
     .clause = WEFT_CLAUSE,
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "the transition from RTS to SQD is refused: MRC does not define it",
     .body = refused<IBV_QPS_RTS, IBV_QPS_SQD>},
    {.id = "api.qp.cur-state.wrong",
     .clause = "mrc.h: IBV_QP_CUR_STATE",
     .what = "a CUR_STATE that is not the actual state is EINVAL, and nothing changes",
     .body = cur_state_wrong},
    {.id = "api.qp.cur-state.right",
     .clause = "mrc.h: IBV_QP_CUR_STATE",
     .what = "a CUR_STATE that is the actual state is accepted",
     .body = cur_state_right},
    {.id = "api.qp.rtr.missing-av",
     .clause = WEFT_CLAUSE,
     .what = "RTR without an address is EINVAL, and nothing changes",
     .body = [](Session& s) { missing_attribute(s, IBV_QP_AV); }},
    {.id = "api.qp.rtr.missing-dest",
     .clause = WEFT_CLAUSE,
     .what = "RTR without the peer's QP number is EINVAL, and nothing changes",
     .body = [](Session& s) { missing_attribute(s, IBV_QP_DEST_QPN); }},
    {.id = "api.qp.rtr.not-global",
     .clause = "mrc.h: mrc_modify_qp, GIDs",
     .what = "an address without a GID is EINVAL",
     .body = not_global},
    {.id = "api.qp.rtr.reserved-peer",
     .clause = "MRC 7.5.5, QPN 2",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "the reserved QP number of endpoints as a peer is EINVAL",
     .body = reserved_peer},
    {.id = "api.qp.rtr.mtu",
     .clause = WEFT_CLAUSE,
     .what = "a path MTU that verbs do not define is EINVAL",
     .body = mtu_too_large},
    {.id = "api.qp.reset-reuse",
     .clause = WEFT_CLAUSE,
     .what = "after RESET a QP keeps its number and works again, with other PSNs",
     .body = reset_and_reuse},
};

}  // namespace

std::span<const Test> qp_state_tests() { return kTests; }

}  // namespace weft::conformance
