// NetRdma against the contract of rdma/rdma.h: two ends in this process, over planes and over
// shared memory.
#include "engine/net_rdma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/prng.h"
#include "os/clock.h"

namespace weft::engine {
namespace {

using rdma::Completion;
using rdma::Failure;
using rdma::Status;
using rdma::Write;

constexpr Duration kPatience = Duration::s(20);

// One end with one group, a region of its own and the peer's.
struct End {
  std::unique_ptr<NetRdma> rdma;
  rdma::Group group{};
  rdma::Region region{};
  rdma::RemoteRegion peer{};
  std::vector<Completion> writes, receives;
  std::vector<Failure> failures;

  void look() {
    const Time now = rdma->progress(os::clock_now() + Duration::us(50));
    (void)now;
    std::array<Completion, 8> batch;
    for (std::size_t count = batch.size(); count == batch.size();) {
      count = rdma->poll(batch);
      for (const Completion& one : std::span(batch).first(count))
        (one.kind == Completion::Kind::kWrite ? writes : receives).push_back(one);
    }
    for (Failure failure; rdma->poll_failure(failure);) failures.push_back(failure);
  }
  std::size_t post(const Write& write) {
    Write one = write;
    one.from = region.id;
    one.to = &peer;
    return rdma->post_writes(os::clock_now(), group.first_qp, {&one, 1});
  }
};

// Parameter: over shared memory.
class NetRdmaTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::uint64_t kRegion = 1u << 20;

  void open(const rdma::GroupRequest& request) {
    for (End* const end : {&a_, &b_}) {
      NetRdmaOptions options;
      options.world.shared_memory = GetParam();
      auto opened = NetRdma::open(options);
      ASSERT_TRUE(opened) << opened.error().message;
      end->rdma = std::move(*opened);
      end->group = end->rdma->create_group(request).value();
      end->region = end->rdma->allocate(kRegion).value();
    }
    connect(a_, b_);
    connect(b_, a_);
  }
  void connect(End& end, const End& other) {
    const auto connected =
        end.rdma->connect(os::clock_now(), end.group.id, other.rdma->describe(other.group.id));
    ASSERT_TRUE(connected) << connected.error().message;
    end.peer =
        end.rdma->open_region(end.group.id, other.rdma->describe_region(other.region.id)).value();
  }
  template <typename Condition>
  bool drive_until(Condition holds) {
    const Time limit = os::clock_now() + kPatience;
    while (!holds() && os::clock_now() < limit) {
      a_.look();
      b_.look();
    }
    return holds();
  }

  End a_, b_;
};

TEST_P(NetRdmaTest, WritesCompleteInPostOrderAndTheirBytesArriveBeforeTheirImmediates) {
  open({.qps = 1, .sends_max = 64, .receives_max = 64, .receives_posted = 64});
  EXPECT_EQ(a_.rdma->health(a_.group.id).over_shared_memory, GetParam());
  Prng prng(7);
  for (std::uint64_t i = 0; i < kRegion; ++i) a_.region.bytes[i] = std::byte(prng.next());
  constexpr std::array<std::uint32_t, 8> kSizes{0, 1, 8, 1000, 4096, 4097, 70'000, 300'001};
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < kSizes.size(); ++i) {
    ASSERT_EQ(a_.post({.id = 100 + i,
                       .with_immediate = true,
                       .immediate = 7 * i,
                       .from_offset = at,
                       .to_offset = at,
                       .size = kSizes[i]}),
              1u);
    at += kSizes[i];
  }
  std::size_t seen = 0;
  std::uint64_t whole = 0;
  ASSERT_TRUE(drive_until([&] {
    for (; seen < b_.receives.size(); ++seen) {
      EXPECT_EQ(b_.receives[seen].immediate, 7 * seen);
      whole += kSizes[seen];
      EXPECT_EQ(std::memcmp(a_.region.bytes, b_.region.bytes, whole), 0) << seen;
    }
    return a_.writes.size() == kSizes.size() && seen == kSizes.size();
  }));
  for (std::uint32_t i = 0; i < kSizes.size(); ++i) {
    EXPECT_EQ(a_.writes[i].id, 100 + i);
    EXPECT_EQ(a_.writes[i].status, Status::kOk);
    EXPECT_EQ(a_.writes[i].qp, a_.group.first_qp);
  }
  EXPECT_EQ(b_.region.bytes[at], std::byte{0}) << "nothing beyond the last write changed";
  EXPECT_TRUE(a_.failures.empty() && b_.failures.empty());
}

TEST_P(NetRdmaTest, AFullQueueTakesFewerWritesAndMoreAfterACompletion) {
  open({.qps = 1, .sends_max = 4, .receives_max = 4});
  std::array<Write, 6> writes;
  for (std::uint32_t i = 0; i < writes.size(); ++i)
    writes[i] = {.id = i, .from = a_.region.id, .to = &a_.peer, .size = 100};
  EXPECT_EQ(a_.rdma->post_writes(os::clock_now(), a_.group.first_qp, writes), 4u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 4; }));
  EXPECT_EQ(a_.rdma->post_writes(os::clock_now(), a_.group.first_qp, std::span(writes).subspan(4)),
            2u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 6; }));
}

TEST_P(NetRdmaTest, AnImmediateWithoutAReceiveFailsTheQpAtBothEnds) {
  open({.qps = 1, .receives_max = 4, .receives_posted = 1});
  ASSERT_EQ(a_.post({.with_immediate = true}), 1u);
  ASSERT_EQ(a_.post({.with_immediate = true}), 1u);
  ASSERT_TRUE(drive_until([&] { return !a_.failures.empty() && !b_.failures.empty(); }));
  EXPECT_EQ(b_.receives.size(), 1u);
  EXPECT_EQ(a_.failures[0].reason, Status::kRemoteOperation);
  EXPECT_EQ(b_.failures[0].reason, Status::kLocalAccess);
  EXPECT_EQ(a_.post({}), 0u) << "a failed QP takes no more writes";
}

TEST_P(NetRdmaTest, AnEmptyWriteAsksWhetherThePeerLivesAndFailsWhenItsGroupHasFailed) {
  open({});
  ASSERT_EQ(a_.post({.id = 1}), 1u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 1; }));
  EXPECT_EQ(a_.writes[0].status, Status::kOk);
  EXPECT_TRUE(b_.receives.empty()) << "it takes no receive";
  b_.rdma->fail_group(os::clock_now(), b_.group.id);
  ASSERT_EQ(a_.post({.id = 2}), 1u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 2 && !a_.failures.empty(); }));
  EXPECT_NE(a_.writes[1].status, Status::kOk);
}

TEST_P(NetRdmaTest, AWriteToARemovedRegionIsRefused) {
  open({});
  ASSERT_TRUE(b_.rdma->remove_region(b_.region.id));
  EXPECT_FALSE(b_.rdma->remove_region(b_.region.id)) << "it is gone";
  ASSERT_EQ(a_.post({.size = 8}), 1u);
  ASSERT_TRUE(drive_until([&] { return !a_.failures.empty(); }));
  EXPECT_EQ(a_.failures[0].reason, Status::kRemoteAccess);
}

TEST_P(NetRdmaTest, AWriteBeyondTheRegionIsRefused) {
  open({});
  ASSERT_EQ(a_.post({.to_offset = kRegion - 7, .size = 8}), 1u);
  ASSERT_TRUE(drive_until([&] { return !a_.failures.empty(); }));
  EXPECT_EQ(a_.failures[0].reason, Status::kRemoteAccess);
}

TEST_P(NetRdmaTest, PeersThatShareMemoryReadEachOthersRegionsInPlace) {
  open({.receives_max = 4, .receives_posted = 4});
  ASSERT_EQ(a_.peer.mapped != nullptr, GetParam());
  if (!GetParam()) return;
  const char text[] = "read where it lies";
  std::memcpy(b_.region.bytes + 500, text, sizeof(text));
  ASSERT_EQ(b_.post({.with_immediate = true}), 1u);
  ASSERT_TRUE(drive_until([&] { return a_.receives.size() == 1; }));
  EXPECT_EQ(std::memcmp(a_.peer.mapped + 500, text, sizeof(text)), 0);
}

TEST_P(NetRdmaTest, MemoryOfTheCallerIsNeverMapped) {
  open({});
  std::vector<std::byte> own(4096);
  const auto region = b_.rdma->add_region(own).value();
  const auto opened = a_.rdma->open_region(a_.group.id, b_.rdma->describe_region(region.id));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->mapped, nullptr);
  a_.peer = *opened;
  a_.region.bytes[3] = std::byte{42};
  ASSERT_EQ(a_.post({.from_offset = 3, .to_offset = 9, .size = 1}), 1u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 1; }));
  EXPECT_EQ(own[9], std::byte{42});
}

TEST_P(NetRdmaTest, WritesGoOnOverTheOtherPlanesWhileOneIsDenied) {
  if (GetParam()) GTEST_SKIP() << "a ring has no planes";
  open({.sends_max = 64});
  ASSERT_TRUE(a_.rdma->change_plane(os::clock_now(), {.plane = 1, .denied = true}));
  EXPECT_FALSE(a_.rdma->change_plane(os::clock_now(), {.plane = 99, .denied = true}));
  for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(a_.post({.id = i, .size = 30'000}), 1u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 32; }));
  EXPECT_EQ(a_.rdma->health(a_.group.id).planes, 4);
  EXPECT_EQ(a_.rdma->health(a_.group.id).planes_left_out, 1u << 1);
  ASSERT_TRUE(a_.rdma->change_plane(os::clock_now(), {.plane = 1, .denied = false}));
  ASSERT_TRUE(drive_until([&] { return a_.rdma->health(a_.group.id).planes_left_out == 0; }));
}

TEST_P(NetRdmaTest, SeveralQpsOfAGroupCarryTheirOwnOrder) {
  open({.qps = 3, .sends_max = 8, .receives_max = 8, .receives_posted = 8});
  for (std::uint32_t i = 0; i < 24; ++i) {
    const Write write{.id = i,
                      .with_immediate = true,
                      .immediate = i,
                      .from = a_.region.id,
                      .to = &a_.peer,
                      .size = 5000};
    ASSERT_EQ(a_.rdma->post_writes(os::clock_now(), a_.group.first_qp + i % 3, {&write, 1}), 1u);
  }
  ASSERT_TRUE(drive_until([&] { return b_.receives.size() == 24; }));
  std::array<std::uint32_t, 3> next{0, 1, 2};
  for (const Completion& one : b_.receives) {
    std::uint32_t& expected = next[one.qp - b_.group.first_qp];
    EXPECT_EQ(one.immediate, expected);
    expected += 3;
  }
}

TEST_P(NetRdmaTest, AGroupThatIsDestroyedMakesRoomForAnother) {
  open({.sends_max = 1024, .receives_max = 1024});
  EXPECT_FALSE(a_.rdma->create_group({})) << "all places of the completion queue are reserved";
  ASSERT_TRUE(a_.rdma->destroy_group(os::clock_now(), a_.group.id));
  EXPECT_FALSE(a_.rdma->destroy_group(os::clock_now(), a_.group.id));
  const auto again = a_.rdma->create_group({});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_NE(again->first_qp, a_.group.first_qp);
}

TEST_P(NetRdmaTest, DescriptionsThatAreNoneAreRefused) {
  open({});
  const auto group = a_.rdma->create_group({}).value();
  auto good = b_.rdma->describe(b_.group.id);
  Prng prng(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes = good;
    if (round % 2 == 0) bytes.resize(prng.below(300));
    if (bytes.size() == good.size()) bytes[prng.below(8)] ^= std::byte(1 + prng.below(255));
    EXPECT_FALSE(a_.rdma->connect(os::clock_now(), group.id, bytes)) << round;
    std::vector<std::byte> region(prng.below(100));
    if (region.size() != 48) EXPECT_FALSE(a_.rdma->open_region(a_.group.id, region)) << round;
    // The right size and any content: values that a write may use, and nothing is mapped.
    region.assign(48, std::byte(prng.next()));
    const auto opened = a_.rdma->open_region(a_.group.id, region);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->mapped, nullptr);
  }
  EXPECT_FALSE(a_.rdma->connect(os::clock_now(), a_.group.id, good)) << "connected already";
}

INSTANTIATE_TEST_SUITE_P(Net, NetRdmaTest, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "SharedMemory" : "Planes"; });

}  // namespace
}  // namespace weft::engine
