// Completions: their number, order and fields.
#include <endian.h>

#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void sends_complete_in_order(Session& session) {
  Pair pair(session);
  for (std::uint64_t i = 0; i < 60; ++i)
    pair.a.write(pair.b.address(), {.size = static_cast<std::uint32_t>(i % 7 * 3000), .id = i});
  for (std::uint64_t i = 0; i < 60; ++i) completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, i);
}

void only_signalled_complete(Session& session) {
  Pair pair(session);
  for (std::uint64_t i = 0; i < 50; ++i)
    pair.a.write(pair.b.address(),
                 {.size = 100, .id = i, .flags = i % 10 == 9 ? unsigned{IBV_SEND_SIGNALED} : 0});
  for (std::uint64_t i = 9; i < 50; i += 10) completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, i);
  pair.a.expect_no_completion(pair.a.send_cq, milliseconds(20));
}

void sq_sig_all_completes_all(Session& session) {
  Pair pair(session, {.signal_all = 1});
  for (std::uint64_t i = 0; i < 5; ++i)
    pair.a.write(pair.b.address(), {.size = 8, .id = i, .flags = 0});
  for (std::uint64_t i = 0; i < 5; ++i) completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, i);
}

void send_completion_fields(Session& session) {
  Pair pair(session);
  pair.a.write(pair.b.address(), {.size = 8, .id = 0x1122334455667788});
  const ibv_wc wc = pair.a.wait_send();
  completed_as(wc, IBV_WC_SUCCESS, 0x1122334455667788);
  equal("opcode RDMA_WRITE:", static_cast<int>(wc.opcode), static_cast<int>(IBV_WC_RDMA_WRITE));
  equal_hex("qp_num", wc.qp_num, pair.a.qpn());
}

// A plain write makes no completion at the other end.
void plain_write_completes_no_receive(Session& session) {
  Pair pair(session);
  pair.b.receive(1);
  pair.a.write(pair.b.address(), {.size = 5000, .id = 1});
  completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 1);
  pair.b.expect_no_completion(pair.b.receive_cq, milliseconds(20));
}

void receive_fields(Session& session) {
  Pair pair(session);
  pair.b.receive(0x42);
  pair.a.write(pair.b.address(), {.size = 5000, .id = 1, .immediate = 0x01020304});
  const ibv_wc wc = pair.b.wait_receive();
  completed_as(wc, IBV_WC_SUCCESS, 0x42);
  equal("opcode RECV_RDMA_WITH_IMM:", static_cast<int>(wc.opcode),
        static_cast<int>(IBV_WC_RECV_RDMA_WITH_IMM));
  equal_hex("imm_data, in network order,", wc.imm_data, htobe32(0x01020304));
  equal("byte_len", wc.byte_len, 5000u);
  holds((wc.wc_flags & IBV_WC_WITH_IMM) != 0, "IBV_WC_WITH_IMM in wc_flags",
        fmt::format("{:#x}", unsigned{wc.wc_flags}));
  equal_hex("qp_num", wc.qp_num, pair.b.qpn());
}

// Immediates arrive in the order of posting. When one arrives, its own message and all earlier
// messages must be in memory.
void immediates_in_order(Session& session) {
  Pair pair(session);
  constexpr std::uint32_t kCount = 40;
  for (std::uint64_t i = 0; i < kCount; ++i) pair.b.receive(100 + i);
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const std::uint32_t size = i % 5 * 4000;
    fill(pair.a.memory.data() + at, size, i);
    pair.a.write(pair.b.address(),
                 {.from = at, .to = at, .size = size, .id = i, .immediate = 0x1000 + i});
    at += size;
  }
  at = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const ibv_wc wc = pair.b.wait_receive();
    completed_as(wc, IBV_WC_SUCCESS, 100 + i);
    equal_hex("imm_data", be32toh(wc.imm_data), 0x1000 + i);
    is_pattern(pair.b.memory.data() + at, i % 5 * 4000, i);
    at += i % 5 * 4000;
  }
}

// When an immediate arrives, plain writes posted before it must be in memory.
void immediate_covers(Session& session) {
  Pair pair(session);
  for (std::uint64_t round = 1; round <= 10; ++round) {
    pair.b.receive(round);
    fill(pair.a.memory.data(), 300'000, round);
    pair.a.write(pair.b.address(), {.size = 300'000, .id = 1, .flags = 0});
    pair.a.write(pair.b.address(), {.size = 0, .id = 2, .immediate = 1});
    completed_as(pair.b.wait_receive(), IBV_WC_SUCCESS, round);
    is_pattern(pair.b.memory.data(), 300'000, round);
    completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 2);
  }
}

void many_at_once(Session& session) {
  Pair pair(session);
  for (std::uint64_t i = 0; i < 20; ++i) pair.a.write(pair.b.address(), {.size = 8, .id = i});
  ibv_wc wc[8];
  std::uint64_t next = 0;
  while (next < 20) {
    if (session.is_over()) fail("20 completions", text_of_value(next));
    const int count = pair.a.library.mrc_poll_cq(pair.a.send_cq, 8, wc);
    holds(count >= 0 && count <= 8, "0 to 8 completions", text_of_value(count));
    for (int i = 0; i < count; ++i) completed_as(wc[i], IBV_WC_SUCCESS, next++);
  }
}

// More immediates than may be in flight are posted: the rest must wait, and none may be lost.
void more_immediates_than_in_flight(Session& session) {
  Host host(session);
  End a(host), b(host);
  const Address of_a = a.address(), of_b = b.address();
  mrc_qp_attr attr{};
  attr.wimm.max_wimm = attr.wimm.max_wimm_dest = 2;
  works("to INIT", a.to_init());
  works("to RTR", a.to_rtr(of_b));
  works("to RTS with MAX_WIMM 2", a.to_rts(&attr, MRC_QP_MAX_WIMM));
  works("to INIT", b.to_init());
  works("to RTR with MAX_WIMM_DEST 2", b.to_rtr(of_a, IBV_MTU_1024, &attr, MRC_QP_MAX_WIMM_DEST));
  works("to RTS", b.to_rts());
  for (std::uint64_t i = 0; i < 50; ++i) b.receive(i);
  for (std::uint64_t i = 0; i < 50; ++i)
    a.write(of_b, {.size = 100, .id = i, .immediate = static_cast<std::uint32_t>(i)});
  for (std::uint64_t i = 0; i < 50; ++i) completed_as(b.wait_receive(), IBV_WC_SUCCESS, i);
  for (std::uint64_t i = 0; i < 50; ++i) completed_as(a.wait_send(), IBV_WC_SUCCESS, i);
}

constexpr Test kTests[] = {
    {.id = "api.wc.order",
     .clause = "mrc.h: mrc_poll_cq; MRC 6.2.1",
     .certainty = Certainty::kReaders,
     .what = "sends complete in the order of posting",
     .body = sends_complete_in_order},
    {.id = "api.wc.selective",
     .clause = "mrc.h: IBV_SEND_SIGNALED",
     .what = "only signalled requests complete",
     .body = only_signalled_complete},
    {.id = "api.wc.all",
     .clause = "mrc.h: struct mrc_qp_init_attr, sq_sig_all",
     .what = "with sq_sig_all every request completes",
     .body = sq_sig_all_completes_all},
    {.id = "api.wc.fields",
     .clause = "mrc.h: mrc_poll_cq, struct ibv_wc",
     .what = "a send completion has wr_id, opcode and QP number",
     .body = send_completion_fields},
    {.id = "api.wc.no-receive",
     .clause = "mrc.h: mrc_post_recv",
     .what = "a plain write completes no receive",
     .body = plain_write_completes_no_receive},
    {.id = "api.wc.receive-fields",
     .clause = "mrc.h: mrc_post_recv, struct ibv_wc",
     .what = "a receive completion has opcode, immediate in network order, length and flag",
     .body = receive_fields},
    {.id = "api.wc.immediate-order",
     .clause = "MRC 6.2.1, WriteIMM",
     .certainty = Certainty::kReaders,
     .what = "immediates arrive in the order of posting, each after its bytes",
     .body = immediates_in_order},
    {.id = "api.wc.immediate-covers",
     .clause = "MRC 6.2.1, WriteIMM",
     .certainty = Certainty::kReaders,
     .what = "an immediate comes after all earlier writes of the QP are in place",
     .body = immediate_covers},
    {.id = "api.wc.poll-many",
     .clause = "mrc.h: mrc_poll_cq",
     .what = "one poll takes several completions, none twice",
     .body = many_at_once},
    {.id = "api.wc.max-wimm",
     .clause = "mrc.h: MRC_QP_MAX_WIMM",
     .what = "50 immediates with 2 allowed in flight all arrive, in order",
     .body = more_immediates_than_in_flight},
};

}  // namespace

std::span<const Test> completion_tests() { return kTests; }

}  // namespace weft::conformance
