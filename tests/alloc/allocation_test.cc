// post_*, on_* and poll_* allocate no memory: the transport allocates at construction, in create_qp
// and in connect. on_packet and poll of the software switch allocate none either. This program
// replaces the global allocator by one that counts allocations.
#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/prng.h"
#include "seal/secure_direction.h"
#include "softswitch/test_live_fabric.h"
#include "transport/endpoint.h"
#include "transport/test_pair.h"

namespace {

std::uint64_t allocations = 0;

void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* const memory =
      alignment > alignof(std::max_align_t)
          ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
          : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

// OpenSSL allocates through functions of its own. They must be set before OpenSSL is used.
void* crypto_allocate(std::size_t size, const char*, int) { return allocate(size, 1); }
void* crypto_resize(void* memory, std::size_t size, const char*, int) {
  ++allocations;
  return std::realloc(memory, size);
}
void crypto_free(void* memory, const char*, int) { std::free(memory); }
const int crypto_is_counted = CRYPTO_set_mem_functions(crypto_allocate, crypto_resize, crypto_free);

}  // namespace

// Never inlined: otherwise the compiler sees free() for memory from an operator new that it did not
// inline, and warns.
#define COUNTED [[gnu::noinline]]
COUNTED void* operator new(std::size_t size) { return allocate(size, 1); }
COUNTED void* operator new[](std::size_t size) { return allocate(size, 1); }
COUNTED void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
COUNTED void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
COUNTED void operator delete(void* memory) noexcept { std::free(memory); }
COUNTED void operator delete[](void* memory) noexcept { std::free(memory); }
COUNTED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
COUNTED void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
COUNTED void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
COUNTED void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
COUNTED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
COUNTED void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#undef COUNTED

namespace weft::transport {
namespace {

using test::Fate;
using test::Pair;

TEST(Allocation, TheAllocatorCountsAllocations) {
  const std::uint64_t before = allocations;
  auto* const some = new std::array<char, 100>;
  EXPECT_EQ(allocations, before + 1);
  delete some;
}

struct WorkCounts {
  std::uint32_t completions = 0, errors = 0, refused = 0;
};

// Polls all completions, then posts more than fits, so that some posts are refused.
void poll_and_post(Pair& pair, const Pair::Qps& qps, int end, std::uint32_t size,
                   WorkCounts& counts) {
  std::array<Completion, 16> done;
  for (std::size_t n = done.size(); n == done.size();) {
    n = pair.end(end).poll_completions(done);
    for (std::size_t i = 0; i < n; ++i) {
      ++counts.completions;
      counts.errors += done[i].status != Status::kOk;
    }
  }
  // A refused post must not allocate either.
  for (int i = 0; i < 5; ++i) {
    const bool posted =
        pair.end(1 - end).post_receive(pair.now, qps.qpn[1 - end], 1).has_value() &&
        pair.write(end, qps.qpn[end], {.size = size, .with_immediate = true}).has_value();
    counts.refused += !posted;
  }
}

TEST(Allocation, TheTransportDoesNotAllocateWhileDataMoves) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    auto options = Pair::defaults();
    options.endpoint.bad_ev_count_max = 4;
    options.endpoint.share_path_health = seed % 2 == 0;
    options.endpoint.receive_queue_max = 64;
    options.endpoint.completion_queue_max = 256;
    Pair pair(options);
    std::array<Pair::Qps, 3> qps;
    for (auto& q : qps) q = pair.connect();
    Prng prng(seed);
    bool plane_dead = false, silent = false;
    pair.fate = [&](int, const world::Datagram& d) {
      if (silent || (plane_dead && d.port == 1) || d.entropy == 3) return Fate::kDrop;
      const std::uint32_t draw = prng.below(100);
      if (draw < 2) return Fate::kDrop;
      if (draw < 3) return Fate::kDamage;
      if (draw < 6) return Fate::kTrim;
      if (draw < 8) return Fate::kTrimLastHop;
      if (draw < 10) return Fate::kDouble;
      return draw < 15 ? Fate::kMark : Fate::kDeliver;
    };
    WorkCounts counts;
    const std::uint64_t before = allocations;
    for (int step = 0; step < 400; ++step) {
      for (const auto& q : qps) {
        for (int end = 0; end < 2; ++end) poll_and_post(pair, q, end, prng.below(30'000), counts);
      }
      if (step % 100 == 40) pair.set_port(0, 1, false);
      if (step % 100 == 50) pair.set_port(0, 1, true);
      plane_dead = step % 100 >= 60 && step % 100 < 80;
      silent = step % 100 == 90;
      pair.run_for(silent ? Duration::ms(5) : Duration::us(100));
    }
    const std::uint64_t after = allocations;
    EXPECT_EQ(after - before, 0u);
    // The run must have exercised every case below.
    EXPECT_GT(counts.completions, 1000u);
    EXPECT_EQ(counts.errors, 0u);
    EXPECT_GT(counts.refused, 0u);
    EXPECT_GT(pair.sent, 10'000u);
    for (const char* name :
         {"transport.retransmits", "transport.lost_inferred", "transport.lost_trimmed",
          "transport.lost_port", "transport.timeouts", "transport.silences", "transport.marks",
          "transport.reliability_probes", "transport.ev_probes", "transport.port_status_updates",
          "transport.evs_condemned", "transport.duplicates", "transport.nacks_sent",
          "transport.drop_damaged"}) {
      EXPECT_GT(pair.counter(0, name), 0u) << name;
    }
  }
}

TEST(Allocation, TheTransportDoesNotAllocateWhenAQpFails) {
  Pair pair;
  const auto qps = pair.connect();
  WorkCounts counts;
  std::uint64_t before = allocations;
  poll_and_post(pair, qps, 0, 20'000, counts);
  (void)pair.write(0, qps.qpn[0], {.rkey = 0x99});
  pair.run_for(Duration::ms(5));
  poll_and_post(pair, qps, 0, 20'000, counts);
  poll_and_post(pair, qps, 1, 20'000, counts);
  const std::uint64_t after = allocations;
  EXPECT_EQ(after - before, 0u);
  EXPECT_GT(counts.errors, 0u);
  EXPECT_EQ(pair.end(0).qp_state(qps.qpn[0]), QpState::kError);
  EXPECT_EQ(pair.end(1).qp_state(qps.qpn[1]), QpState::kError);
}

}  // namespace
}  // namespace weft::transport

namespace weft::softswitch {
namespace {

// An incast through the software switch, with marks, trims, drops, losses and deliveries.
TEST(Allocation, TheSoftwareSwitchDoesNotAllocate) {
  LiveFabricConfig config = config_of(one_switch(4));
  config.nic_queue_bytes = 60'000;
  LiveFabric fabric(config);
  fabric::FaultEvent loss{.action = fabric::FaultAction::kImpair,
                          .place = fabric::FaultPlace::kAllLinks};
  loss.impairment.share_of_2_32 = 1u << 26;
  ASSERT_TRUE(fabric.apply(at_us(0), loss));
  std::vector<std::vector<std::byte>> packets;
  for (const fabric::HostIndex host : {1u, 2u, 3u}) {
    packets.push_back(make_packet(Bench::spec(host, 0)));
    PacketSpec plain = Bench::spec(host, 0);
    plain.dscp = world::Dscp::kNoTrim;
    packets.push_back(make_packet(plain));
  }
  std::array<LiveFabric::Delivery, 16> out;
  std::uint64_t delivered = 0;
  const std::uint64_t before = allocations;
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t which = static_cast<std::size_t>(i) % packets.size();
    fabric.on_packet(at_us(i * 12), static_cast<fabric::HostIndex>(which / 2 + 1), 0,
                     packets[which]);
    delivered += fabric.poll(at_us(i * 12), out);
  }
  const std::uint64_t after = allocations;
  EXPECT_EQ(after - before, 0u);
  const LinkCounters& port = fabric.counters(fabric.topology().host_down(0, 0));
  EXPECT_GT(delivered, 5'000u);
  EXPECT_GT(port.trims, 0u);
  EXPECT_GT(port.ecn_marks, 0u);
  EXPECT_GT(port.drops_queue, 0u);
  EXPECT_GT(port.drops_fault, 0u);
}

TEST(Allocation, SealingAndOpeningAPacketDoNotAllocate) {
  ASSERT_EQ(crypto_is_counted, 1);
  const std::uint64_t before_keys = allocations;
  seal::SendDirection out(seal::Key{}, seal::kEpochShift);
  seal::ReceiveDirection in(seal::Key{}, seal::kEpochShift);
  EXPECT_GT(allocations, before_keys) << "key setup allocates: OpenSSL must be counted";
  std::array<std::byte, wire::kHeaderSizeMax> write{}, nack{};
  const std::size_t write_size =
      wire::emit({.opcode = wire::Opcode::kWriteOnly}, wire::Write{}, write);
  const std::size_t nack_size = wire::emit({.opcode = wire::Opcode::kNack}, wire::Nack{}, nack);
  std::array<std::byte, 4096> payload{};
  std::array<std::byte, 4300> packet;
  bool all_opened = true;
  const std::uint64_t before = allocations;
  for (int i = 0; i < 1000; ++i) {
    std::size_t size =
        out.seal({.header = ConstBytes(write).first(write_size), .payload = payload}, packet);
    all_opened &= in.open(Bytes(packet).first(size), {}).has_value();
    size = out.seal({.header = ConstBytes(nack).first(nack_size)}, packet);
    packet[3] ^= std::byte{1};  // refusing a forged packet must not allocate either
    all_opened &= !in.open(Bytes(packet).first(size), {}).has_value();
  }
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(all_opened);
}

}  // namespace
}  // namespace weft::softswitch
