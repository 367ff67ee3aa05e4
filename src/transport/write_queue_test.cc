#include "transport/write_queue.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

using wire::Opcode;

constexpr std::uint32_t kMtu = 1024;

WriteRequest request(std::uint64_t id, std::uint32_t size, bool immediate = false) {
  return {.id = id, .size = size, .with_immediate = immediate};
}

TEST(WriteQueue, PacketsAreCutFromWritesInOrder) {
  WriteQueue writes(4, kMtu);
  writes.post(request(1, 2 * kMtu + 1, true));
  const WriteQueue::Entry& entry = writes.first_unsent();
  ASSERT_EQ(writes.packet_count(entry), 3u);
  const Opcode opcodes[] = {Opcode::kWriteFirst, Opcode::kWriteMiddle, Opcode::kWriteLastImm};
  const std::uint32_t sizes[] = {kMtu, kMtu, 1};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const WriteQueue::Piece piece = writes.piece(entry, i);
    EXPECT_EQ(piece.opcode, opcodes[i]);
    EXPECT_EQ(piece.offset, i * kMtu);
    EXPECT_EQ(piece.size, sizes[i]);
  }
}

TEST(WriteQueue, EmptyWriteIsOnePacket) {
  WriteQueue writes(4, kMtu);
  writes.post(request(1, 0));
  EXPECT_EQ(writes.packet_count(writes.first_unsent()), 1u);
  EXPECT_EQ(writes.piece(writes.first_unsent(), 0).opcode, Opcode::kWriteOnly);
  EXPECT_GT(WriteQueue::nominal_size(writes.piece(writes.first_unsent(), 0)), 0);
}

// Three writes of 2, 1 and 3 packets, across the wrap of PSNs.
class ThreeWrites : public testing::Test {
 protected:
  ThreeWrites() {
    writes.post(request(1, 2 * kMtu));
    writes.post(request(2, 100, true));
    writes.post(request(3, 3 * kMtu));
    for (int i = 0; i < 6; ++i) writes.on_sent(first + i);
  }
  const Psn first{0xff'fffe};
  WriteQueue writes{4, kMtu};
};

TEST_F(ThreeWrites, EachPsnBelongsToItsWrite) {
  EXPECT_FALSE(writes.has_unsent());
  const std::uint64_t ids[] = {1, 1, 2, 3, 3, 3};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(writes.entry_of(first + i).request.id, ids[i]) << i;
  const WriteQueue::Entry& third = writes.entry_of(first + 4);
  EXPECT_EQ(third.first, first + 3);
  EXPECT_EQ(third.last, first + 5);
  EXPECT_EQ(third.msn, 2);
  EXPECT_EQ(writes.piece_of(first + 4, third).offset, kMtu);
  EXPECT_EQ(writes.immediates_under_way(), 1);
}

TEST_F(ThreeWrites, WritesCompleteInOrder) {
  Completion done;
  EXPECT_FALSE(writes.poll_completion(7, done));
  writes.retire();
  writes.retire();
  EXPECT_EQ(writes.immediates_under_way(), 0);
  EXPECT_EQ(writes.oldest().request.id, 3u);
  for (const std::uint64_t id : {1u, 2u}) {
    ASSERT_TRUE(writes.poll_completion(7, done));
    EXPECT_EQ(done.id, id);
    EXPECT_EQ(done.qpn, 7u);
    EXPECT_EQ(done.status, Status::kOk);
  }
  EXPECT_FALSE(writes.poll_completion(7, done));
  EXPECT_TRUE(writes.has_under_way());
}

TEST_F(ThreeWrites, UnsignalledWritesThatSucceedAreOnlyCounted) {
  writes.post({.id = 4, .size = 1, .signalled = false});
  writes.on_sent(first + 6);
  for (int i = 0; i < 4; ++i) writes.retire();
  Completion done;
  int completions = 0;
  while (writes.poll_completion(7, done)) ++completions;
  EXPECT_EQ(completions, 3);
  EXPECT_EQ(writes.take_unsignalled_done(), 1u);
  EXPECT_EQ(writes.take_unsignalled_done(), 0u);
}

TEST_F(ThreeWrites, RefusedWriteGetsTheFailureAndTheRestIsFlushed) {
  writes.retire();
  const Psn refused = first + 4;
  writes.fail(Status::kRemoteAccess, &refused);
  const Status expected[] = {Status::kOk, Status::kFlushed, Status::kRemoteAccess};
  Completion done;
  for (const Status status : expected) {
    ASSERT_TRUE(writes.poll_completion(7, done));
    EXPECT_EQ(done.status, status);
  }
  EXPECT_EQ(writes.size(), 0u);
}

TEST_F(ThreeWrites, FailureThatNamesNoPacketGoesToTheOldestWrite) {
  writes.fail(Status::kRetryExceeded, nullptr);
  Completion done;
  ASSERT_TRUE(writes.poll_completion(7, done));
  EXPECT_EQ(done.status, Status::kRetryExceeded);
  ASSERT_TRUE(writes.poll_completion(7, done));
  EXPECT_EQ(done.status, Status::kFlushed);
}

TEST(WriteQueueDeathTest, SkippedPsnsAreABug) {
  WriteQueue writes(4, kMtu);
  writes.post(request(1, 2 * kMtu));
  writes.on_sent(Psn(5));
  EXPECT_DEATH(writes.on_sent(Psn(7)), "assertion failed");
}

}  // namespace
}  // namespace weft::transport
