// Completion channels: a program sleeps on a descriptor until a CQ has an event.
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>

#include "mrc_end.h"

namespace weft::mrc_test {
namespace {

class Events : public testing::Test {
 protected:
  Events() {
    EXPECT_EQ(mrc_create_comp_channel(host_.context, &channel_), 0);
    EXPECT_EQ(mrc_get_comp_channel_fd(channel_, &fd_), 0);
    a_ = std::make_unique<End>(host_);
    b_ = std::make_unique<End>(host_, EndOptions{.channel = channel_});
    const Wire of_a = a_->wire(), of_b = b_->wire();
    a_->connect(of_b);
    b_->connect(of_a);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(b_->post_receive(0), 0);
  }
  ~Events() override {
    a_.reset();
    b_.reset();
    EXPECT_EQ(mrc_destroy_comp_channel(channel_), 0);
  }
  bool is_readable(int ms) const {
    pollfd what{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&what, 1, ms) == 1;
  }
  void send(unsigned flags = 0) {
    EXPECT_EQ(a_->post(b_->wire(), {.size = 8, .flags = flags, .with_immediate = true}), 0);
  }
  static constexpr int kMs = 20'000;

  Host host_;
  mrc_comp_channel* channel_ = nullptr;
  int fd_ = -1;
  std::unique_ptr<End> a_, b_;
};

TEST_F(Events, EachArmingGivesOneEvent) {
  ASSERT_EQ(mrc_req_notify_cq(b_->receive_cq, 0), 0);
  send();
  ASSERT_TRUE(is_readable(kMs));
  mrc_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(mrc_get_cq_event(channel_, &cq, &context), 0);
  EXPECT_EQ(cq, b_->receive_cq);
  EXPECT_EQ(context, b_.get());
  mrc_ack_cq_events(cq, 1);
  EXPECT_EQ(wait_for(b_->receive_cq).status, IBV_WC_SUCCESS);
  // The CQ is not armed: completions arrive, but there must be no event.
  send();
  EXPECT_EQ(wait_for(b_->receive_cq).status, IBV_WC_SUCCESS);
  EXPECT_FALSE(is_readable(0));
}

TEST_F(Events, ACqArmedForSolicitedEventsIgnoresOthers) {
  ASSERT_EQ(mrc_req_notify_cq(b_->receive_cq, 1), 0);
  send();
  EXPECT_EQ(wait_for(b_->receive_cq).status, IBV_WC_SUCCESS);
  EXPECT_FALSE(is_readable(0));
  send(IBV_SEND_SOLICITED);
  EXPECT_TRUE(is_readable(kMs));
  mrc_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(mrc_get_cq_event(channel_, &cq, &context), 0);
  mrc_ack_cq_events(cq, 1);
}

TEST_F(Events, AFailedCompletionCountsAsSolicited) {
  ASSERT_EQ(mrc_req_notify_cq(b_->receive_cq, 1), 0);
  ASSERT_EQ(b_->to(IBV_QPS_ERR), 0);
  EXPECT_TRUE(is_readable(kMs));
}

TEST_F(Events, NonBlockingDescriptorDoesNotWait) {
  ASSERT_EQ(fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK), 0);
  mrc_cq* cq = nullptr;
  void* context = nullptr;
  EXPECT_EQ(mrc_get_cq_event(channel_, &cq, &context), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Events, DestroyingACqWaitsUntilItsEventsAreAcknowledged) {
  ASSERT_EQ(mrc_req_notify_cq(b_->receive_cq, 0), 0);
  send();
  mrc_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(mrc_get_cq_event(channel_, &cq, &context), 0);
  EXPECT_EQ(mrc_destroy_cq(cq), EBUSY);  // the CQ's QP still exists
  ASSERT_EQ(mrc_destroy_qp(b_->qp), 0);
  b_->qp = nullptr;
  std::atomic<bool> acknowledged{false};
  std::thread other([&] {
    acknowledged = true;
    mrc_ack_cq_events(cq, 1);
  });
  ASSERT_EQ(mrc_destroy_cq(cq), 0);
  EXPECT_TRUE(acknowledged);
  other.join();
  b_->receive_cq = mrc_create_cq(host_.context, 1, nullptr, nullptr,
                                 0);  // the End's destructor will destroy it
}

TEST_F(Events, AChannelInUseCannotBeDestroyed) {
  EXPECT_EQ(mrc_destroy_comp_channel(channel_), EBUSY);
  EXPECT_EQ(mrc_destroy_context(host_.context), -1);
  EXPECT_EQ(errno, EBUSY);
}

}  // namespace
}  // namespace weft::mrc_test
