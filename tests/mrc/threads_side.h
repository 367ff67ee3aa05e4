// One of the two processes of the thread test. Some of its threads post on QPs that share a CQ,
// others poll the CQ, one sleeps on a completion channel, one creates, modifies and destroys QPs,
// CQs and regions, one is a controller, and one calls query functions.
#pragma once

#include <fcntl.h>
#include <mrc/mrc_ctl.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "mrc_end.h"
#include "other_process.h"

namespace weft::mrc_test {

inline constexpr std::uint32_t kQps = 4, kPosters = 3, kPollers = 2;
inline constexpr std::uint32_t kWritesEach = 400;  // by each poster, over all QPs
inline constexpr std::uint32_t kImmediateEvery = 8;
inline constexpr std::uint32_t kReceives =
    64;  // receives posted on each QP; each is posted again after its completion
inline constexpr std::uint32_t kWriteMax = 9000, kPlaces = kQps * kPosters;
inline constexpr auto kWaitMaxThreads =
    std::chrono::seconds(120);  // long enough for TSan on a busy machine

// One of the two ends.
class Side {
 public:
  // `place` is 0 in one process and 1 in the other. It selects the profiles that this process uses.
  explicit Side(std::uint32_t place)
      : place_(place), source_(kPlaces * kWriteMax), landing_(kPlaces * kWriteMax) {
    if (!host_.is_open()) return;
    EXPECT_EQ(mrc_create_comp_channel(host_.context, &channel_), 0);
    send_cq_ = mrc_create_cq(host_.context, 4096, nullptr, nullptr, 0);
    receive_cq_ = mrc_create_cq(host_.context, 4096, nullptr, channel_, 0);
    // The bytes for one place of the peer's memory are always the same, so the order of the writes
    // does not matter.
    for (std::uint32_t p = 0; p < kPlaces; ++p) fill(source_.data() + p * kWriteMax, kWriteMax, p);
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    from_ = ibv_reg_mr(host_.pd, source_.data(), source_.size(), access);
    into_ = ibv_reg_mr(host_.pd, landing_.data(), landing_.size(), access);
    for (mrc_qp*& qp : qps_) qp = make_qp();
  }
  ~Side() {
    for (mrc_qp* const qp : qps_) {
      if (qp != nullptr) {
        EXPECT_EQ(mrc_destroy_qp(qp), 0);
      }
    }
    EXPECT_EQ(mrc_destroy_cq(send_cq_), 0);
    EXPECT_EQ(mrc_destroy_cq(receive_cq_), 0);
    EXPECT_EQ(mrc_destroy_comp_channel(channel_), 0);
    EXPECT_EQ(ibv_dereg_mr(from_), 0);
    EXPECT_EQ(ibv_dereg_mr(into_), 0);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  bool is_open() const { return host_.is_open() && qps_[kQps - 1] != nullptr; }

  void connect(const Line& line) {
    for (std::uint32_t q = 0; q < kQps; ++q) {
      Wire ours;
      EXPECT_EQ(ibv_query_gid(host_.verbs, 1, 3, &ours.gid), 0);
      EXPECT_EQ(mrc_get_qpn(qps_[q], &ours.qpn), 0);
      ours.psn = 0xfffff0 + q;
      ours.rkey = into_->rkey;
      ours.at = reinterpret_cast<std::uintptr_t>(landing_.data());
      line.send(ours);
      peers_[q] = line.receive<Wire>();
      go_to_rts(qps_[q], ours, peers_[q]);
      for (std::uint32_t i = 0; i < kReceives; ++i) EXPECT_TRUE(post_receive(qps_[q]));
    }
    // Neither process writes before the other has posted its receives.
    line.send(1);
    line.receive<int>();
  }

  // Runs all threads until every request of both processes is complete. It stops them only when the
  // peer is done too, because until then our threads must keep acknowledging the peer.
  void run(const Line& line) {
    std::vector<std::thread> workers, background;
    const auto forever = [&](void (Side::*step)()) {
      background.emplace_back([this, step] {
        while (!stop_) (this->*step)();
      });
    };
    for (std::uint32_t t = 0; t < kPosters; ++t) workers.emplace_back([this, t] { post_all(t); });
    for (std::uint32_t t = 0; t < kPollers; ++t) forever(&Side::poll_sends);
    forever(&Side::wait_for_receives);
    forever(&Side::make_and_destroy);
    forever(&Side::control);
    forever(&Side::ask);
    for (std::thread& worker : workers) worker.join();
    const auto until = Clock::now() + kWaitMaxThreads;
    while ((sent_ < kPosters * kWritesEach || received_ < kImmediates) && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    line.send(1);
    line.receive<int>();
    stop_ = true;
    for (std::thread& thread : background) thread.join();
    EXPECT_EQ(sent_, kPosters * kWritesEach);
    EXPECT_EQ(received_, kImmediates);
    EXPECT_EQ(failed_, 0u);
    EXPECT_GT(rounds_, 0u);
    EXPECT_GT(controls_, 0u);
    // The peer has stopped writing to our memory.
    for (mrc_qp*& qp : qps_) {
      EXPECT_EQ(mrc_destroy_qp(qp), 0);
      qp = nullptr;
    }
    for (std::uint32_t p = 0; p < kPlaces; ++p)
      EXPECT_EQ(first_wrong(landing_.data() + p * kWriteMax, kWriteMax, p), kWriteMax);
  }

 private:
  static constexpr std::uint32_t kWritesOfAQp = kWritesEach / kQps;  // by each poster
  static constexpr std::uint32_t kImmediates =
      kPosters * kQps * ((kWritesOfAQp + kImmediateEvery - 1) / kImmediateEvery);
  static_assert(kImmediates < kQps * kReceives);

  mrc_qp* make_qp() {
    mrc_qp_init_attr init{};
    init.send_cq = send_cq_;
    init.recv_cq = receive_cq_;
    init.pd = host_.pd;
    init.cap.max_send_wr = 16;
    init.cap.max_recv_wr = kReceives * 2;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    return mrc_create_qp(host_.context, &init);
  }
  static void go_to_rts(mrc_qp* qp, const Wire& ours, const Wire& peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    EXPECT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, nullptr, 0), 0);
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.dest_qp_num = peer.qpn;
    attr.rq_psn = peer.psn;
    const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    EXPECT_EQ(mrc_modify_qp(qp, &attr, mask, nullptr, 0), 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = ours.psn;
    EXPECT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, nullptr, 0), 0);
  }
  static bool post_receive(mrc_qp* qp) {
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = reinterpret_cast<std::uintptr_t>(qp);
    return mrc_post_recv(qp, &wr, &bad) == 0;
  }

  // --- the functions of the threads
  void post_all(std::uint32_t poster) {
    for (std::uint32_t i = 0; i < kWritesEach; ++i) {
      const std::uint32_t q = i % kQps, place = q * kPosters + poster;
      const std::uint64_t at = std::uint64_t{place} * kWriteMax;
      ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(source_.data()) + at,
                  .length = i < 2 * kQps ? kWriteMax : 1 + i * 97 % kWriteMax,
                  .lkey = from_->lkey};
      ibv_send_wr wr{}, *bad = nullptr;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      const bool immediate = i / kQps % kImmediateEvery == 0;
      wr.opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
      wr.send_flags = IBV_SEND_SIGNALED | (immediate ? unsigned{IBV_SEND_SOLICITED} : 0u);
      wr.wr.rdma.remote_addr = peers_[q].at + at;
      wr.wr.rdma.rkey = peers_[q].rkey;
      const auto until = Clock::now() + kWaitMaxThreads;
      int error = 0;
      while ((error = mrc_post_send(qps_[q], &wr, &bad)) == ENOMEM && Clock::now() < until)
        std::this_thread::yield();
      if (error != 0) {
        ADD_FAILURE() << "write " << i << " of poster " << poster << ": " << std::strerror(error);
        return;
      }
    }
  }
  void poll_sends() {
    ibv_wc wc[8];
    const int count = mrc_poll_cq(send_cq_, 8, wc);
    for (int i = 0; i < count; ++i) failed_ += wc[i].status != IBV_WC_SUCCESS ? 1 : 0;
    if (count > 0) sent_ += static_cast<std::uint32_t>(count);
    if (count < 0) ++failed_;
  }
  // Sleeps as programs do: arms the CQ, polls once more, waits, acknowledges the event.
  void wait_for_receives() {
    EXPECT_EQ(mrc_req_notify_cq(receive_cq_, 1), 0);
    ibv_wc wc[8];
    int count = 0;
    while ((count = mrc_poll_cq(receive_cq_, 8, wc)) > 0) {
      for (int i = 0; i < count; ++i) {
        failed_ += wc[i].status != IBV_WC_SUCCESS ? 1 : 0;
        EXPECT_TRUE(post_receive(reinterpret_cast<mrc_qp*>(wc[i].wr_id)));
      }
      received_ += static_cast<std::uint32_t>(count);
    }
    int fd = -1;
    EXPECT_EQ(mrc_get_comp_channel_fd(channel_, &fd), 0);
    pollfd what{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&what, 1, 5) != 1) return;
    mrc_cq* cq = nullptr;
    void* program = nullptr;
    EXPECT_EQ(mrc_get_cq_event(channel_, &cq, &program), 0);
    EXPECT_EQ(cq, receive_cq_);
    mrc_ack_cq_events(cq, 1);
  }
  // Creates and destroys objects that use the CQs of the other threads.
  void make_and_destroy() {
    std::vector<std::uint8_t> bytes(8192);
    const unsigned access = IBV_ACCESS_LOCAL_WRITE;
    ibv_mr* const mr = ibv_reg_mr(host_.pd, bytes.data(), bytes.size(), access);
    mrc_cq* const cq = mrc_create_cq(host_.context, 16, nullptr, nullptr, 0);
    mrc_qp* const qp = make_qp();
    EXPECT_TRUE(mr != nullptr && cq != nullptr && qp != nullptr);
    if (qp != nullptr) {
      std::uint32_t qpn = 0;
      EXPECT_EQ(mrc_get_qpn(qp, &qpn), 0);
      ibv_qp_attr attr{};
      mrc_qp_attr mrc{};
      attr.qp_state = IBV_QPS_INIT;
      mrc.profile.ev_profile_id = profile();
      // At this moment the profile may be OFFLINE. Then this call gives EINVAL, and the QP stays in
      // RESET.
      const int error = mrc_modify_qp(qp, &attr, IBV_QP_STATE, &mrc, MRC_QP_EV_PROFILE_ID);
      EXPECT_TRUE(error == 0 || error == EINVAL) << error;
      attr.qp_state = IBV_QPS_RESET;
      EXPECT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE, nullptr, 0), 0);
      EXPECT_EQ(mrc_destroy_qp(qp), 0);
    }
    if (cq != nullptr) {
      EXPECT_EQ(mrc_destroy_cq(cq), 0);
    }
    if (mr != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
    modify();
    ++rounds_;
  }
  std::uint64_t profile() const { return 50 + place_; }
  // A controller: changes a profile's state, denies and allows EVs, queries a port.
  void control() {
    mrc_ctl_ev_profile_attr attr{};
    const auto set = [&](int mask) {
      if (mrc_ctl_modify_ev_profile(host_.context, profile(), &attr, mask) == 0) return 0;
      return errno;
    };
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.ev_mode = MRC_CTL_EV_MODE_AUTO;
    // In the first round the profile is in INIT, later in ONLINE. A QP of make_and_destroy() may
    // prevent it from leaving ONLINE.
    int off = set(MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE);
    if (off == EINVAL) off = set(MRC_CTL_EV_PROFILE_STATE);
    EXPECT_TRUE(off == 0 || off == EBUSY || off == EINVAL)
        << off;  // EINVAL: a killed run has left it in another state
    attr = {};
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    const int on = set(MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MIN_ACTIVE |
                       MRC_CTL_EV_PROFILE_EVENT_MASK);
    EXPECT_TRUE(on == 0 || on == EINVAL) << on;
    attr = {};
    EXPECT_EQ(mrc_ctl_query_ev_profile(host_.context, profile(), &attr, MRC_CTL_EV_PROFILE_STATE),
              0);
    mrc_ctl_port_attr port{};
    EXPECT_EQ(mrc_ctl_query_port(host_.context, 2, &port, MRC_CTL_PORT_ADMIN_STATE), 0);
    mrc_cq* const events = mrc_ctl_create_ev_event_cq(host_.context, 16, nullptr, nullptr, 0);
    if (events != nullptr) {  // null if the device has its maximum of eight event queues
      mrc_ctl_ev_event event{};
      EXPECT_GE(mrc_ctl_poll_ev_event(events, 1, &event), 0);
      EXPECT_EQ(mrc_destroy_cq(events), 0);
    }
    mrc_ctl_ep_req request{};
    EXPECT_EQ(ibv_query_gid(host_.verbs, 1, 3, &request.sgid), 0);
    request.dgid = request.sgid;
    request.req_id = static_cast<std::uint16_t>(controls_.load());
    request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
    request.req_ev.port = 1;
    mrc_ctl_ep_rsp response{};
    int count = 0;
    if (mrc_ctl_ep_batch_send_wait(host_.context, 0, MRC_CTL_EP_OP_EV_PROBE, &request, 1,
                                   20'000'000, &response, &count) != 0) {
      EXPECT_TRUE(errno == ETIMEDOUT || errno == EAGAIN) << std::strerror(errno);
    }
    ++controls_;
  }
  // Sets attributes of a QP to the values that they have.
  void modify() {
    ibv_qp_attr attr{};
    attr.qp_state = attr.cur_qp_state = IBV_QPS_RTS;
    EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, nullptr, 0), 0);
  }
  // Queries objects that other threads use at the same time.
  void ask() {
    modify();
    for (mrc_qp* const qp : qps_) {
      ibv_qp_attr attr{};
      mrc_qp_attr mrc{};
      mrc_qp_init_attr init{};
      EXPECT_EQ(mrc_query_qp(qp, &attr, IBV_QP_STATE, &mrc, MRC_QP_MPR, &init), 0);
      EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
    }
    mrc_device_attr device{};
    int supported = 0;
    EXPECT_EQ(mrc_query_device(host_.verbs, &device, &supported), 0);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(host_.verbs, 1, &port), 0);
    ibv_device_attr verbs{};
    EXPECT_EQ(ibv_query_device(host_.verbs, &verbs), 0);
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    EXPECT_GE(count, 1);
    ibv_free_device_list(list);
    // Opens the device a second time, as another library in the program might.
    Host another;
    EXPECT_TRUE(another.is_open());
    const int flags = fcntl(another.verbs->async_fd, F_GETFL);
    EXPECT_EQ(fcntl(another.verbs->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
    mrc_async_event event{};
    EXPECT_NE(mrc_get_async_event(another.context, &event), 0);
  }

  std::uint32_t place_;
  Host host_;
  std::vector<std::uint8_t> source_, landing_;
  mrc_comp_channel* channel_ = nullptr;
  mrc_cq *send_cq_ = nullptr, *receive_cq_ = nullptr;
  ibv_mr *from_ = nullptr, *into_ = nullptr;
  mrc_qp* qps_[kQps] = {};
  Wire peers_[kQps];
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> sent_{0}, received_{0}, failed_{0}, rounds_{0}, controls_{0};
};

}  // namespace weft::mrc_test
