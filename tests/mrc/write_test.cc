// Writes through mrc.h: bytes, completions and their order, in one process and between two
// processes.
#include <thread>

#include "mrc_end.h"
#include "other_process.h"

namespace weft::mrc_test {
namespace {

struct Pair {
  Host host;
  End a, b;
  explicit Pair(const EndOptions& options = {}) : a(host, options), b(host, options) {
    b.psn = 0xffff80;  // PSNs wrap after 128 packets
    const Wire of_a = a.wire(), of_b = b.wire();
    a.connect(of_b);
    b.connect(of_a);
  }
};

TEST(Write, WritesOfEverySizeArriveAndNoOtherByteChanges) {
  Pair pair;
  const Wire to = pair.b.wire();
  std::uint64_t id = 1;
  for (const std::uint32_t size : {0u, 1u, 3u, 4u, 4095u, 4096u, 4097u, 65536u, 500'001u}) {
    fill(pair.a.memory.data(), size, id);
    std::memset(pair.b.memory.data(), 0xcc, pair.b.memory.size());
    ASSERT_EQ(pair.a.post(to, {.to = 100, .size = size, .id = id}), 0);
    const ibv_wc wc = wait_for(pair.a.send_cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
    EXPECT_EQ(wc.qp_num, pair.a.wire().qpn);
    EXPECT_EQ(first_wrong(pair.b.memory.data() + 100, size, id), size);
    EXPECT_EQ(pair.b.memory[99], 0xcc);
    EXPECT_EQ(pair.b.memory[100 + size], 0xcc);
    ++id;
  }
}

TEST(Write, ImmediateConsumesAReceiveAndIsInNetworkOrder) {
  Pair pair;
  for (std::uint64_t id = 10; id < 20; ++id) ASSERT_EQ(pair.b.post_receive(id), 0);
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_EQ(
        pair.a.post(
            pair.b.wire(),
            {.size = 9000 * (i % 3), .id = i, .with_immediate = true, .immediate = 0x01020300 + i}),
        0);
  }
  for (std::uint32_t i = 0; i < 10; ++i) {
    const ibv_wc wc = wait_for(pair.b.receive_cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.wr_id, 10 + i);
    EXPECT_EQ(wc.imm_data, htobe32(0x01020300 + i));
    EXPECT_EQ(wc.byte_len, 9000 * (i % 3));
    EXPECT_TRUE((wc.wc_flags & IBV_WC_WITH_IMM) != 0);
    EXPECT_EQ(wait_for(pair.a.send_cq).wr_id, i);
  }
}

TEST(Write, OnlySignalledWritesCompleteAndInOrder) {
  Pair pair;
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = static_cast<std::uint32_t>(i * 50),
                                          .id = i,
                                          .flags = i % 10 == 9 ? unsigned{IBV_SEND_SIGNALED} : 0u}),
              0);
  }
  for (std::uint64_t i = 9; i < 100; i += 10) EXPECT_EQ(wait_for(pair.a.send_cq).wr_id, i);
  ibv_wc wc{};
  EXPECT_EQ(mrc_poll_cq(pair.a.send_cq, 1, &wc), 0);
}

TEST(Write, WithSignalAllEveryWriteCompletes) {
  Pair pair({.signal_all = 1});
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(pair.a.post(pair.b.wire(), {.size = 8, .id = i, .flags = 0}), 0);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(wait_for(pair.a.send_cq).wr_id, i);
}

// The pieces have arbitrary sizes: a packet may lie in one piece, cross into the next, or span
// several pieces.
TEST(Write, AWriteGathersSeveralPieces) {
  Pair pair({.pieces = 16});
  const std::vector<std::uint32_t> sizes = {1, 4096, 0, 5000, 3, 2, 20'000, 4095, 7};
  std::vector<ibv_sge> sges;
  std::uint64_t at = 0;
  std::uint32_t total = 0;
  for (const std::uint32_t size : sizes) {
    for (std::uint32_t i = 0; i < size; ++i) pair.a.memory[at + i] = pattern(7, total + i);
    sges.push_back({.addr = reinterpret_cast<std::uintptr_t>(pair.a.memory.data()) + at,
                    .length = size,
                    .lkey = pair.a.mr->lkey});
    total += size;
    at += size + 1000;
  }
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = 5;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = pair.b.wire().at;
  wr.wr.rdma.rkey = pair.b.wire().rkey;
  ASSERT_EQ(mrc_post_send(pair.a.qp, &wr, &bad), 0);
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(first_wrong(pair.b.memory.data(), total, 7), total);
}

// The program may reuse the memory of an inline write right after the post. The memory needs no
// key.
TEST(Write, InlineBytesAreCopiedAtThePost) {
  Pair pair({.inline_bytes = 64});
  for (std::uint64_t i = 0; i < 50; ++i) {
    std::uint8_t bytes[64];
    fill(bytes, sizeof(bytes), i);
    ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(bytes), .length = 64, .lkey = 0};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = pair.b.wire().at + 64 * i;
    wr.wr.rdma.rkey = pair.b.wire().rkey;
    ASSERT_EQ(mrc_post_send(pair.a.qp, &wr, &bad), 0);
    std::memset(bytes, 0, sizeof(bytes));
  }
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(first_wrong(pair.b.memory.data() + 64 * i, 64, i), 64u);
  }
}

TEST(Write, AFullQueueRefusesPostsAndAcceptsThemLater) {
  Pair pair({.depth = 4});
  int taken = 0;
  while (pair.a.post(pair.b.wire(), {.size = 200'000}) == 0) ASSERT_LT(++taken, 1000);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_GE(taken, 4);
  for (int i = 0; i < taken; ++i) EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(pair.a.post(pair.b.wire(), {.size = 1}), 0);
  EXPECT_EQ(wait_for(pair.a.send_cq).status, IBV_WC_SUCCESS);
}

// Each iteration has its own pattern and size, so that a write which is lost, late or placed twice
// is detected.
TEST(Write, EveryIterationBetweenTwoProcessesArrives) {
  constexpr std::uint32_t kRounds = 300, kSize = 100'000;
  OtherProcess other([](const Line& line) {
    Host host;
    ASSERT_TRUE(host.is_open());
    End end(host);
    line.send(end.wire());
    const Wire peer = line.receive<Wire>();
    end.connect(peer);
    line.send(1);
    line.receive<int>();
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      const std::uint32_t size = 1 + i * 7919 % kSize;
      fill(end.memory.data(), size, i);
      ASSERT_EQ(end.post(peer, {.size = size, .id = i, .with_immediate = true, .immediate = i}), 0);
      ASSERT_EQ(wait_for(end.send_cq).status, IBV_WC_SUCCESS);
      line.receive<int>();  // wait until the receiver has checked the bytes
    }
  });
  Host host;
  ASSERT_TRUE(host.is_open());
  End end(host);
  const Line line = other.line();
  const Wire peer = line.receive<Wire>();
  line.send(end.wire());
  end.connect(peer);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(end.post_receive(0), 0);
  line.receive<int>();
  line.send(1);
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    const std::uint32_t size = 1 + i * 7919 % kSize;
    const ibv_wc wc = wait_for(end.receive_cq);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.imm_data, htobe32(i));
    ASSERT_EQ(first_wrong(end.memory.data(), size, i), size) << "iteration " << i;
    ASSERT_EQ(end.post_receive(0), 0);
    line.send(1);
  }
  EXPECT_EQ(other.join(), 0);
}

// Waits for a change of memory that the library writes: a race that RDMA programs intend.
__attribute__((no_sanitize("thread"), noinline)) bool spin_until(const std::uint8_t* at,
                                                                 std::uint64_t value) {
  const auto* const flag = reinterpret_cast<const volatile std::uint64_t*>(at);
  const auto until = Clock::now() + kWaitMax;
  while (*flag != value) {
    if (Clock::now() > until) return false;
  }
  return true;
}

// Neither process calls the library while bytes are in flight: both only read their memory.
TEST(Write, ProgressWithoutCalls) {
  OtherProcess other([](const Line& line) {
    Host host;
    End end(host);
    line.send(end.wire());
    const Wire peer = line.receive<Wire>();
    end.connect(peer);
    line.send(1);
    for (std::uint64_t i = 1; i <= 20; ++i) {
      ASSERT_TRUE(spin_until(end.memory.data(), i));
      // The answer is sent from other memory, because the peer writes to the first bytes.
      reinterpret_cast<std::uint64_t*>(end.memory.data())[64] = i;
      ASSERT_EQ(end.post(peer, {.from = 512, .size = 8, .flags = 0}), 0);
    }
    line.receive<int>();
  });
  Host host;
  End end(host);
  const Line line = other.line();
  const Wire peer = line.receive<Wire>();
  line.send(end.wire());
  end.connect(peer);
  line.receive<int>();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    reinterpret_cast<std::uint64_t*>(end.memory.data())[64] = i;
    ASSERT_EQ(end.post(peer, {.from = 512, .size = 8, .flags = 0}), 0);
    ASSERT_TRUE(spin_until(end.memory.data(), i));
  }
  line.send(1);
  EXPECT_EQ(other.join(), 0);
}

}  // namespace
}  // namespace weft::mrc_test
