// Creating, querying and destroying QPs; QP numbers.
#include <memory>
#include <set>

#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

struct Parts {
  Host host;
  const Library& library;
  mrc_cq* cq = nullptr;
  mrc_qp_init_attr good{};
  explicit Parts(Session& session) : host(session), library(host.library) {
    cq = library.mrc_create_cq(host.context, 16, nullptr, nullptr, 0);
    works("mrc_create_cq", cq);
    good = mrclib::qp_init({.pd = host.pd, .send_cq = cq, .receive_cq = cq},
                           {.sends = 4, .receives = 4});
  }
  ~Parts() { library.mrc_destroy_cq.call_if_present(cq); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
};

void refused(Session& session, const char* what, void (*change)(mrc_qp_init_attr&), Errnos errors) {
  Parts parts(session);
  mrc_qp_init_attr init = parts.good;
  change(init);
  fails_null(std::string("mrc_create_qp ") + what,
             parts.library.mrc_create_qp(parts.host.context, &init), errors);
}

void accepted(Session& session, const char* what, void (*change)(mrc_qp_init_attr&)) {
  Parts parts(session);
  mrc_qp_init_attr init = parts.good;
  change(init);
  mrc_qp* const qp = parts.library.mrc_create_qp(parts.host.context, &init);
  works(std::string("mrc_create_qp ") + what, qp);
  works("mrc_destroy_qp", parts.library.mrc_destroy_qp(qp));
}

void starts_in_reset(Session& session) {
  Host host(session);
  End end(host);
  equal("state of a new QP", static_cast<int>(end.state()), static_cast<int>(IBV_QPS_RESET));
}

void numbers_differ(Session& session) {
  Host host(session);
  std::set<std::uint32_t> seen;
  std::vector<std::unique_ptr<End>> ends;
  for (int i = 0; i < 16; ++i) {
    ends.push_back(std::make_unique<End>(host, EndOptions{.bytes = 4096, .depth = 4}));
    const std::uint32_t qpn = ends.back()->qpn();
    holds(qpn > 2 && qpn <= 0xff'ffff, "a number of 24 bits above 2", fmt::format("{:#x}", qpn));
    holds(seen.insert(qpn).second, "numbers that differ", fmt::format("{:#x} twice", qpn));
  }
}

void capacities_are_granted(Session& session) {
  Parts parts(session);
  mrc_qp_init_attr init = parts.good;
  init.cap.max_send_wr = 33;
  init.cap.max_send_sge = 2;
  mrc_qp* const qp = parts.library.mrc_create_qp(parts.host.context, &init);
  works("mrc_create_qp", qp);
  mrc_qp_init_attr told{};
  ibv_qp_attr attr{};
  works("mrc_query_qp", parts.library.mrc_query_qp(qp, &attr, IBV_QP_CAP, nullptr, 0, &told));
  parts.library.mrc_destroy_qp(qp);
  holds(told.cap.max_send_wr >= 33, "max_send_wr of 33 at least",
        text_of_value(told.cap.max_send_wr));
  holds(told.cap.max_send_sge >= 2, "max_send_sge of 2 at least",
        text_of_value(told.cap.max_send_sge));
  equal("pd", static_cast<const void*>(told.pd), static_cast<const void*>(parts.host.pd));
  equal("send_cq", static_cast<const void*>(told.send_cq), static_cast<const void*>(parts.cq));
}

void qps_in_turn_leave_nothing(Session& session) {
  Parts parts(session);
  for (int i = 0; i < 200; ++i) {
    mrc_qp_init_attr init = parts.good;
    mrc_qp* const qp = parts.library.mrc_create_qp(parts.host.context, &init);
    works(fmt::format("mrc_create_qp number {}", i + 1), qp);
    works("mrc_destroy_qp", parts.library.mrc_destroy_qp(qp));
  }
  works("mrc_destroy_cq after all of them", parts.library.mrc_destroy_cq(parts.cq));
  parts.cq = parts.library.mrc_create_cq(parts.host.context, 1, nullptr, nullptr, 0);
}

void domain_in_use_is_busy(Session& session) {
  Host host(session);
  End end(host);
  fails_value("ibv_dealloc_pd with a QP and a region", host.library.ibv_dealloc_pd(host.pd),
              {EBUSY});
}

constexpr Test kTests[] = {
    {.id = "api.qp.create.reset",
     .clause = "mrc.h: mrc_create_qp",
     .what = "a new QP is in RESET",
     .body = starts_in_reset},
    {.id = "api.qp.create.numbers",
     .clause = "mrc.h: mrc_get_qpn; MRC 7.5.5, QPN 2",
     .certainty = Certainty::kReaders,
     .what = "numbers have 24 bits, differ, and are not the reserved 0, 1 and 2",
     .body = numbers_differ},
    {.id = "api.qp.create.cap",
     .clause = "mrc.h: mrc_create_qp, as ibv_create_qp",
     .what = "the QP has the requested capacities, and mrc_query_qp returns its attributes",
     .body = capacities_are_granted},
    {.id = "api.qp.create.again",
     .clause = "mrc.h: mrc_destroy_qp",
     .what = "200 QPs created and destroyed in turn leave nothing that keeps their CQ busy",
     .body = qps_in_turn_leave_nothing},
    {.id = "api.qp.create.no-ops",
     .clause = "OCP's benchmark: send_ops_flags 0",
     .certainty = Certainty::kOurs,
     .what = "send_ops_flags of 0 is accepted and means both kinds of write",
     .body = [](Session& s) { accepted(s, "with send_ops_flags 0", [](auto&) {}); }},
    {.id = "api.qp.create.ops",
     .clause = "mrc.h: struct mrc_qp_init_attr",
     .what = "RDMA_WRITE and RDMA_WRITE_WITH_IMM are accepted as send_ops_flags",
     .body =
         [](Session& s) {
           accepted(s, "with both operations named", [](auto& init) {
             init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
           });
         }},
    {.id = "api.qp.create.protocol-1",
     .clause = "mrc.h: enum mrc_protocol_version",
     .what = "protocol version 1 is accepted",
     .body =
         [](Session& s) {
           accepted(s, "with protocol version 1",
                    [](auto& init) { init.protocol_version = MRC_PROTOCOL_VERSION_1; });
         }},
    {.id = "api.qp.create.other-ops",
     .clause = "mrc.h: MRC carries writes only",
     .certainty = Certainty::kOurs,
     .what = "SEND among send_ops_flags is refused",
     .body =
         [](Session& s) {
           refused(s, "with SEND", [](auto& init) { init.send_ops_flags = IBV_QP_EX_WITH_SEND; },
                   {EOPNOTSUPP, EINVAL, ENOTSUP});
         }},
    {.id = "api.qp.create.no-send-cq",
     .clause = "mrc.h: mrc_create_qp, as ibv_create_qp",
     .what = "a QP without a send CQ is refused",
     .body =
         [](Session& s) {
           refused(s, "without a send CQ", [](auto& init) { init.send_cq = nullptr; }, {EINVAL});
         }},
    {.id = "api.qp.create.no-recv-cq",
     .clause = "mrc.h: mrc_create_qp, as ibv_create_qp",
     .what = "a QP without a receive CQ is refused",
     .body =
         [](Session& s) {
           refused(s, "without a receive CQ", [](auto& init) { init.recv_cq = nullptr; }, {EINVAL});
         }},
    {.id = "api.qp.create.no-pd",
     .clause = "mrc.h: struct mrc_qp_init_attr",
     .what = "a QP without a protection domain is refused",
     .body =
         [](Session& s) {
           refused(s, "without a domain", [](auto& init) { init.pd = nullptr; }, {EINVAL});
         }},
    {.id = "api.qp.create.too-deep",
     .clause = "mrc.h: mrc_create_qp, as ibv_create_qp",
     .what = "more work requests than any device has are refused",
     .body =
         [](Session& s) {
           refused(s, "with 2^31 sends", [](auto& init) { init.cap.max_send_wr = 1u << 31; },
                   {EINVAL, ENOMEM});
         }},
    {.id = "api.qp.create.too-wide",
     .clause = "mrc.h: mrc_create_qp, as ibv_create_qp",
     .what = "more pieces than any device gathers are refused",
     .body =
         [](Session& s) {
           refused(s, "with 2^20 pieces", [](auto& init) { init.cap.max_send_sge = 1u << 20; },
                   {EINVAL, ENOMEM});
         }},
    {.id = "api.pd.busy",
     .clause = "ibv_dealloc_pd",
     .what = "EBUSY while a QP or a region belongs to the domain",
     .body = domain_in_use_is_busy},
};

}  // namespace

std::span<const Test> qp_create_tests() { return kTests; }

}  // namespace weft::conformance
