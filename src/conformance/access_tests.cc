// Access rights and bounds of a QP's writes; errors and flushed requests after a violation.
#include <sys/mman.h>

#include "conformance/companion.h"
#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

// Checks that a bad write fails with REM_ACCESS_ERR, that the next write is flushed, that both ends
// go to ERR, and that the target memory is unchanged.
void write_is_refused_remotely(Pair& pair, const Address& wrong, const End::Write& write) {
  std::memset(pair.b.memory.data(), 0x77, pair.b.memory.size());
  fill(pair.a.memory.data(), write.size, 3);
  pair.a.write(wrong, write);
  pair.a.write(pair.b.address(), {.size = 8, .id = 99});
  completed_as(pair.a.wait_send(), IBV_WC_REM_ACCESS_ERR, write.id);
  completed_as(pair.a.wait_send(), IBV_WC_WR_FLUSH_ERR, 99);
  pair.a.expect_qp_state(IBV_QPS_ERR);
  pair.b.expect_qp_state(IBV_QPS_ERR);
}

void unknown_rkey_is_refused(Session& session) {
  Pair pair(session);
  Address wrong = pair.b.address();
  wrong.rkey ^= 0x100;
  write_is_refused_remotely(pair, wrong, {.size = 100, .id = 1});
  equal_hex("the first byte of the target", pair.b.memory[0], 0x77);
}

void write_beyond_end_is_refused(Session& session) {
  Pair pair(session);
  const std::uint64_t last = pair.b.memory.size() - 10;
  pair.a.write(pair.b.address(), {.to = last, .size = 10, .id = 1});
  completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 1);
  write_is_refused_remotely(pair, pair.b.address(), {.to = last, .size = 11, .id = 2});
}

void write_before_start_is_refused(Session& session) {
  Pair pair(session);
  Address wrong = pair.b.address();
  wrong.at -= 1;
  write_is_refused_remotely(pair, wrong, {.size = 100, .id = 1});
}

void deregistered_region_is_refused(Session& session) {
  Pair pair(session);
  std::vector<std::uint8_t> gone(4096, 0x77);
  ibv_mr* const mr =
      pair.b.library.ibv_reg_mr(pair.host.pd, gone.data(), gone.size(), kRemoteWrite);
  works("ibv_reg_mr", mr);
  Address wrong = pair.b.address();
  wrong.rkey = mr->rkey;
  wrong.at = reinterpret_cast<std::uintptr_t>(gone.data());
  pair.a.write(wrong, {.size = 1, .id = 1});
  completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 1);
  gone[0] = 0x77;
  works("ibv_dereg_mr", pair.b.library.ibv_dereg_mr(mr));
  write_is_refused_remotely(pair, wrong, {.size = 100, .id = 2});
  equal_hex("the first byte of what was deregistered", gone[0], 0x77);
}

void region_without_right_refuses(Session& session) {
  Pair pair(session, {.access = IBV_ACCESS_LOCAL_WRITE});
  write_is_refused_remotely(pair, pair.b.address(), {.size = 8, .id = 1});
}

void qp_without_right_refuses(Session& session) {
  Host host(session);
  End a(host), b(host);
  const Address of_a = a.address(), of_b = b.address();
  a.connect(of_b);
  works("to INIT without REMOTE_WRITE", b.to_init(IBV_ACCESS_LOCAL_WRITE));
  works("to RTR", b.to_rtr(of_a));
  a.write(of_b, {.size = 8, .id = 1});
  completed_as(a.wait_send(), IBV_WC_REM_ACCESS_ERR, 1);
}

void region_of_other_domain_is_refused(Session& session) {
  Pair pair(session);
  const Library& library = pair.a.library;
  ibv_pd* const other = library.ibv_alloc_pd(pair.host.verbs);
  works("ibv_alloc_pd", other);
  std::vector<std::uint8_t> memory(4096);
  ibv_mr* const mr = library.ibv_reg_mr(other, memory.data(), memory.size(), kRemoteWrite);
  works("ibv_reg_mr", mr);
  Address foreign = pair.b.address();
  foreign.rkey = mr->rkey;
  foreign.at = reinterpret_cast<std::uintptr_t>(memory.data());
  write_is_refused_remotely(pair, foreign, {.size = 8, .id = 1});
  library.ibv_dereg_mr(mr);
  library.ibv_dealloc_pd(other);
}

void wrong_lkey_fails_request(Session& session) {
  Pair pair(session);
  const std::uint32_t lkey = pair.a.mr->lkey;
  pair.a.write(pair.b.address(), {.size = 5000, .id = 1});
  pair.a.mr->lkey = lkey ^ 0x100;
  const int posted = pair.a.post(pair.b.address(), {.size = 8, .id = 2});
  pair.a.mr->lkey = lkey;
  works("mrc_post_send with a wrong local key", posted);
  pair.a.write(pair.b.address(), {.size = 8, .id = 3, .flags = 0});
  completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 1);
  completed_as(pair.a.wait_send(), IBV_WC_LOC_PROT_ERR, 2);
  completed_as(pair.a.wait_send(), IBV_WC_WR_FLUSH_ERR, 3);
}

void piece_beyond_region_fails(Session& session) {
  Pair pair(session);
  pair.a.write(pair.b.address(), {.from = pair.a.memory.size() - 8, .size = 9, .id = 1});
  completed_as(pair.a.wait_send(), IBV_WC_LOC_PROT_ERR, 1);
}

void err_flushes_in_order(Session& session) {
  Host host(session);
  End a(host), silent(host);
  a.connect(silent.address());
  for (std::uint64_t id = 0; id < 10; ++id) {
    a.write(silent.address(), {.size = 8, .id = id, .flags = 0});
    a.receive(100 + id);
  }
  works("to ERR", a.to(IBV_QPS_ERR));
  for (std::uint64_t id = 0; id < 10; ++id) {
    completed_as(a.wait_send(), IBV_WC_WR_FLUSH_ERR, id);
    completed_as(a.wait_receive(), IBV_WC_WR_FLUSH_ERR, 100 + id);
  }
}

void posts_in_err_are_flushed(Session& session) {
  Pair pair(session);
  works("to ERR", pair.a.to(IBV_QPS_ERR));
  works("mrc_post_send in ERR", pair.a.post(pair.b.address(), {.size = 8, .id = 1}));
  works("mrc_post_recv in ERR", pair.a.post_receive(2));
  completed_as(pair.a.wait_send(), IBV_WC_WR_FLUSH_ERR, 1);
  completed_as(pair.a.wait_receive(), IBV_WC_WR_FLUSH_ERR, 2);
}

void reset_discards_posts(Session& session) {
  Host host(session);
  End a(host), silent(host);
  a.connect(silent.address());
  for (std::uint64_t id = 0; id < 5; ++id) a.write(silent.address(), {.size = 8, .id = id});
  works("to RESET", a.to(IBV_QPS_RESET));
  a.expect_no_completion(a.send_cq, milliseconds(20));
}

void immediate_without_receive_fails(Session& session) {
  Pair pair(session);
  pair.a.write(pair.b.address(), {.size = 8, .id = 1, .immediate = 1});
  const ibv_wc wc = pair.a.wait_send();
  holds(wc.status != IBV_WC_SUCCESS, "an error: MRC has no RNR", status_name(wc.status));
  pair.b.expect_qp_state(IBV_QPS_ERR);
}

void no_receive_status(Session& session) {
  Pair pair(session);
  pair.a.write(pair.b.address(), {.size = 8, .id = 1, .immediate = 1});
  completed_as(pair.a.wait_send(), IBV_WC_REM_OP_ERR, 1);
}

void killed_peer_fails_qp(Session& session) {
  Companion other(session, [](Session& there, const Line& line) {
    Host host(there);
    End end(host);
    line.send(end.address());
    end.connect(line.receive<Address>(there));
    line.send(true);
    line.receive<bool>(there);
  });
  Host host(session);
  End end(host);
  const Line line = other.line();
  const auto peer = other.receive<Address>();
  line.send(end.address());
  works("to INIT", end.to_init());
  works("to RTR", end.to_rtr(peer));
  mrc_qp_attr attr{};
  attr.timeout = 10;
  attr.retry.linear_cnt = 7;
  attr.retry.exp_cnt = 6;
  works("to RTS", end.to_rts(&attr, MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT));
  other.receive<bool>();
  end.write(peer, {.size = 8, .id = 1});
  completed_as(end.wait_send(), IBV_WC_SUCCESS, 1);
  other.kill_process();
  end.write(peer, {.size = 8, .id = 2});
  end.write(peer, {.size = 8, .id = 3});
  completed_as(end.wait_send(), IBV_WC_RETRY_EXC_ERR, 2);
  completed_as(end.wait_send(), IBV_WC_WR_FLUSH_ERR, 3);
}

#define WEFT_RIGHTS "ibv_reg_mr access rights; IBA 9.9, remote access error"
constexpr Test kTests[] = {
    {.id = "api.access.rkey",
     .clause = WEFT_RIGHTS,
     .what = "an rkey of no region: REM_ACCESS_ERR, both ends in ERR, nothing written",
     .body = unknown_rkey_is_refused},
    {.id = "api.access.end",
     .clause = WEFT_RIGHTS,
     .what = "the last byte of a region can be written, the next byte cannot",
     .body = write_beyond_end_is_refused},
    {.id = "api.access.start",
     .clause = WEFT_RIGHTS,
     .what = "the byte before a region cannot be written",
     .body = write_before_start_is_refused},
    {.id = "api.access.deregistered",
     .clause = WEFT_RIGHTS,
     .what = "a region that was deregistered cannot be written",
     .body = deregistered_region_is_refused},
    {.id = "api.access.region-right",
     .clause = WEFT_RIGHTS,
     .what = "a region without REMOTE_WRITE cannot be written",
     .body = region_without_right_refuses},
    {.id = "api.access.qp-right",
     .clause = "mrc.h: IBV_QP_ACCESS_FLAGS",
     .what = "a QP without REMOTE_WRITE accepts no writes",
     .body = qp_without_right_refuses},
    {.id = "api.access.domain",
     .clause = "ibv_alloc_pd",
     .what = "a region of another protection domain cannot be written",
     .body = region_of_other_domain_is_refused},
    {.id = "api.access.lkey",
     .clause = "IBA 9.9, local protection error",
     .what = "a wrong lkey: LOC_PROT_ERR from that request on; earlier requests are carried out",
     .body = wrong_lkey_fails_request},
    {.id = "api.access.local-bounds",
     .clause = "IBA 9.9, local protection error",
     .what = "a piece that exceeds its region: LOC_PROT_ERR",
     .body = piece_beyond_region_fails},
    {.id = "api.err.flush",
     .clause = "mrc.h: mrc_modify_qp to ERR",
     .what = "ERR completes everything posted with WR_FLUSH_ERR, in order",
     .body = err_flushes_in_order},
    {.id = "api.err.post",
     .clause = "mrc.h: mrc_post_send, as ibv_post_send in ERR",
     .what = "posts in ERR are accepted and flushed",
     .body = posts_in_err_are_flushed},
    {.id = "api.err.reset",
     .clause = "mrc.h: mrc_modify_qp to RESET",
     .what = "RESET discards posted requests without completing them",
     .body = reset_discards_posts},
    {.id = "api.err.no-receive",
     .clause = "MRC: no RNR",
     .certainty = Certainty::kReaders,
     .what = "an immediate without a receive is an error at both ends",
     .body = immediate_without_receive_fails},
    {.id = "api.err.no-receive-status",
     .clause = "MRC: no RNR",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "an immediate without a receive completes with REM_OP_ERR at the sender",
     .body = no_receive_status},
    {.id = "api.err.peer-dies",
     .clause = "mrc.h: MRC_QP_RETRY_CNT, MRC_QP_TIMEOUT",
     .what = "a killed peer: RETRY_EXC_ERR when the retries are exhausted, then flushes",
     .body = killed_peer_fails_qp},
};

}  // namespace

std::span<const Test> access_tests() { return kTests; }

}  // namespace weft::conformance
