// Invalid calls of every function of mrc.h, and of the verbs functions that Weft implements. Each
// must give the documented error, set errno, and change nothing.
#include <fcntl.h>
#include <sys/mman.h>

#include "mrc_end.h"

namespace weft::mrc_test {
namespace {

class Misuse : public testing::Test {
 protected:
  Misuse() { errno = 0; }
  // Check a failed call, for each of mrc.h's three error conventions.
  void minus_one(int returned, int error, const char* what) {
    EXPECT_EQ(returned, -1) << what;
    EXPECT_EQ(errno, error) << what;
    errno = 0;
  }
  void value(int returned, int error, const char* what) {
    EXPECT_EQ(returned, error) << what;
    EXPECT_EQ(errno, error) << what;
    errno = 0;
  }
  void null(const void* returned, int error, const char* what) {
    EXPECT_EQ(returned, nullptr) << what;
    EXPECT_EQ(errno, error) << what;
    errno = 0;
  }
  Host host_;
};

TEST_F(Misuse, InvalidVersionAndDeviceQueriesAreRefused) {
  mrc_query_version(nullptr, nullptr, nullptr, nullptr);
  std::uint32_t current = 0, last = 1, vendor = 0, last_vendor = 1;
  mrc_query_version(&current, &last, &vendor, &last_vendor);
  EXPECT_EQ(current, MRC_API_VER(1, 0, 1));
  EXPECT_EQ(last, 0u);
  EXPECT_EQ(vendor, MRC_API_VER(1, 0, 0));
  EXPECT_EQ(last_vendor, 0u);
  mrc_device_attr attr{};
  int supported = 0;
  minus_one(mrc_query_device(nullptr, &attr, &supported), EINVAL, "no context");
  minus_one(mrc_query_device(host_.verbs, nullptr, &supported), EINVAL, "no attr");
  minus_one(mrc_query_device(host_.verbs, &attr, nullptr), EINVAL, "no supported");
  Host other;
  minus_one(mrc_query_device_ex(host_.verbs, other.context, &attr, &supported), EINVAL, "foreign");
  EXPECT_EQ(mrc_query_device_ex(host_.verbs, nullptr, &attr, &supported), 0);
  EXPECT_EQ(supported, 1);
  EXPECT_GE(attr.wimm_attr.max_wimm, 32);
  EXPECT_GE(attr.mpr_attr.max_mpr, 8);
}

TEST_F(Misuse, InvalidContextCallsAreRefused) {
  null(mrc_create_context(nullptr, nullptr), EINVAL, "no verbs");
  mrc_context_attr future{.mrc_api_version_used = MRC_API_VER(1, 0, 2),
                          .mrc_vendor_api_version_used = 0};
  null(mrc_create_context(host_.verbs, &future), EINVAL, "a version to come");
  mrc_context_attr old{.mrc_api_version_used = 1, .mrc_vendor_api_version_used = 0};
  // OCP's benchmark asks for this version
  mrc_context* const context = mrc_create_context(host_.verbs, &old);
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(mrc_destroy_context(context), 0);
  minus_one(mrc_destroy_context(nullptr), EINVAL, "none");
  mrc_async_event event{};
  minus_one(mrc_get_async_event(nullptr, &event), EINVAL, "no context");
  minus_one(mrc_get_async_event(host_.context, nullptr), EINVAL, "no event");
  ASSERT_EQ(fcntl(host_.verbs->async_fd, F_SETFL, O_NONBLOCK), 0);
  minus_one(mrc_get_async_event(host_.context, &event), EAGAIN, "nothing there");
  mrc_ack_async_event(nullptr);
  minus_one(ibv_close_device(host_.verbs), EBUSY, "in use");
}

TEST_F(Misuse, InvalidChannelAndCqCallsAreRefused) {
  mrc_comp_channel* channel = nullptr;
  value(mrc_create_comp_channel(nullptr, &channel), EINVAL, "no context");
  value(mrc_create_comp_channel(host_.context, nullptr), EINVAL, "no out");
  int fd = 0;
  minus_one(mrc_get_comp_channel_fd(nullptr, &fd), EINVAL, "no channel");
  value(mrc_destroy_comp_channel(nullptr), EINVAL, "none");
  null(mrc_create_cq(nullptr, 1, nullptr, nullptr, 0), EINVAL, "no context");
  null(mrc_create_cq(host_.context, 0, nullptr, nullptr, 0), EINVAL, "no entries");
  null(mrc_create_cq(host_.context, 1 << 30, nullptr, nullptr, 0), EINVAL, "too many");
  null(mrc_create_cq(host_.context, 1, nullptr, nullptr, 1), EINVAL, "no such vector");
  Host other;
  ASSERT_EQ(mrc_create_comp_channel(other.context, &channel), 0);
  minus_one(mrc_get_comp_channel_fd(channel, nullptr), EINVAL, "no out");
  null(mrc_create_cq(host_.context, 1, nullptr, channel, 0), EINVAL, "foreign channel");
  mrc_cq* cq = mrc_create_cq(other.context, 1, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  ibv_wc wc{};
  minus_one(mrc_poll_cq(nullptr, 1, &wc), EINVAL, "no cq");
  minus_one(mrc_poll_cq(cq, -1, &wc), EINVAL, "negative");
  minus_one(mrc_poll_cq(cq, 1, nullptr), EINVAL, "nowhere to");
  EXPECT_EQ(mrc_poll_cq(cq, 0, nullptr), 0);
  value(mrc_req_notify_cq(nullptr, 0), EINVAL, "no cq");
  mrc_cq* got = nullptr;
  void* context = nullptr;
  minus_one(mrc_get_cq_event(nullptr, &got, &context), EINVAL, "no channel");
  minus_one(mrc_get_cq_event(channel, nullptr, &context), EINVAL, "no out");
  mrc_ack_cq_events(nullptr, 1);
  mrc_ack_cq_events(cq, 5);  // more events than were delivered
  value(mrc_destroy_cq(nullptr), EINVAL, "none");
  EXPECT_EQ(mrc_destroy_cq(cq), 0);
  EXPECT_EQ(mrc_destroy_comp_channel(channel), 0);
}

TEST_F(Misuse, InvalidHintCallsAreRefused) {
  mrc_qp_hint_init_attr init{};
  null(mrc_create_qp_hint(nullptr, &init), EINVAL, "no context");
  null(mrc_create_qp_hint(host_.context, nullptr), EINVAL, "no attributes");
  init.attr.num_send_peers = -1;
  null(mrc_create_qp_hint(host_.context, &init), EINVAL, "negative");
  init.attr.num_send_peers = 3;
  mrc_qp_hint* const hint = mrc_create_qp_hint(host_.context, &init);
  ASSERT_NE(hint, nullptr);
  mrc_qp_hint_attr attr{};
  minus_one(mrc_query_qp_hint(nullptr, &attr, 1), EINVAL, "no hint");
  minus_one(mrc_query_qp_hint(hint, nullptr, 1), EINVAL, "no out");
  minus_one(mrc_query_qp_hint(hint, &attr, 8), EINVAL, "unknown bit");
  minus_one(mrc_modify_qp_hint(nullptr, &attr, 1), EINVAL, "no hint");
  minus_one(mrc_modify_qp_hint(hint, &attr, 8), EINVAL, "unknown bit");
  attr.num_qps_per_peer = -5;
  minus_one(mrc_modify_qp_hint(hint, &attr, MRC_QP_HINT_NUM_QPS_PER_PEER), EINVAL, "negative");
  ASSERT_EQ(mrc_query_qp_hint(hint, &attr, MRC_QP_HINT_NUM_QPS_PER_PEER), 0);
  EXPECT_EQ(attr.num_qps_per_peer, 0);
  attr.vendor_cfg[5] = 9;
  attr.num_send_peers = 100;
  ASSERT_EQ(mrc_modify_qp_hint(hint, &attr, MRC_QP_HINT_VENDOR_CFG), 0);
  attr = {};
  ASSERT_EQ(mrc_query_qp_hint(hint, &attr, MRC_QP_HINT_VENDOR_CFG | MRC_QP_HINT_NUM_SEND_PEERS), 0);
  EXPECT_EQ(attr.vendor_cfg[5], 9);
  EXPECT_EQ(attr.num_send_peers, 3);
  {
    End end(host_);
    ibv_qp_attr verbs{};
    verbs.qp_state = IBV_QPS_INIT;
    mrc_qp_attr mrc{};
    mrc.qp_hint = hint;
    ASSERT_EQ(mrc_modify_qp(end.qp, &verbs, IBV_QP_STATE, &mrc, MRC_QP_HINT), 0);
    minus_one(mrc_destroy_qp_hint(hint), EBUSY, "in use");
    mrc_qp_attr asked{};
    ASSERT_EQ(mrc_query_qp(end.qp, nullptr, 0, &asked, MRC_QP_HINT, nullptr), 0);
    EXPECT_EQ(asked.qp_hint, hint);
  }
  EXPECT_EQ(mrc_destroy_qp_hint(hint), 0);
  minus_one(mrc_destroy_qp_hint(nullptr), EINVAL, "none");
}

TEST_F(Misuse, InvalidQpCreationIsRefused) {
  End end(host_);
  mrc_qp_init_attr good{};
  good.send_cq = good.recv_cq = end.send_cq;
  good.pd = host_.pd;
  good.cap.max_send_wr = 1;
  const auto refused = [&](auto change, int error, const char* what) {
    mrc_qp_init_attr init = good;
    change(init);
    null(mrc_create_qp(host_.context, &init), error, what);
  };
  null(mrc_create_qp(nullptr, &good), EINVAL, "no context");
  null(mrc_create_qp(host_.context, nullptr), EINVAL, "no attributes");
  refused([](auto& i) { i.send_cq = nullptr; }, EINVAL, "no send CQ");
  refused([](auto& i) { i.recv_cq = nullptr; }, EINVAL, "no receive CQ");
  refused([](auto& i) { i.pd = nullptr; }, EINVAL, "no domain");
  refused([](auto& i) { i.cap.max_send_wr = 1 << 20; }, EINVAL, "too deep");
  refused([](auto& i) { i.cap.max_send_sge = 17; }, EINVAL, "too many pieces");
  refused([](auto& i) { i.cap.max_inline_data = 1 << 20; }, EINVAL, "too much inline");
  refused([](auto& i) { i.send_ops_flags = IBV_QP_EX_WITH_SEND; }, EOPNOTSUPP, "sends");
  refused(
      [](auto& i) {
        // no enumerator has this value, but a C program can pass it
        const std::uint32_t another = 2;
        std::memcpy(&i.protocol_version, &another, sizeof(another));
      },
      EINVAL, "another protocol");
  Host other;
  refused([&](auto& i) { i.pd = other.pd; }, EINVAL, "foreign domain");
  value(mrc_destroy_qp(nullptr), EINVAL, "none");
  std::uint32_t qpn = 0;
  minus_one(mrc_get_qpn(nullptr, &qpn), EINVAL, "no QP");
  minus_one(mrc_get_qpn(end.qp, nullptr), EINVAL, "no out");
  // Programs for other providers use the ibv_qp in this way.
  const ibv_qp* const verbs = *reinterpret_cast<ibv_qp**>(end.qp);
  ASSERT_EQ(mrc_get_qpn(end.qp, &qpn), 0);
  EXPECT_EQ(verbs->qp_num, qpn);
  EXPECT_EQ(verbs->context, host_.verbs);
  EXPECT_EQ(verbs->qp_type, IBV_QPT_RC);
}

TEST_F(Misuse, InvalidQpModificationsAreRefused) {
  End end(host_);
  const Wire self = end.wire();
  value(mrc_modify_qp(nullptr, nullptr, 0, nullptr, 0), EINVAL, "no QP");
  value(mrc_query_qp(nullptr, nullptr, 0, nullptr, 0, nullptr), EINVAL, "no QP");
  value(mrc_query_qp(end.qp, nullptr, IBV_QP_STATE, nullptr, 0, nullptr), EINVAL, "no out");
  value(mrc_modify_qp(end.qp, nullptr, IBV_QP_STATE, nullptr, 0), EINVAL, "no attributes");
  value(mrc_modify_qp(end.qp, nullptr, 0, nullptr, MRC_QP_MPR), EINVAL, "no attributes");
  value(end.to_rtr(self), EINVAL, "RESET to RTR");
  value(end.to_rts(), EINVAL, "RESET to RTS");
  value(end.to(IBV_QPS_SQD), EINVAL, "SQD");
  EXPECT_EQ(end.state(), IBV_QPS_RESET);
  ibv_qp_attr verbs{};
  mrc_qp_attr mrc{};
  verbs.qp_state = IBV_QPS_INIT;
  mrc.profile.ev_profile_id = 77;
  value(mrc_modify_qp(end.qp, &verbs, IBV_QP_STATE, &mrc, MRC_QP_EV_PROFILE_ID), EINVAL,
        "no such profile");
  verbs.pkey_index = 1;
  value(mrc_modify_qp(end.qp, &verbs, IBV_QP_STATE | IBV_QP_PKEY_INDEX, nullptr, 0), EINVAL, "key");
  verbs.cur_qp_state = IBV_QPS_RTS;
  value(mrc_modify_qp(end.qp, &verbs, IBV_QP_STATE | IBV_QP_CUR_STATE, nullptr, 0), EINVAL,
        "another state");
  EXPECT_EQ(end.state(), IBV_QPS_RESET);
  ASSERT_EQ(end.to_init(), 0);
  value(end.to(IBV_QPS_RTR), EINVAL, "no peer");
  Wire elsewhere = self;
  elsewhere.gid.raw[14] = 7;  // 127.0.7.1 is in no plane
  value(end.to_rtr(elsewhere), EINVAL, "not in our planes");
  Wire reserved = self;
  reserved.qpn = 2;
  value(end.to_rtr(reserved), EINVAL, "the endpoint's own number");
  ASSERT_EQ(end.to_rtr(self), 0);
  mrc.mpr.mpr = 0;
  value(end.to_rts(&mrc, MRC_QP_MPR), EINVAL, "a window of 0");
  mrc.timeout = 25;
  value(end.to_rts(&mrc, MRC_QP_TIMEOUT), EINVAL, "timeout");
  mrc.retry.exp_cnt = 26;
  value(end.to_rts(&mrc, MRC_QP_RETRY_CNT), EINVAL, "retries");
  value(end.to_rts(&mrc, MRC_QP_MPR_DEST), EINVAL, "too late for it");
  EXPECT_EQ(end.state(), IBV_QPS_RTR);
  mrc.mpr.mpr = 9;
  mrc.timeout = 12;
  ASSERT_EQ(end.to_rts(&mrc, MRC_QP_MPR | MRC_QP_TIMEOUT), 0);
  mrc_qp_attr now{};
  mrc_qp_init_attr init{};
  ASSERT_EQ(mrc_query_qp(end.qp, &verbs, IBV_QP_STATE, &now, MRC_QP_MPR, &init), 0);
  EXPECT_EQ(verbs.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(verbs.dest_qp_num, self.qpn);
  EXPECT_EQ(now.mpr.mpr, 9);
  EXPECT_EQ(now.mpr.mpr_dest, 32);
  EXPECT_EQ(now.timeout, 12);
  EXPECT_EQ(now.retry.linear_cnt, 7);
  EXPECT_EQ(now.retry.exp_cnt, 13);
  EXPECT_EQ(init.pd, host_.pd);
}

TEST_F(Misuse, InvalidPostsAreRefused) {
  End end(host_, {.pieces = 2, .inline_bytes = 16});
  const Wire self = end.wire();
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  minus_one(mrc_post_recv(nullptr, &receive, &bad_receive), EINVAL, "no QP");
  minus_one(mrc_post_recv(end.qp, nullptr, &bad_receive), EINVAL, "no work");
  minus_one(mrc_post_recv(end.qp, &receive, &bad_receive), EINVAL, "in RESET");
  EXPECT_EQ(bad_receive, &receive);
  value(end.post(self, {.size = 1}), EINVAL, "in RESET");
  end.connect(self);
  receive.num_sge = 5;
  minus_one(mrc_post_recv(end.qp, &receive, &bad_receive), EINVAL, "too many pieces");
  ibv_sge sges[3]{};
  ibv_send_wr good{};
  good.sg_list = sges;
  good.opcode = IBV_WR_RDMA_WRITE;
  const auto refused = [&](auto change, const char* what) {
    ibv_send_wr first = good, second = good, *bad = nullptr;
    first.next = &second;
    change(second);
    value(mrc_post_send(end.qp, &first, &bad), EINVAL, what);
    EXPECT_EQ(bad, &second) << what;
  };
  value(mrc_post_send(nullptr, &good, nullptr), EINVAL, "no QP");
  value(mrc_post_send(end.qp, nullptr, nullptr), EINVAL, "no work");
  refused([](auto& w) { w.opcode = IBV_WR_SEND; }, "a send");
  refused([](auto& w) { w.opcode = IBV_WR_RDMA_READ; }, "a read");
  refused([](auto& w) { w.num_sge = 3; }, "too many pieces");
  refused([](auto& w) { w.num_sge = -1; }, "fewer than none");
  refused(
      [](auto& w) {
        w.num_sge = 1;
        w.sg_list = nullptr;
      },
      "no list");
  sges[0].length = 17;
  refused(
      [](auto& w) {
        w.num_sge = 1;
        w.send_flags = IBV_SEND_INLINE;
      },
      "too much inline");
  sges[0].length = (1u << 30) + 1;
  refused([](auto& w) { w.num_sge = 1; }, "longer than 1 GiB");
  EXPECT_EQ(end.state(), IBV_QPS_RTS);
}

TEST_F(Misuse, InvalidVerbsDeviceCallsAreRefused) {
  ibv_gid gid{};
  minus_one(ibv_query_gid(host_.verbs, 5, 3, &gid), EINVAL, "port 5");
  minus_one(ibv_query_gid(host_.verbs, 1, 4, &gid), EINVAL, "index 4");
  EXPECT_EQ(ibv_query_gid(host_.verbs, 1, 3, &gid), 0);
  EXPECT_EQ(gid.raw[12], 127);
  EXPECT_EQ(gid.raw[14], 1);
  ibv_gid_entry entry{};
  value(ibv_query_gid_ex(host_.verbs, 1, 0, &entry, 0), ENODATA, "an empty entry");
  EXPECT_EQ(ibv_query_gid_table(host_.verbs, &entry, 1, 0), 1);
  EXPECT_EQ(entry.gid_index, 3u);
  __be16 pkey = 0;
  minus_one(ibv_query_pkey(host_.verbs, 1, 1, &pkey), EINVAL, "P_Key 1");
  EXPECT_EQ(ibv_query_pkey(host_.verbs, 1, 0, &pkey), 0);
  ibv_port_attr port{};
  value(ibv_query_port(host_.verbs, 0, &port), EINVAL, "port 0");
  ASSERT_EQ(ibv_query_port(host_.verbs, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(host_.verbs, &device), 0);
  EXPECT_GE(device.max_qp, 1000);
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(host_.verbs, nullptr, &extended), 0);
  EXPECT_EQ(extended.orig_attr.max_qp, device.max_qp);
  // Functions that only QPs of plain verbs need.
  null(ibv_create_cq(host_.verbs, 1, nullptr, nullptr, 0), EOPNOTSUPP, "a verbs CQ");
  ibv_qp_init_attr init{};
  null(ibv_create_qp(host_.pd, &init), EOPNOTSUPP, "a verbs QP");
}

TEST_F(Misuse, InvalidVerbsMemoryCallsAreRefused) {
  std::vector<std::uint8_t> memory(4096);
  const auto reg = [&](void* at, std::size_t size, unsigned access) {
    return ibv_reg_mr(host_.pd, at, size, access);
  };
  null(reg(memory.data(), 0, 0), EINVAL, "nothing");
  null(reg(memory.data(), ~std::size_t{0}, 0), EINVAL, "beyond the end");
  null(reg(memory.data(), 16, IBV_ACCESS_REMOTE_WRITE), EINVAL, "remote without local write");
  null(reg(memory.data(), 16, 1u << 10), EINVAL, "unknown access");
  void* const pages =
      mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const bytes = static_cast<char*>(pages);
  ASSERT_EQ(mprotect(bytes + 4096, 4096, PROT_READ), 0);
  ASSERT_EQ(munmap(bytes + 8192, 4096), 0);
  null(reg(bytes, 8192, IBV_ACCESS_LOCAL_WRITE), EFAULT, "a page that cannot be written");
  null(reg(bytes + 4096, 4097, 0), EFAULT, "a page that is not there");
  ibv_mr* const readable = reg(bytes, 8192, 0);
  ASSERT_NE(readable, nullptr);
  EXPECT_EQ(ibv_dereg_mr(readable), 0);
  munmap(pages, 8192);
  value(ibv_dereg_mr(nullptr), EINVAL, "none");
  value(ibv_dealloc_pd(nullptr), EINVAL, "none");
  null(ibv_alloc_pd(nullptr), EINVAL, "no context");
}

// A region may be registered under an IOVA that differs from its address.
TEST_F(Misuse, AnIovaThatDiffersFromTheAddressWorks) {
  End a(host_), b(host_);
  const Wire of_a = a.wire();
  Wire of_b = b.wire();
  a.connect(of_b);
  b.connect(of_a);
  ibv_mr* const mr = ibv_reg_mr_iova(host_.pd, b.memory.data(), 4096, 0x10'0000,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(mr, nullptr);
  of_b.rkey = mr->rkey;
  of_b.at = 0x10'0000;
  fill(a.memory.data(), 4096, 3);
  ASSERT_EQ(a.post(of_b, {.size = 4096}), 0);
  EXPECT_EQ(wait_for(a.send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(first_wrong(b.memory.data(), 4096, 3), 4096u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace weft::mrc_test
