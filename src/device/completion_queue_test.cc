// CompletionQueue and SendQueue without a device: order, capacity, overrun.
#include "device/completion_queue.h"

#include <gtest/gtest.h>

#include <array>

#include "device/send_queue.h"

namespace weft::device {
namespace {

ibv_wc completion(std::uint64_t id, std::uint32_t qpn = 1) {
  ibv_wc wc{};
  wc.wr_id = id;
  wc.qp_num = qpn;
  return wc;
}

TEST(CompletionQueueTest, KeepsOrderAndForgetQpRemovesOnlyThatQp) {
  CompletionQueue cq(8, nullptr, nullptr);
  for (std::uint64_t i = 0; i < 8; ++i)
    EXPECT_EQ(cq.push(completion(i, static_cast<std::uint32_t>(i % 2)), Solicited::kNo),
              CompletionQueue::Pushed::kYes);
  cq.forget_qp(0);
  std::array<ibv_wc, 8> out;
  ASSERT_EQ(cq.poll(out), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(out[i].wr_id, 2 * i + 1);
  EXPECT_TRUE(cq.is_empty());
}

TEST(CompletionQueueTest, OverrunStaysSetAfterTheFirstLostCompletion) {
  CompletionQueue cq(2, nullptr, nullptr);
  using Pushed = CompletionQueue::Pushed;
  EXPECT_EQ(cq.push(completion(1), Solicited::kNo), Pushed::kYes);
  EXPECT_EQ(cq.push(completion(2), Solicited::kNo), Pushed::kYes);
  EXPECT_FALSE(cq.is_overrun());
  EXPECT_EQ(cq.push(completion(3), Solicited::kNo), Pushed::kFirstLost);
  EXPECT_EQ(cq.push(completion(4), Solicited::kNo), Pushed::kLost);
  EXPECT_TRUE(cq.is_overrun());
}

TEST(CompletionQueueTest, RunGivesSlotsUntilTheQueueIsFullWithoutOverrun) {
  CompletionQueue cq(2, nullptr, nullptr);
  {
    CompletionQueue::Run run(cq);
    for (std::uint64_t i = 0; i < 2; ++i) {
      ibv_wc* const next = run.next();
      ASSERT_NE(next, nullptr);
      *next = completion(i);
    }
    EXPECT_EQ(run.next(), nullptr);
  }
  EXPECT_FALSE(cq.is_overrun());  // run.next() returned null; nothing was lost
  std::array<ibv_wc, 4> out;
  ASSERT_EQ(cq.poll(out), 2u);
  EXPECT_EQ(out[0].wr_id, 0u);
  EXPECT_EQ(out[1].wr_id, 1u);
}

TEST(SendQueueTest, SlotsAreReusedInOrderAndKeepTheirPieces) {
  SendQueue queue({.depth = 3, .pieces_max = 2, .inline_max = 8});
  ASSERT_EQ(queue.limits().depth, 4u);
  for (std::uint64_t id = 0; id < 100; ++id) {
    const std::uint32_t slot = queue.free_slot();
    queue.work(slot) = {.request = {.id = id}};
    queue.pieces(slot)[1].at = id;
    queue.publish();
    EXPECT_EQ(queue.has_new(), true);
    queue.mark_under_way();
    // the first two writes stay in flight; from then on each round retires one
    if (id < 2) continue;
    EXPECT_EQ(queue.work(queue.oldest_slot()).request.id, id - 2);
    EXPECT_EQ(queue.pieces(queue.oldest_slot())[1].at, id - 2);
    queue.retire();
    EXPECT_EQ(queue.under_way(), 2u);
  }
  EXPECT_NE(queue.free_slot(), SendQueue::kNoSlot);
  queue.publish();
  queue.publish();
  EXPECT_EQ(queue.free_slot(), SendQueue::kNoSlot);
}

}  // namespace
}  // namespace weft::device
