// Two processes with different settings connect a QP and write. A third process forwards the values
// that they exchange. For tests of what carries a QP's packets: shared memory or the planes.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "mrc_end.h"
#include "other_process.h"

namespace weft::mrc_test {

using Environment = std::map<std::string, std::string>;

// True if this process has mapped a shared memory ring. Rings are memfds.
inline bool has_rings() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") != std::string::npos) return true;
  }
  return false;
}

// An End in a child process, which has its own settings because it had not opened a device before.
struct Child {
  Host host;
  End end;
  explicit Child(const EndOptions& options = {}) : end(host, options) {}
  Wire meet(const Line& line) {
    line.send(end.wire());
    return line.receive<Wire>();
  }
};

inline void use(const Environment& environment) {
  for (const auto& [name, value] : environment)
    ASSERT_EQ(setenv(name.c_str(), value.c_str(), 1), 0);
}

inline constexpr std::uint32_t kSizes[] = {0, 1, 8, 4097, 65'536, 65'537, 700'001};

// The writing process: writes each size with an immediate and waits for the peer's answer each
// time. Sends has_rings() at the end.
inline void write_all(const Line& line) {
  Child child({.bytes = 1 << 20, .pieces = 4});
  ASSERT_TRUE(child.host.is_open());
  const Wire peer = child.meet(line);
  child.end.connect(peer);
  line.send(1);
  line.receive<int>();
  std::uint64_t seed = 1;
  for (const std::uint32_t size : kSizes) {
    fill(child.end.memory.data(), size, seed++);
    ASSERT_EQ(child.end.post(peer, {.size = size, .with_immediate = true, .immediate = size}), 0);
    ASSERT_EQ(wait_for(child.end.send_cq).status, IBV_WC_SUCCESS) << size;
    line.send(size);
    line.receive<int>();
  }
  // A write of four pieces, whose sizes are no multiples of the packet size.
  fill(child.end.memory.data(), 300'000, 99);
  std::vector<ibv_sge> sges;
  for (std::uint32_t at = 0; at < 300'000; at += 75'000) {
    sges.push_back({.addr = reinterpret_cast<std::uintptr_t>(child.end.memory.data()) + at,
                    .length = 75'000,
                    .lkey = child.end.mr->lkey});
  }
  ibv_send_wr wr{}, *bad = nullptr;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = peer.at;
  wr.wr.rdma.rkey = peer.rkey;
  ASSERT_EQ(mrc_post_send(child.end.qp, &wr, &bad), 0);
  // Meanwhile the peer only reads its memory and calls no function of the library.
  line.send(has_rings());
  line.receive<int>();
  EXPECT_EQ(wait_for(child.end.send_cq).status, IBV_WC_SUCCESS);
}

// Waits until all bytes have the pattern. Another thread writes them meanwhile, as is usual in RDMA
// programs; TSan must not report this intended race.
__attribute__((no_sanitize("thread"), noinline)) inline bool spin_until_all(const std::uint8_t* at,
                                                                            std::uint32_t size,
                                                                            std::uint64_t seed) {
  const auto* const bytes = reinterpret_cast<const volatile std::uint8_t*>(at);
  const auto until = Clock::now() + kWaitMax;
  for (std::uint32_t i = 0; i < size;) {
    if (bytes[i] == pattern(seed, i)) {
      ++i;
    } else if (Clock::now() > until) {
      return false;
    } else {
      std::this_thread::yield();
    }
  }
  return true;
}

inline void receive_all(const Line& line) {
  Child child({.bytes = 1 << 20});
  ASSERT_TRUE(child.host.is_open());
  const Wire peer = child.meet(line);
  child.end.connect(peer);
  for (std::uint64_t i = 0; i < std::size(kSizes); ++i) ASSERT_EQ(child.end.post_receive(i), 0);
  line.send(1);
  line.receive<int>();
  std::uint64_t seed = 1;
  for (const std::uint32_t size : kSizes) {
    EXPECT_EQ(line.receive<std::uint32_t>(), size);
    const ibv_wc wc = wait_for(child.end.receive_cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, size);
    EXPECT_EQ(wc.imm_data, htobe32(size));
    EXPECT_EQ(first_wrong(child.end.memory.data(), size, seed++), size);
    line.send(1);
  }
  EXPECT_TRUE(spin_until_all(child.end.memory.data(), 300'000, 99));
  line.send(has_rings());
  line.receive<int>();
}

// Runs both processes and forwards all values between them. Returns what each process sent at its
// end.
struct Rings {
  bool at_writer = false, at_receiver = false;
};
inline Rings run_pair(const Environment& writer, const Environment& taker) {
  OtherProcess a([&](const Line& line) {
    use(writer);
    write_all(line);
  });
  OtherProcess b([&](const Line& line) {
    use(taker);
    receive_all(line);
  });
  const Wire of_a = a.line().receive<Wire>(), of_b = b.line().receive<Wire>();
  a.line().send(of_b);
  b.line().send(of_a);
  a.line().receive<int>();
  b.line().receive<int>();
  a.line().send(1);
  b.line().send(1);
  for (const std::uint32_t size : kSizes) {
    EXPECT_EQ(a.line().receive<std::uint32_t>(), size);
    b.line().send(size);
    b.line().receive<int>();
    a.line().send(1);
  }
  Rings out;
  out.at_writer = a.line().receive<bool>();
  out.at_receiver = b.line().receive<bool>();
  a.line().send(1);
  b.line().send(1);
  EXPECT_EQ(a.join(), 0);
  EXPECT_EQ(b.join(), 0);
  return out;
}

}  // namespace weft::mrc_test
