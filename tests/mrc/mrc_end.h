// One end of a QP as an application makes it through mrc.h and verbs: device, context, memory, CQs,
// QP. For tests: every step is checked, and the destructors destroy everything in order.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <mrc/mrc.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "mrclib/set_up.h"

namespace weft::mrc_test {

using Clock = std::chrono::steady_clock;
inline constexpr auto kWaitMax = std::chrono::seconds(20);

// A process reads its settings only once, and forked children inherit them. So a test with other
// settings needs a process that has not opened a device yet. ctest starts a new process for every
// test.
inline bool settings_were_read = false;
#define WEFT_NEEDS_FRESH_PROCESS() \
  if (settings_were_read) GTEST_SKIP() << "another test of this process has read the settings"

inline ibv_context* open_weft(const std::string& name) {
  settings_were_read = true;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ibv_context* context = nullptr;
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (ibv_get_device_name(list[i]) == name) context = ibv_open_device(list[i]);
  }
  if (list != nullptr) ibv_free_device_list(list);
  return context;
}

// What each end of a QP must know of the other.
struct Wire {
  ibv_gid gid{};
  std::uint32_t qpn = 0, psn = 0, rkey = 0;
  std::uint64_t at = 0, size = 0;
};

// A device with its context and protection domain.
struct Host {
  ibv_context* verbs;
  mrc_context* context = nullptr;
  ibv_pd* pd = nullptr;
  explicit Host(const std::string& name = "weft0") : verbs(open_weft(name)) {
    if (verbs == nullptr) return;
    context = mrc_create_context(verbs, nullptr);
    pd = ibv_alloc_pd(verbs);
  }
  ~Host() {
    if (pd != nullptr) {
      EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
    if (context != nullptr) {
      EXPECT_EQ(mrc_destroy_context(context), 0);
    }
    if (verbs != nullptr) {
      EXPECT_EQ(ibv_close_device(verbs), 0);
    }
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  bool is_open() const { return context != nullptr && pd != nullptr; }
};

struct EndOptions {
  std::size_t bytes = 1 << 20;
  int depth = 128;
  std::uint32_t pieces = 1, inline_bytes = 0;
  int signal_all = 0;
  mrc_comp_channel* channel = nullptr;
  int cq_entries = 256;
  int access = mrclib::kRemoteWrite;
};

struct End {
  Host& host;
  std::vector<std::uint8_t> memory;
  ibv_mr* mr = nullptr;
  mrc_cq *send_cq = nullptr, *receive_cq = nullptr;
  mrc_qp* qp = nullptr;
  std::uint32_t psn = 0x123456;

  explicit End(Host& on, const EndOptions& options = {}) : host(on), memory(options.bytes) {
    mr = ibv_reg_mr(host.pd, memory.data(), memory.size(), static_cast<unsigned>(options.access));
    EXPECT_NE(mr, nullptr);
    send_cq = mrc_create_cq(host.context, options.cq_entries, this, options.channel, 0);
    receive_cq = mrc_create_cq(host.context, options.cq_entries, this, options.channel, 0);
    const auto depth = static_cast<std::uint32_t>(options.depth);
    mrc_qp_init_attr init =
        mrclib::qp_init({.pd = host.pd, .send_cq = send_cq, .receive_cq = receive_cq},
                        {.sends = depth,
                         .receives = depth,
                         .pieces = options.pieces,
                         .inline_bytes = options.inline_bytes});
    init.sq_sig_all = options.signal_all;
    qp = mrc_create_qp(host.context, &init);
    EXPECT_NE(qp, nullptr);
  }
  ~End() {
    if (qp != nullptr) {
      EXPECT_EQ(mrc_destroy_qp(qp), 0);
    }
    EXPECT_EQ(mrc_destroy_cq(send_cq), 0);
    EXPECT_EQ(mrc_destroy_cq(receive_cq), 0);
    if (mr != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  Wire wire() const {
    Wire out;
    EXPECT_EQ(ibv_query_gid(host.verbs, 1, 3, &out.gid), 0);
    EXPECT_EQ(mrc_get_qpn(qp, &out.qpn), 0);
    out.psn = psn;
    out.rkey = mr->rkey;
    out.at = reinterpret_cast<std::uintptr_t>(memory.data());
    out.size = memory.size();
    return out;
  }

  int modify(mrclib::QpChange change, const mrc_qp_attr* mrc = nullptr, int mask = 0) {
    mrc_qp_attr copy{};
    if (mrc != nullptr) copy = *mrc;
    return mrc_modify_qp(qp, &change.attr, change.mask, mrc != nullptr ? &copy : nullptr, mask);
  }
  int to_init(int access = mrclib::kRemoteWrite) {
    return modify(mrclib::to_init({.access = access}));
  }
  int to_rtr(const Wire& peer, ibv_mtu mtu = IBV_MTU_4096) {
    return modify(mrclib::to_rtr({.gid = peer.gid, .qpn = peer.qpn, .psn = peer.psn, .mtu = mtu}));
  }
  // Sets only the retry counters that are given.
  int to_rts(const mrc_qp_attr* mrc = nullptr, int mask = 0) {
    return modify(mrclib::to_rts(psn), mrc, mask);
  }
  int to(ibv_qp_state state) { return modify(mrclib::to_state(state)); }
  void connect(const Wire& peer) {
    EXPECT_EQ(to_init(), 0);
    EXPECT_EQ(to_rtr(peer), 0);
    EXPECT_EQ(to_rts(), 0);
  }
  ibv_qp_state state() const {
    ibv_qp_attr attr{};
    EXPECT_EQ(mrc_query_qp(qp, &attr, IBV_QP_STATE, nullptr, 0, nullptr), 0);
    return attr.qp_state;
  }

  struct Write {
    std::uint64_t from = 0, to = 0;  // offsets in the memory of the two ends
    std::uint32_t size = 0;
    std::uint64_t id = 0;
    unsigned flags = IBV_SEND_SIGNALED;
    bool with_immediate = false;
    std::uint32_t immediate = 0;
  };
  int post(const Wire& peer, const Write& write) {
    ibv_sge piece{};
    ibv_send_wr wr{}, *bad = nullptr;
    mrclib::set_write({.id = write.id,
                       .from = reinterpret_cast<std::uintptr_t>(memory.data()) + write.from,
                       .to = peer.at + write.to,
                       .size = write.size,
                       .lkey = mr->lkey,
                       .rkey = peer.rkey,
                       .with_immediate = write.with_immediate,
                       .immediate = write.immediate,
                       .flags = write.flags},
                      wr, piece);
    return mrc_post_send(qp, &wr, &bad);
  }
  int post_receive(std::uint64_t id) {
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    return mrc_post_recv(qp, &wr, &bad);
  }
};

// The next completion. If none arrives, the test fails and the result has wr_id 0xdead.
inline ibv_wc wait_for(mrc_cq* cq) {
  const auto until = Clock::now() + kWaitMax;
  ibv_wc wc{};
  for (;;) {
    const int count = mrc_poll_cq(cq, 1, &wc);
    if (count == 1) return wc;
    if (count < 0 || Clock::now() > until) break;
  }
  ADD_FAILURE() << "no completion";
  wc.wr_id = 0xdead;
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

inline std::uint8_t pattern(std::uint64_t seed, std::uint64_t at) {
  return static_cast<std::uint8_t>((seed * 0x9e3779b97f4a7c15u + at * 31) >> 16 ^ at);
}
inline void fill(std::uint8_t* to, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size; ++i) to[i] = pattern(seed, i);
}
// The index of the first wrong byte; `size` if all bytes are right.
inline std::size_t first_wrong(const std::uint8_t* at, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size; ++i) {
    if (at[i] != pattern(seed, i)) return i;
  }
  return size;
}

}  // namespace weft::mrc_test
