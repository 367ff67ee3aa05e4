// Many QPs, many threads, and forked children.
#include <dirent.h>

#include <atomic>
#include <memory>
#include <thread>

#include "mrc_end.h"
#include "other_process.h"

namespace weft::mrc_test {
namespace {

// QPs that share CQs and memory, as in a program with many QPs.
struct Crowd {
  Host& host;
  std::vector<std::uint8_t> memory;
  ibv_mr* mr;
  mrc_cq* cq;
  std::vector<mrc_qp*> qps;

  struct Options {
    std::size_t count = 1;
    std::uint32_t bytes = 64;  // for each QP
    std::uint32_t depth = 4;   // of both queues of a QP
  };
  Options options;

  Crowd(Host& on, const Options& with) : host(on), options(with) {
    const auto count = options.count;
    memory.resize(count * options.bytes);
    mr = ibv_reg_mr(host.pd, memory.data(), memory.size(),
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    cq = mrc_create_cq(host.context, static_cast<int>(count * options.depth) * 2, nullptr, nullptr,
                       0);
    for (std::size_t i = 0; i < count; ++i) {
      mrc_qp_init_attr init = mrclib::qp_init({.pd = host.pd, .send_cq = cq, .receive_cq = cq},
                                              {.sends = options.depth, .receives = options.depth});
      qps.push_back(mrc_create_qp(host.context, &init));
    }
  }
  ~Crowd() {
    for (mrc_qp* const qp : qps) EXPECT_EQ(mrc_destroy_qp(qp), 0);
    EXPECT_EQ(mrc_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  }
  Wire wire(std::size_t i) const {
    Wire out;
    EXPECT_EQ(ibv_query_gid(host.verbs, 1, 3, &out.gid), 0);
    EXPECT_EQ(mrc_get_qpn(qps[i], &out.qpn), 0);
    out.psn = 77 + static_cast<std::uint32_t>(i);
    out.rkey = mr->rkey;
    out.at = reinterpret_cast<std::uintptr_t>(memory.data()) + options.bytes * i;
    return out;
  }
  void connect(std::size_t i, const Wire& peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(mrc_modify_qp(qps[i], &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, nullptr, 0), 0);
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.dest_qp_num = peer.qpn;
    attr.rq_psn = peer.psn;
    ASSERT_EQ(mrc_modify_qp(qps[i], &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, nullptr, 0),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = wire(i).psn;
    ASSERT_EQ(mrc_modify_qp(qps[i], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, nullptr, 0), 0);
  }
  // Posts one message on a QP: 64 bytes with an immediate.
  struct Post {
    std::uint32_t message = 0, immediate = 0;
  };
  void post(std::size_t i, const Wire& peer, const Post& what) {
    ibv_sge piece{};
    ibv_send_wr wr{}, *bad = nullptr;
    mrclib::set_write({.id = i,
                       .from = wire(i).at + 64 * what.message,
                       .to = peer.at + 64 * what.message,
                       .size = 64,
                       .lkey = mr->lkey,
                       .rkey = peer.rkey,
                       .with_immediate = true,
                       .immediate = what.immediate},
                      wr, piece);
    ASSERT_EQ(mrc_post_send(qps[i], &wr, &bad), 0);
  }
};

// As wait_for(), but sleeps between polls and waits longer, for many processes on few cores.
ibv_wc asleep_wait_for(mrc_cq* cq) {
  ibv_wc wc{};
  for (const auto until = Clock::now() + kWaitMax; Clock::now() < until;) {
    if (mrc_poll_cq(cq, 1, &wc) == 1) return wc;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return wait_for(cq);
}

TEST(Many, AThousandQpsBetweenTwoProcessesCarryAllMessages) {
  constexpr std::size_t kQps = 1000;
  OtherProcess other([](const Line& line) {
    Host host;
    ASSERT_TRUE(host.is_open());
    Crowd crowd(host, {.count = kQps});
    for (std::size_t i = 0; i < kQps; ++i) {
      line.send(crowd.wire(i));
      crowd.connect(i, line.receive<Wire>());
      ibv_recv_wr wr{}, *bad = nullptr;
      wr.wr_id = i;
      ASSERT_EQ(mrc_post_recv(crowd.qps[i], &wr, &bad), 0);
    }
    line.send(1);
    std::vector<bool> seen(kQps);
    for (std::size_t n = 0; n < kQps; ++n) {
      const ibv_wc wc = wait_for(crowd.cq);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_FALSE(seen.at(wc.wr_id));
      seen[wc.wr_id] = true;
      ASSERT_EQ(wc.imm_data, htobe32(static_cast<std::uint32_t>(wc.wr_id)));
      ASSERT_EQ(first_wrong(crowd.memory.data() + 64 * wc.wr_id, 64, wc.wr_id), 64u);
    }
    line.send(1);
  });
  Host host;
  ASSERT_TRUE(host.is_open());
  Crowd crowd(host, {.count = kQps});
  const Line line = other.line();
  std::vector<Wire> peers;
  for (std::size_t i = 0; i < kQps; ++i) {
    peers.push_back(line.receive<Wire>());
    line.send(crowd.wire(i));
    crowd.connect(i, peers[i]);
    fill(crowd.memory.data() + 64 * i, 64, i);
  }
  line.receive<int>();
  for (std::size_t i = 0; i < kQps; ++i) {
    crowd.post(i, peers[i], {.immediate = static_cast<std::uint32_t>(i)});
  }
  for (std::size_t n = 0; n < kQps; ++n) ASSERT_EQ(wait_for(crowd.cq).status, IBV_WC_SUCCESS);
  line.receive<int>();
  EXPECT_EQ(other.join(), 0);
}

// The processes form a ring. Each writes to the next on several QPs, and checks the bytes from the
// previous one.
TEST(Many, SixtyFourProcessesOnOneHostExchangeAllMessages) {
  static constexpr std::size_t kProcesses = 64, kPairs = 4;
  static constexpr std::uint32_t kMessages = 16, kSize = 64;
  struct Words {
    Wire wires[2 * kPairs];  // first to the next process, then from the previous process
  };
  struct Place {
    std::uint64_t self = 0;
    Wire peers[2 * kPairs];
  };
  std::vector<std::unique_ptr<OtherProcess>> processes;
  for (std::size_t p = 0; p < kProcesses; ++p) {
    processes.push_back(std::make_unique<OtherProcess>([](const Line& line) {
      Host host;
      ASSERT_TRUE(host.is_open());
      Crowd crowd(host, {.count = 2 * kPairs, .bytes = kMessages * kSize, .depth = kMessages});
      Words words;
      for (std::size_t q = 0; q < 2 * kPairs; ++q) words.wires[q] = crowd.wire(q);
      line.send(words);
      const auto place = line.receive<Place>();
      const std::uint64_t before = (place.self + kProcesses - 1) % kProcesses;
      for (std::size_t q = 0; q < 2 * kPairs; ++q) {
        crowd.connect(q, place.peers[q]);
        for (std::uint32_t m = 0; m < kMessages && q >= kPairs; ++m) {
          ibv_recv_wr wr{}, *bad = nullptr;
          wr.wr_id = q;
          ASSERT_EQ(mrc_post_recv(crowd.qps[q], &wr, &bad), 0);
        }
      }
      line.send(1);
      line.receive<int>();  // wait until all processes have posted their receives
      for (std::uint32_t n = 0; n < kPairs * kMessages; ++n) {
        const std::size_t q = n % kPairs, offset = q * kMessages * kSize + n / kPairs * kSize;
        fill(crowd.memory.data() + offset, kSize, place.self << 32 | n);
        crowd.post(q, place.peers[q], {.message = n / static_cast<std::uint32_t>(kPairs)});
      }
      for (std::uint32_t n = 0; n < 2 * kPairs * kMessages; ++n)
        ASSERT_EQ(asleep_wait_for(crowd.cq).status, IBV_WC_SUCCESS);
      for (std::uint32_t n = 0; n < kPairs * kMessages; ++n) {
        const std::size_t offset = (kPairs + n % kPairs) * kMessages * kSize + n / kPairs * kSize;
        ASSERT_EQ(first_wrong(crowd.memory.data() + offset, kSize, before << 32 | n), kSize);
      }
      line.send(1);
      line.receive<int>();  // wait until all processes have received everything
    }));
  }
  std::vector<Words> words;
  for (const auto& process : processes) words.push_back(process->line().receive<Words>());
  for (std::size_t p = 0; p < kProcesses; ++p) {
    Place place{.self = p, .peers = {}};
    for (std::size_t q = 0; q < kPairs; ++q) {
      place.peers[q] = words[(p + 1) % kProcesses].wires[kPairs + q];
      place.peers[kPairs + q] = words[(p + kProcesses - 1) % kProcesses].wires[q];
    }
    processes[p]->line().send(place);
  }
  for (int barrier = 0; barrier < 2; ++barrier) {
    for (const auto& process : processes) process->line().receive<int>();
    for (const auto& process : processes) process->line().send(1);
  }
  for (const auto& process : processes) EXPECT_EQ(process->join(), 0);
}

// At the same time, some threads post on one QP, some poll one CQ, and another creates and destroys
// QPs.
TEST(Many, ThreadsAsVerbsPromise) {
  constexpr int kPosters = 3, kPollers = 2, kEach = 2000;
  Host host;
  End a(host, {.depth = 64, .cq_entries = 4096}), b(host);
  const Wire of_a = a.wire(), of_b = b.wire();
  a.connect(of_b);
  b.connect(of_a);
  std::atomic<int> completed{0}, failed{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kPosters; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        while (a.post(of_b, {.from = static_cast<std::uint64_t>(t) * 64, .size = 64}) == ENOMEM)
          std::this_thread::yield();
      }
    });
  }
  for (int t = 0; t < kPollers; ++t) {
    threads.emplace_back([&] {
      ibv_wc wc[8];
      while (completed < kPosters * kEach && !stop) {
        const int count = mrc_poll_cq(a.send_cq, 8, wc);
        for (int i = 0; i < count; ++i) failed += wc[i].status != IBV_WC_SUCCESS ? 1 : 0;
        if (count > 0) completed += count;
      }
    });
  }
  std::thread others([&] {
    while (!stop) {
      End more(host, {.bytes = 4096, .depth = 2});
      EXPECT_EQ(more.to_init(), 0);
      EXPECT_EQ(more.to(IBV_QPS_ERR), 0);
    }
  });
  const auto until = Clock::now() + kWaitMax;
  while (completed < kPosters * kEach && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop = true;
  others.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(completed, kPosters * kEach);
  EXPECT_EQ(failed, 0);
}

int open_descriptors() {
  int count = 0;
  DIR* const dir = opendir("/proc/self/fd");
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

TEST(Fork, AForkedChildGetsEpermAndTheParentContinues) {
  Host host;
  End a(host), b(host);
  const Wire of_a = a.wire(), of_b = b.wire();
  a.connect(of_b);
  b.connect(of_a);
  const int open_here = open_descriptors();
  const pid_t child = fork();
  if (child == 0) {
    ibv_wc wc{};
    bool all = a.post(of_b, {.size = 8}) == EPERM && a.post_receive(1) == -1 && errno == EPERM;
    all &= mrc_poll_cq(a.send_cq, 1, &wc) == -1 && errno == EPERM;
    all &= a.to(IBV_QPS_ERR) == EPERM && mrc_destroy_qp(a.qp) == EPERM;
    all &= mrc_create_context(host.verbs, nullptr) == nullptr && errno == EPERM;
    all &= ibv_alloc_pd(host.verbs) == nullptr && errno == EPERM;
    all &= ibv_dereg_mr(a.mr) == EPERM && ibv_close_device(host.verbs) == -1;
    all &= open_descriptors() < open_here;  // the child has closed the parent's sockets
    _exit(all ? 0 : 1);
  }
  // The parent continues to use its device.
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(a.post(of_b, {.size = 10'000}), 0);
    ASSERT_EQ(wait_for(a.send_cq).status, IBV_WC_SUCCESS);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(a.post(of_b, {.size = 8}), 0);
  EXPECT_EQ(wait_for(a.send_cq).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weft::mrc_test
