// Errors of a QP, and how they are reported to the program.
#include <sys/mman.h>

#include "mrc_end.h"
#include "other_process.h"

namespace weft::mrc_test {
namespace {

struct Pair {
  Host host;
  End a, b;
  explicit Pair(const EndOptions& options = {}) : a(host, options), b(host, options) {
    const Wire of_a = a.wire(), of_b = b.wire();
    a.connect(of_b);
    b.connect(of_a);
  }
};

mrc_async_event next_event(mrc_context* context) {
  mrc_async_event event{};
  EXPECT_EQ(mrc_get_async_event(context, &event), 0);
  return event;
}

TEST(Errors, UnknownKeyIsARemoteAccessErrorAndBothEndsFail) {
  Pair pair;
  Wire wrong = pair.b.wire();
  wrong.rkey ^= 1;
  pair.b.memory[0] = 0x77;
  ASSERT_EQ(pair.b.post_receive(77), 0);
  ASSERT_EQ(pair.a.post(wrong, {.size = 100, .id = 1}), 0);
  ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 100, .id = 2}), 0);
  const ibv_wc first = wait_for(pair.a.send_cq), second = wait_for(pair.a.send_cq);
  EXPECT_EQ(first.wr_id, 1u);
  EXPECT_EQ(first.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(second.wr_id, 2u);
  EXPECT_EQ(second.status, IBV_WC_WR_FLUSH_ERR);
  const ibv_wc receive = wait_for(pair.b.receive_cq);
  EXPECT_EQ(receive.wr_id, 77u);
  EXPECT_EQ(receive.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(pair.a.state(), IBV_QPS_ERR);
  EXPECT_EQ(pair.b.state(), IBV_QPS_ERR);
  EXPECT_EQ(pair.b.memory[0], 0x77);
  // The responder's event comes first, because the requestor learns the error from the responder.
  mrc_async_event at_b = next_event(pair.host.context), at_a = next_event(pair.host.context);
  EXPECT_EQ(at_b.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(at_b.element.qp, pair.b.qp);
  EXPECT_EQ(at_a.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(at_a.element.qp, pair.a.qp);
  mrc_ack_async_event(&at_b);
  mrc_ack_async_event(&at_a);
}

TEST(Errors, AWriteBeyondTheRegionIsRefused) {
  Pair pair;
  const auto last = static_cast<std::uint64_t>(pair.b.memory.size()) - 10;
  ASSERT_EQ(pair.a.post(pair.b.wire(), {.to = last, .size = 10}), 0);
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_SUCCESS);
  ASSERT_EQ(pair.a.post(pair.b.wire(), {.to = last, .size = 11}), 0);
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
}

TEST(Errors, RegionWithoutRemoteWriteIsRefused) {
  Pair pair({.access = IBV_ACCESS_LOCAL_WRITE});
  ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 8}), 0);
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
}

TEST(Errors, QpWithoutRemoteWriteIsRefused) {
  Host host;
  End a(host), b(host);
  const Wire of_a = a.wire(), of_b = b.wire();
  a.connect(of_b);
  ASSERT_EQ(b.to_init(IBV_ACCESS_LOCAL_WRITE), 0);
  ASSERT_EQ(b.to_rtr(of_a), 0);
  ASSERT_EQ(a.post(of_b, {.size = 8}), 0);
  EXPECT_EQ(wait_for(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
}

// A QP must use no memory of another protection domain, neither as source nor as target.
TEST(Errors, MemoryOfAnotherDomainIsRefused) {
  Pair pair;
  ibv_pd* const other = ibv_alloc_pd(pair.host.verbs);
  std::vector<std::uint8_t> memory(4096);
  ibv_mr* const mr = ibv_reg_mr(other, memory.data(), memory.size(),
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(mr, nullptr);
  Wire foreign = pair.b.wire();
  foreign.rkey = mr->rkey;
  foreign.at = reinterpret_cast<std::uintptr_t>(memory.data());
  ASSERT_EQ(pair.a.post(foreign, {.size = 8}), 0);
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

// Requests before the bad one must be carried out, and later requests must be flushed.
TEST(Errors, BadLocalKeyFailsItsRequestAndLaterOnesOnly) {
  Pair pair;
  for (std::uint64_t id = 0; id < 3; ++id)
    ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 50'000, .id = id}), 0);
  const std::uint32_t lkey = pair.a.mr->lkey;
  pair.a.mr->lkey = lkey ^ 0x10;
  ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 8, .id = 3}), 0);
  pair.a.mr->lkey = lkey;
  ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 8, .id = 4, .flags = 0}), 0);
  for (std::uint64_t id = 0; id < 3; ++id) {
    const ibv_wc wc = wait_for(pair.a.send_cq);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_LOC_PROT_ERR);
  const ibv_wc last = wait_for(pair.a.send_cq);
  EXPECT_EQ(last.wr_id, 4u);
  EXPECT_EQ(last.status, IBV_WC_WR_FLUSH_ERR);
}

TEST(Errors, ImmediateWithoutReceiveFails) {
  Pair pair;
  ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 8, .with_immediate = true}), 0);
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_REM_OP_ERR);
  EXPECT_EQ(pair.b.state(), IBV_QPS_ERR);
}

TEST(Errors, ErrStateFlushesPostedAndLaterRequestsInOrder) {
  Host host;
  End a(host), b(host);
  const Wire of_b = b.wire();
  a.connect(of_b);  // b is not connected, so it acknowledges nothing
  for (std::uint64_t id = 0; id < 20; ++id) {
    ASSERT_EQ(a.post(of_b, {.size = 8, .id = id, .flags = 0}), 0);
    ASSERT_EQ(a.post_receive(100 + id), 0);
  }
  ASSERT_EQ(a.to(IBV_QPS_ERR), 0);
  ASSERT_EQ(a.post(of_b, {.size = 8, .id = 20}), 0);
  ASSERT_EQ(a.post_receive(120), 0);
  for (std::uint64_t id = 0; id < 21; ++id) {
    const ibv_wc send = wait_for(a.send_cq), receive = wait_for(a.receive_cq);
    EXPECT_EQ(send.wr_id, id);
    EXPECT_EQ(send.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(receive.wr_id, 100 + id);
    EXPECT_EQ(receive.status, IBV_WC_WR_FLUSH_ERR);
  }
}

// RESET clears all state. Afterwards the QP connects again under the same number.
TEST(Errors, AfterResetAQpConnectsAgainWithTheSameNumber) {
  Pair pair;
  const std::uint32_t qpn = pair.a.wire().qpn;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 8, .id = 1}), 0);
    EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_SUCCESS);
    ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 200'000, .id = 2}), 0);
    ASSERT_EQ(pair.a.to(IBV_QPS_ERR), 0);
    ASSERT_EQ(pair.a.to(IBV_QPS_RESET), 0);
    ASSERT_EQ(pair.b.to(IBV_QPS_RESET), 0);
    ibv_wc wc{};
    EXPECT_EQ(mrc_poll_cq(pair.a.send_cq, 1, &wc), 0);
    EXPECT_EQ(pair.a.wire().qpn, qpn);
    pair.a.psn = 1000u * static_cast<unsigned>(round);
    const Wire of_a = pair.a.wire(), of_b = pair.b.wire();
    pair.a.connect(of_b);
    pair.b.connect(of_a);
  }
}

// A region is deregistered while writes are sent from it. Then its memory is freed.
TEST(Errors, DeregisteredMemoryIsNotRead) {
  Host host;
  End a(host), b(host);
  const Wire of_b = b.wire();
  a.connect(of_b);  // b is not connected and acknowledges nothing, so the write stays in flight
  void* const pages =
      mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ibv_mr* const mr = ibv_reg_mr(host.pd, pages, 1 << 20, unsigned{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_NE(mr, nullptr);
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(pages), .length = 1 << 20, .lkey = mr->lkey};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = of_b.at;
  wr.wr.rdma.rkey = of_b.rkey;
  ASSERT_EQ(mrc_post_send(a.qp, &wr, &bad), 0);
  ASSERT_EQ(ibv_dereg_mr(mr), 0);
  ASSERT_EQ(munmap(pages, 1 << 20), 0);
  EXPECT_EQ(wait_for(a.send_cq).status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
}

TEST(Errors, AnOverrunCqIsReported) {
  Pair pair({.cq_entries = 4});
  for (std::uint64_t id = 0; id < 32; ++id)
    ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 8, .id = id}), 0);
  mrc_async_event event = next_event(pair.host.context);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, pair.a.send_cq);
  mrc_ack_async_event(&event);
  EXPECT_EQ(pair.a.state(), IBV_QPS_ERR);
  ibv_wc wc[8];
  EXPECT_EQ(mrc_poll_cq(pair.a.send_cq, 8, wc), 4);
  EXPECT_EQ(mrc_poll_cq(pair.a.send_cq, 8, wc), -1);
}

// The peer is killed during a write. The error must come within a bounded time, and the survivor
// must be able to continue.
TEST(Errors, KilledPeerIsReported) {
  OtherProcess other([](const Line& line) {
    Host host;
    End end(host);
    line.send(end.wire());
    end.connect(line.receive<Wire>());
    line.send(1);
    line.receive<int>();  // never returns: the process is killed
  });
  Host host;
  End end(host);
  const Line line = other.line();
  const Wire peer = line.receive<Wire>();
  line.send(end.wire());
  ASSERT_EQ(end.to_init(), 0);
  ASSERT_EQ(end.to_rtr(peer), 0);
  mrc_qp_attr retries{};
  retries.timeout = 10;
  retries.retry.linear_cnt = 7;
  retries.retry.exp_cnt = 8;
  ASSERT_EQ(end.to_rts(&retries, MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT), 0);
  line.receive<int>();
  ASSERT_EQ(end.post(peer, {.size = 8, .id = 1}), 0);
  EXPECT_EQ(wait_for(end.send_cq).status, IBV_WC_SUCCESS);
  other.kill_process();
  ASSERT_EQ(end.post(peer, {.size = 8, .id = 2}), 0);
  ASSERT_EQ(end.post(peer, {.size = 8, .id = 3}), 0);
  EXPECT_EQ(wait_for(end.send_cq).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(wait_for(end.send_cq).status, IBV_WC_WR_FLUSH_ERR);
  mrc_async_event event = next_event(host.context);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  mrc_ack_async_event(&event);
  Pair after;
  ASSERT_EQ(after.a.post(after.b.wire(), {.size = 8}), 0);
  EXPECT_EQ(wait_for(after.a.send_cq).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weft::mrc_test
