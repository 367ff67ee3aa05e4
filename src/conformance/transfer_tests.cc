// Writes from one process into the memory of another process.
#include "conformance/companion.h"
#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kMemory = 5 << 20, kGuard = 64;

// Sent to the second process, which checks its memory and answers. It expects `size` bytes of
// pattern `seed` at `to`, and unchanged guard bytes before and after them.
struct Expectation {
  std::uint64_t seed = 0, to = 0, size = 0;
};
void run_target(Session& session, const Line& line) {
  Host host(session);
  End end(host, {.bytes = kMemory});
  std::memset(end.memory.data(), 0xcc, end.memory.size());
  line.send(end.address());
  end.connect(line.receive<Address>(session), IBV_MTU_4096);
  for (int i = 0; i < 16; ++i) end.receive(static_cast<std::uint64_t>(i));
  line.send(true);
  for (;;) {
    const auto expected = line.receive<Expectation>(session);
    if (expected.seed == 0) return;
    const ibv_wc wc = end.wait_receive();
    equal("status", status_name(wc.status), status_name(IBV_WC_SUCCESS));
    const std::uint8_t* const at = end.memory.data() + expected.to;
    is_pattern(at, expected.size, expected.seed);
    for (std::size_t i = 1; i <= kGuard; ++i) {
      holds(at[-static_cast<std::ptrdiff_t>(i)] == 0xcc && at[expected.size + i - 1] == 0xcc,
            "bytes beside the target as they were", "they changed");
    }
    std::memset(end.memory.data() + expected.to, 0xcc, expected.size);
    end.receive(0);
    line.send(true);
  }
}

// Each write has its own pattern. A write with immediate follows it and tells the receiver that it
// has arrived.
void transfer(Session& session, std::uint32_t size, std::uint64_t from, std::uint64_t to) {
  Companion other(session, run_target);
  Host host(session);
  End end(host, {.bytes = kMemory});
  const Line line = other.line();
  const auto peer = other.receive<Address>();
  line.send(end.address());
  end.connect(peer, IBV_MTU_4096);
  other.receive<bool>();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    fill(end.memory.data() + from, size, seed);
    end.write(peer, {.from = from, .to = to, .size = size, .id = seed});
    completed_as(end.wait_send(), IBV_WC_SUCCESS, seed);
    end.write(peer, {.size = 0, .id = 100 + seed, .immediate = 7});
    completed_as(end.wait_send(), IBV_WC_SUCCESS, 100 + seed);
    line.send(Expectation{.seed = seed, .to = to, .size = size});
    other.receive<bool>();
  }
  line.send(Expectation{});
  other.join();
}

template <std::uint32_t kSize>
void bytes_arrive(Session& session) {
  transfer(session, kSize, 4096, 4096);
}

// Here the write with immediate itself carries the bytes.
void with_immediate(Session& session) {
  Companion other(session, run_target);
  Host host(session);
  End end(host, {.bytes = kMemory});
  const Line line = other.line();
  const auto peer = other.receive<Address>();
  line.send(end.address());
  end.connect(peer, IBV_MTU_4096);
  other.receive<bool>();
  std::uint64_t seed = 1;
  for (const std::uint32_t size : {0u, 1u, 4095u, 4096u, 4097u, 200'000u}) {
    fill(end.memory.data(), size, seed);
    end.write(peer, {.to = 4096, .size = size, .id = seed, .immediate = 7});
    line.send(Expectation{.seed = seed, .to = 4096, .size = size});
    other.receive<bool>();
    completed_as(end.wait_send(), IBV_WC_SUCCESS, seed);
    ++seed;
  }
  line.send(Expectation{});
  other.join();
}

// Both ends write to each other at the same time.
void both_ways(Session& session) {
  Pair pair(session);
  constexpr std::uint32_t kSize = 400'000;
  fill(pair.a.memory.data(), kSize, 21);
  fill(pair.b.memory.data(), kSize, 22);
  pair.a.write(pair.b.address(), {.to = 500'000, .size = kSize, .id = 1});
  pair.b.write(pair.a.address(), {.to = 500'000, .size = kSize, .id = 2});
  completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 1);
  completed_as(pair.b.wait_send(), IBV_WC_SUCCESS, 2);
  is_pattern(pair.b.memory.data() + 500'000, kSize, 21);
  is_pattern(pair.a.memory.data() + 500'000, kSize, 22);
}

void pieces_arrive_as_one(Session& session) {
  Pair pair(session, {.pieces = 4});
  const std::uint32_t sizes[] = {1, 4096, 3, 5001};
  ibv_sge sges[4];
  std::vector<std::uint8_t> whole(1 + 4096 + 3 + 5001);
  fill(whole.data(), whole.size(), 5);
  std::size_t at = 0, done = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    std::memcpy(pair.a.memory.data() + at, whole.data() + done, sizes[i]);
    sges[i] = {.addr = reinterpret_cast<std::uintptr_t>(pair.a.memory.data()) + at,
               .length = sizes[i],
               .lkey = pair.a.mr->lkey};
    at += sizes[i] + 777;
    done += sizes[i];
  }
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = 9;
  wr.sg_list = sges;
  wr.num_sge = 4;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = pair.b.address().at;
  wr.wr.rdma.rkey = pair.b.address().rkey;
  works("mrc_post_send of 4 pieces", pair.a.library.mrc_post_send(pair.a.qp, &wr, &bad));
  completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, 9);
  is_pattern(pair.b.memory.data(), whole.size(), 5);
}

void inline_data(Session& session) {
  Pair pair(session, {.inline_bytes = 64});
  for (std::uint64_t i = 1; i <= 20; ++i) {
    std::uint8_t bytes[64];
    fill(bytes, sizeof(bytes), i);
    ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(bytes), .length = 64, .lkey = 0};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    wr.wr.rdma.remote_addr = pair.b.address().at;
    wr.wr.rdma.rkey = pair.b.address().rkey;
    works("mrc_post_send of inline data", pair.a.library.mrc_post_send(pair.a.qp, &wr, &bad));
    // after the post the program may reuse the memory of inline bytes
    std::memset(bytes, 0, sizeof(bytes));
    completed_as(pair.a.wait_send(), IBV_WC_SUCCESS, i);
    is_pattern(pair.b.memory.data(), 64, i);
  }
}

#define WEFT_CLAUSE "mrc.h: mrc_post_send, IBV_WR_RDMA_WRITE"
#define WEFT_WHAT(size) \
  size " bytes to another process arrive as they were, and nothing beside them"
constexpr Test kTests[] = {
    {.id = "api.write.size-0",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("0"),
     .body = bytes_arrive<0>},
    {.id = "api.write.size-1",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("1"),
     .body = bytes_arrive<1>},
    {.id = "api.write.size-mtu-1",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("4095"),
     .body = bytes_arrive<4095>},
    {.id = "api.write.size-mtu",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("4096"),
     .body = bytes_arrive<4096>},
    {.id = "api.write.size-mtu+1",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("4097"),
     .body = bytes_arrive<4097>},
    {.id = "api.write.size-64k",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("65536"),
     .body = bytes_arrive<65536>},
    {.id = "api.write.size-1m",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("1048576"),
     .body = bytes_arrive<1048576>},
    {.id = "api.write.size-4m+3",
     .clause = WEFT_CLAUSE,
     .what = WEFT_WHAT("4194307"),
     .body = bytes_arrive<4194307>},
    {.id = "api.write.unaligned",
     .clause = WEFT_CLAUSE,
     .what = "100003 bytes from and to odd addresses arrive as they were",
     .body = [](Session& s) { transfer(s, 100'003, 4097, 8191); }},
    {.id = "api.write.immediate",
     .clause = "mrc.h: mrc_post_send, IBV_WR_RDMA_WRITE_WITH_IMM",
     .what = "a write with immediate carries its bytes, from 0 to 200000 of them",
     .body = with_immediate},
    {.id = "api.write.both-ways",
     .clause = WEFT_CLAUSE,
     .what = "two ends write into each other",
     .body = both_ways},
    {.id = "api.write.gather",
     .clause = "mrc.h: struct ibv_send_wr, sg_list",
     .what = "pieces from several places arrive as one message",
     .body = pieces_arrive_as_one},
    {.id = "api.write.inline",
     .clause = "mrc.h: IBV_SEND_INLINE",
     .what = "the program may reuse inline bytes after the post, and they need no key",
     .body = inline_data},
};

}  // namespace

std::span<const Test> transfer_tests() { return kTests; }

}  // namespace weft::conformance
