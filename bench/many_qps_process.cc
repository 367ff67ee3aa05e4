#include "many_qps_process.h"

#include <endian.h>
#include <poll.h>

#include <fstream>
#include <string>

namespace many_qps {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr std::uint32_t kSize = 256;  // bytes of a message
constexpr std::uint32_t kSlots = 2;   // the device may fill one slot while the other is checked
constexpr std::uint32_t kStride =
    2 * kSlots * kSize;  // memory of a QP: its send slots and its receive slots

// Memory of this process in KiB. Of a page shared by n processes, each counts 1/n (PSS).
std::uint64_t pss_kib() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;) {
    std::uint64_t value = 0;
    if (word == "Pss:" && in >> value) return value;
  }
  return 0;
}

std::uint8_t pattern(std::uint64_t seed, std::uint32_t at) {
  return static_cast<std::uint8_t>((seed * 0x9e3779b97f4a7c15u + at * 31) >> 16 ^ at);
}

}  // namespace

void Process::open() {
  ibv_device** const list = ibv_get_device_list(nullptr);
  check(list != nullptr, "ibv_get_device_list");
  for (ibv_device** device = list; *device != nullptr && verbs_ == nullptr; ++device) {
    if (std::strcmp(ibv_get_device_name(*device), "weft0") == 0) verbs_ = ibv_open_device(*device);
  }
  ibv_free_device_list(list);
  check(verbs_ != nullptr, "the device weft0 does not open");
  context_ = mrc_create_context(verbs_, nullptr);
  check(context_ != nullptr, "mrc_create_context");
  pd_ = ibv_alloc_pd(verbs_);
  check(pd_ != nullptr, "ibv_alloc_pd");
}

void Process::create() {
  for (std::uint32_t e = 0; e < shape_.edges(); ++e) {
    if (shape_.from(e) != self_ && shape_.to(e) != self_) continue;
    for (std::uint32_t i = 0; i < shape_.qps; ++i) {
      edge_.push_back(e);
      q_in_edge_.push_back(i);
    }
  }
  memory_.resize(edge_.size() * kStride);
  mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  check(mr_ != nullptr, "ibv_reg_mr");
  check(mrc_create_comp_channel(context_, &channel_) == 0, "mrc_create_comp_channel");
  check(mrc_get_comp_channel_fd(channel_, &channel_fd_) == 0, "mrc_get_comp_channel_fd");
  cq_ = mrc_create_cq(context_, static_cast<int>(edge_.size() * 8), nullptr, channel_, 0);
  check(cq_ != nullptr, "mrc_create_cq");
  for (std::size_t q = 0; q < edge_.size(); ++q) {
    mrc_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.pd = pd_;
    init.cap.max_send_wr = init.cap.max_recv_wr = 4;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    qps_.push_back(mrc_create_qp(context_, &init));
    check(qps_.back() != nullptr, "mrc_create_qp");
  }
}

void Process::connect(const std::vector<Wire>& peers) {
  for (std::size_t q = 0; q < qps_.size(); ++q) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    check(mrc_modify_qp(qps_[q], &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, nullptr, 0) == 0,
          "mrc_modify_qp to INIT");
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peers[q].gid;
    attr.dest_qp_num = peers[q].qpn;
    attr.rq_psn = peers[q].psn;
    check(mrc_modify_qp(qps_[q], &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                        nullptr, 0) == 0,
          "mrc_modify_qp to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = static_cast<std::uint32_t>(q);
    check(mrc_modify_qp(qps_[q], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, nullptr, 0) == 0,
          "mrc_modify_qp to RTS");
  }
}

void Process::post_receive(std::uint32_t q) {
  ibv_recv_wr work{}, *bad = nullptr;
  work.wr_id = q;
  check(mrc_post_recv(qps_[q], &work, &bad) == 0, "mrc_post_recv");
}

void Process::send(std::uint32_t q, std::uint32_t round, const Wire& peer) {
  const std::uint32_t slot = round % kSlots;
  std::uint8_t* const from = memory_.data() + std::size_t{q} * kStride + slot * kSize;
  for (std::uint32_t i = 0; i < kSize; ++i) from[i] = pattern(seed(q, round, false), i);
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(from), .length = kSize, .lkey = mr_->lkey};
  ibv_send_wr work{}, *bad = nullptr;
  work.wr_id = q;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htobe32(round);
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = peer.at + (kSlots + slot) * kSize;
  work.wr.rdma.rkey = peer.rkey;
  check(mrc_post_send(qps_[q], &work, &bad) == 0, "mrc_post_send");
}

void Process::look_at(std::uint32_t q, std::uint32_t round) {
  const std::uint8_t* const at =
      memory_.data() + std::size_t{q} * kStride + (kSlots + round % kSlots) * kSize;
  for (std::uint32_t i = 0; i < kSize; ++i) {
    errno = EBADMSG;
    check(at[i] == pattern(seed(q, round, true), i), "a byte did not arrive as it was sent");
  }
}

// Sleeps until the CQ has an event.
void Process::wait(Clock::time_point until) {
  pollfd news{.fd = channel_fd_, .events = POLLIN, .revents = 0};
  if (poll(&news, 1, 100) > 0) {
    mrc_cq* of = nullptr;
    void* program = nullptr;
    check(mrc_get_cq_event(channel_, &of, &program) == 0, "mrc_get_cq_event");
    mrc_ack_cq_events(of, 1);
    check(mrc_req_notify_cq(cq_, 0) == 0, "mrc_req_notify_cq");
  }
  errno = ETIMEDOUT;
  check(Clock::now() < until, "not all messages came");
}

// A QP begins its next round when the peer's message of this round has arrived and its own message
// is acknowledged. So the two ends are never more than one round apart, and two slots are enough.
void Process::exchange(const std::vector<Wire>& peers) {
  struct State {
    std::uint32_t sent = 0, done = 0, received = 0;
  };
  std::vector<State> states(qps_.size());
  const auto until = Clock::now() + kPatience;
  const std::uint64_t wanted = std::uint64_t{qps_.size()} * shape_.rounds;
  std::uint64_t received = 0, done = 0;
  const auto go_on = [&](std::uint32_t q) {
    State& state = states[q];
    if (state.sent == shape_.rounds || state.done < state.sent || state.received < state.sent)
      return;
    send(q, state.sent++, peers[q]);
  };
  check(mrc_req_notify_cq(cq_, 0) == 0, "mrc_req_notify_cq");
  for (std::uint32_t q = 0; q < qps_.size(); ++q) go_on(q);
  while (received < wanted || done < wanted) {
    ibv_wc batch[32];
    const int count = mrc_poll_cq(cq_, 32, batch);
    check(count >= 0, "mrc_poll_cq");
    if (count == 0) wait(until);
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = batch[i];
      errno = EIO;
      check(wc.status == IBV_WC_SUCCESS, "a completion failed");
      const auto q = static_cast<std::uint32_t>(wc.wr_id);
      if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        const std::uint32_t round = be32toh(wc.imm_data);
        errno = EPROTO;
        check(round == states[q].received, "an immediate came out of turn");
        look_at(q, round);
        ++states[q].received;
        ++received;
        post_receive(q);
      } else {
        ++states[q].done;
        ++done;
      }
      go_on(q);
    }
  }
  report_.messages = received;
}

Report Process::run() {
  auto start = Clock::now();
  open();
  report_.open_us = us_since(start);
  report_.pss_kib_open = pss_kib();
  start = Clock::now();
  create();
  report_.create_us = us_since(start);
  report_.qps = qps_.size();
  std::vector<Wire> ours(qps_.size());
  for (std::size_t q = 0; q < qps_.size(); ++q) {
    check(ibv_query_gid(verbs_, 1, 3, &ours[q].gid) == 0, "ibv_query_gid");
    check(mrc_get_qpn(qps_[q], &ours[q].qpn) == 0, "mrc_get_qpn");
    ours[q].psn = static_cast<std::uint32_t>(q);
    ours[q].rkey = mr_->rkey;
    ours[q].at = reinterpret_cast<std::uintptr_t>(memory_.data()) + q * kStride;
  }
  tell(line_, ours);
  const std::vector<Wire> peers = hear<Wire>(line_, qps_.size());
  start = Clock::now();
  connect(peers);
  report_.connect_us = us_since(start);
  report_.pss_kib_connected = pss_kib();
  for (std::uint32_t q = 0; q < qps_.size(); ++q) {
    for (std::uint32_t i = 0; i < kSlots; ++i) post_receive(q);
  }
  tell<int>(line_, {1});
  hear<int>(line_, 1);  // all processes are ready
  start = Clock::now();
  exchange(peers);
  report_.exchange_us = us_since(start);
  report_.pss_kib_used = pss_kib();
  tell<int>(line_, {1});
  hear<int>(line_, 1);  // all processes have received everything
  for (mrc_qp* const qp : qps_) check(mrc_destroy_qp(qp) == 0, "mrc_destroy_qp");
  check(mrc_destroy_cq(cq_) == 0, "mrc_destroy_cq");
  check(mrc_destroy_comp_channel(channel_) == 0, "mrc_destroy_comp_channel");
  check(ibv_dereg_mr(mr_) == 0 && ibv_dealloc_pd(pd_) == 0, "ibv_dereg_mr");
  check(mrc_destroy_context(context_) == 0, "mrc_destroy_context");
  check(ibv_close_device(verbs_) == 0, "ibv_close_device");
  return report_;
}

}  // namespace many_qps
