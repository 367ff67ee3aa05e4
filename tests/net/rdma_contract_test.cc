// The contract of rdma/rdma.h, tested for each implementation: the transport over planes, the
// transport over shared memory, and lib_mrc.so. Both ends are in this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <thread>

#include "base/prng.h"
#include "engine/net_rdma.h"
#include "mrclib/lib_rdma.h"
#include "os/clock.h"
#include "own_library.h"
#include "rdma/program.h"

namespace weft {
namespace {

using rdma::Completion;
using rdma::Failure;
using rdma::Status;
using rdma::Write;

constexpr Duration kPatience = Duration::s(20);

enum class Kind : std::uint8_t { kPlanes, kSharedMemory, kLibrary };

// One end with one group, a region of its own, and the peer's region.
struct End {
  std::unique_ptr<rdma::Rdma> rdma;
  // progress() of the implementation's driver.
  std::function<Time(Time)> progress;
  std::function<void()> wake;
  // rdma::run_until() on it.
  std::function<bool(rdma::Program&, Time)> run;
  rdma::Group group{};
  rdma::Region region{};
  rdma::RemoteRegion peer{};
  std::vector<Completion> writes, receives;
  std::vector<Failure> failures;

  template <typename Implementation>
  void drive(Result<std::unique_ptr<Implementation>> opened) {
    ASSERT_TRUE(opened) << opened.error().message;
    Implementation* const self = opened->get();
    progress = [self](Time limit) { return self->progress(limit); };
    wake = [self] { self->wake(); };
    run = [self](rdma::Program& program, Time limit) {
      return rdma::run_until(*self, program, limit);
    };
    rdma = std::move(opened).value();
  }
  void open(Kind kind) {
    if (kind == Kind::kLibrary)
      return drive(mrclib::LibRdma::open(own_library(), {.changes_ports = true}));
    engine::NetRdmaOptions options;
    options.world.shared_memory = kind == Kind::kSharedMemory;
    drive(engine::NetRdma::open(options));
  }
  void look() {
    (void)progress(os::clock_now() + Duration::us(50));
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

class RdmaContract : public ::testing::TestWithParam<Kind> {
 protected:
  static constexpr std::uint64_t kRegion = 1u << 20;

  void open(const rdma::GroupRequest& request) {
    for (End* const end : {&a_, &b_}) {
      end->open(GetParam());
      ASSERT_NE(end->rdma, nullptr);
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
    EXPECT_EQ(end.peer.size, kRegion);
  }
  static bool is_shared() { return GetParam() == Kind::kSharedMemory; }
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

TEST_P(RdmaContract, WritesCompleteInPostOrderAndTheirBytesArriveBeforeTheirImmediates) {
  open({.qps = 1, .sends_max = 64, .receives_max = 64, .receives_posted = 64});
  EXPECT_EQ(a_.rdma->health(a_.group.id).over_shared_memory, is_shared());
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

TEST_P(RdmaContract, AFullQueueTakesFewerWritesAndMoreAfterACompletion) {
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

TEST_P(RdmaContract, AnImmediateWithoutAReceiveFailsTheQpAtBothEnds) {
  open({.qps = 1, .receives_max = 4, .receives_posted = 1});
  ASSERT_EQ(a_.post({.with_immediate = true}), 1u);
  ASSERT_EQ(a_.post({.with_immediate = true}), 1u);
  ASSERT_TRUE(drive_until([&] { return !a_.failures.empty() && !b_.failures.empty(); }));
  EXPECT_EQ(b_.receives.size(), 1u);
  EXPECT_EQ(a_.failures[0].reason, Status::kRemoteOperation);
  EXPECT_EQ(b_.failures[0].reason, Status::kLocalAccess);
  EXPECT_EQ(a_.post({}), 0u) << "a failed QP takes no more writes";
}

TEST_P(RdmaContract, AnEmptyWriteTestsWhetherThePeerLivesAndFailsWhenItsGroupHasFailed) {
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

TEST_P(RdmaContract, AWriteToARemovedRegionIsRefused) {
  open({});
  ASSERT_TRUE(b_.rdma->remove_region(b_.region.id));
  EXPECT_FALSE(b_.rdma->remove_region(b_.region.id)) << "it is gone";
  ASSERT_EQ(a_.post({.size = 8}), 1u);
  ASSERT_TRUE(drive_until([&] { return !a_.failures.empty(); }));
  EXPECT_EQ(a_.failures[0].reason, Status::kRemoteAccess);
}

TEST_P(RdmaContract, AWriteBeyondTheRegionIsRefused) {
  open({});
  ASSERT_EQ(a_.post({.to_offset = kRegion - 7, .size = 8}), 1u);
  ASSERT_TRUE(drive_until([&] { return !a_.failures.empty(); }));
  EXPECT_EQ(a_.failures[0].reason, Status::kRemoteAccess);
}

TEST_P(RdmaContract, PeersThatShareMemoryReadEachOthersRegionsInPlace) {
  open({.receives_max = 4, .receives_posted = 4});
  ASSERT_EQ(a_.peer.mapped != nullptr, is_shared());
  if (!is_shared()) return;
  const char text[] = "read where it lies";
  std::memcpy(b_.region.bytes + 500, text, sizeof(text));
  ASSERT_EQ(b_.post({.with_immediate = true}), 1u);
  ASSERT_TRUE(drive_until([&] { return a_.receives.size() == 1; }));
  EXPECT_EQ(std::memcmp(a_.peer.mapped + 500, text, sizeof(text)), 0);
}

TEST_P(RdmaContract, MemoryOfTheCallerIsNeverMapped) {
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

TEST_P(RdmaContract, WritesGoOnOverTheOtherPlanesWhileOneIsDenied) {
  if (is_shared()) GTEST_SKIP() << "a ring has no planes";
  open({.sends_max = 64});
  if (!a_.rdma->change_plane(os::clock_now(), {.plane = 1, .denied = true})) {
    ASSERT_EQ(GetParam(), Kind::kLibrary);
    GTEST_SKIP() << "this user may not disable a port of the device";
  }
  EXPECT_FALSE(a_.rdma->change_plane(os::clock_now(), {.plane = 99, .denied = true}));
  for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(a_.post({.id = i, .size = 30'000}), 1u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 32; }));
  EXPECT_EQ(a_.rdma->health(a_.group.id).planes, 4);
  EXPECT_EQ(a_.rdma->health(a_.group.id).planes_left_out, 1u << 1);
  ASSERT_TRUE(a_.rdma->change_plane(os::clock_now(), {.plane = 1, .denied = false}));
  ASSERT_TRUE(drive_until([&] { return a_.rdma->health(a_.group.id).planes_left_out == 0; }));
}

TEST_P(RdmaContract, EachQpOfAGroupKeepsItsOwnOrder) {
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

TEST_P(RdmaContract, AGroupThatIsDestroyedMakesRoomForAnother) {
  open({.sends_max = 1024, .receives_max = 1024});
  EXPECT_FALSE(a_.rdma->create_group({})) << "all places of the completion queue are reserved";
  ASSERT_TRUE(a_.rdma->destroy_group(os::clock_now(), a_.group.id));
  EXPECT_FALSE(a_.rdma->destroy_group(os::clock_now(), a_.group.id));
  const auto again = a_.rdma->create_group({});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_NE(again->first_qp, a_.group.first_qp);
}

TEST_P(RdmaContract, InvalidDescriptionsAreRefused) {
  open({});
  const auto group = a_.rdma->create_group({}).value();
  const auto good = b_.rdma->describe(b_.group.id);
  const auto good_region = b_.rdma->describe_region(b_.region.id);
  Prng prng(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes = good;
    if (round % 2 == 0) bytes.resize(prng.below(300));
    if (bytes.size() == good.size()) bytes[prng.below(8)] ^= std::byte(1 + prng.below(255));
    const auto connected = a_.rdma->connect(os::clock_now(), group.id, bytes);
    ASSERT_FALSE(connected) << round;
    EXPECT_EQ(connected.error().message.find('\n'), std::string::npos);
    std::vector<std::byte> region(prng.below(100));
    if (region.size() != good_region.size()) {
      EXPECT_FALSE(a_.rdma->open_region(a_.group.id, region)) << round;
    }
    // A description of the right size with any content is refused, or gives values that a write may
    // use; nothing is mapped.
    region = good_region;
    for (std::byte& byte : std::span(region).subspan(round % 2 == 0 ? 0 : 8))
      byte = std::byte(prng.next());
    const auto opened = a_.rdma->open_region(a_.group.id, region);
    if (opened) {
      EXPECT_EQ(opened->mapped, nullptr);
    }
  }
  EXPECT_FALSE(a_.rdma->connect(os::clock_now(), a_.group.id, good)) << "connected already";
}

TEST_P(RdmaContract, EachQpOfAFailedGroupIsToldOnceAndItsRequestsAreFlushed) {
  open({.qps = 2, .receives_max = 4, .receives_posted = 3});
  a_.rdma->fail_group(os::clock_now(), a_.group.id);
  ASSERT_TRUE(drive_until([&] { return a_.failures.size() == 2 && a_.receives.size() == 6; }));
  for (const Completion& one : a_.receives) EXPECT_EQ(one.status, Status::kFlushed);
  EXPECT_EQ(a_.failures[0].qp + a_.failures[1].qp, 2 * a_.group.first_qp + 1);
  for (const Failure& one : a_.failures) EXPECT_EQ(one.reason, Status::kFlushed);
  EXPECT_EQ(a_.rdma->post_receives(os::clock_now(), a_.group.first_qp, 1), 0u);
  for (int i = 0; i < 20; ++i) a_.look();
  EXPECT_EQ(a_.failures.size(), 2u);
}

TEST_P(RdmaContract, TheReasonOfAFailureIsKnownBeforeItsCompletionIsPolled) {
  open({});
  ASSERT_EQ(a_.post({.to_offset = kRegion, .size = 8}), 1u);
  Failure failure;
  bool is_told = false;
  for (const Time limit = os::clock_now() + kPatience; !is_told && os::clock_now() < limit;) {
    b_.look();
    // A device works in a thread of its own: its event may be the first sign of the failure.
    if (GetParam() != Kind::kLibrary) (void)a_.progress(os::clock_now() + Duration::us(50));
    is_told = a_.rdma->poll_failure(failure);
  }
  ASSERT_TRUE(is_told);
  EXPECT_EQ(failure.reason, Status::kRemoteAccess);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == 1; }));
  EXPECT_EQ(a_.writes[0].status, Status::kRemoteAccess);
}

TEST_P(RdmaContract, QueuesTakeTheirBoundsAndAtMostTheNextPowerOfTwo) {
  open({.sends_max = 5, .receives_max = 3, .receives_posted = 2});
  const std::uint32_t receives = b_.rdma->post_receives(os::clock_now(), b_.group.first_qp, 9);
  EXPECT_GE(receives, 1u);
  EXPECT_LE(receives, 2u);
  std::array<Write, 9> writes;
  writes.fill({.from = a_.region.id, .to = &a_.peer, .size = 100});
  const std::size_t sends = a_.rdma->post_writes(os::clock_now(), a_.group.first_qp, writes);
  EXPECT_GE(sends, 5u);
  EXPECT_LE(sends, 8u);
  ASSERT_TRUE(drive_until([&] { return a_.writes.size() == sends; }));
  EXPECT_EQ(a_.rdma->post_writes(os::clock_now(), a_.group.first_qp, writes), sends);
}

TEST_P(RdmaContract, ReceivesBeyondTheBoundAreNotTaken) {
  open({.receives_max = 8, .receives_posted = 2});
  EXPECT_EQ(b_.rdma->post_receives(os::clock_now(), b_.group.first_qp, 9), 6u);
  ASSERT_EQ(a_.post({.with_immediate = true, .immediate = 77}), 1u);
  ASSERT_TRUE(drive_until([&] { return b_.receives.size() == 1; }));
  EXPECT_EQ(b_.rdma->post_receives(os::clock_now(), b_.group.first_qp, 9), 1u);
}

TEST_P(RdmaContract, GroupsWithOtherNumbersOfQpsDoNotConnect) {
  open({.qps = 2});
  const auto three = a_.rdma->create_group({.qps = 3}).value();
  const auto refused = a_.rdma->connect(os::clock_now(), three.id, b_.rdma->describe(b_.group.id));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  EXPECT_FALSE(a_.rdma->create_group({.qps = 0}));
  EXPECT_FALSE(a_.rdma->create_group({.receives_max = 4, .receives_posted = 5}));
}

TEST_P(RdmaContract, AnEndThatSleepsIsWokenByAnotherThread) {
  open({});
  const Time start = os::clock_now();
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    a_.wake();
  });
  // Other arrivals, such as the peer's probes, may end a progress() earlier.
  while (os::clock_now() - start < Duration::ms(20)) (void)a_.progress(start + kPatience);
  waker.join();
  EXPECT_LT(os::clock_now() - start, kPatience / 2);
}

TEST_P(RdmaContract, AnEndThatSleepsUntilAnImmediateComesGetsIt) {
  open({.receives_max = 4, .receives_posted = 4});
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(a_.post({.with_immediate = true, .immediate = 5, .size = 100}), 1u);
    for (const Time limit = os::clock_now() + kPatience;
         a_.writes.empty() && os::clock_now() < limit;)
      a_.look();
  });
  std::array<Completion, 1> one;
  std::size_t count = 0;
  const Time start = os::clock_now(), limit = start + kPatience;
  while (count == 0 && os::clock_now() < limit) {
    (void)b_.progress(limit);
    count = b_.rdma->poll(one);
  }
  EXPECT_LT(os::clock_now() - start, kPatience / 2) << "it slept on";
  for (const Time until = os::clock_now() + Duration::ms(50); os::clock_now() < until;)
    (void)b_.progress(until);  // acknowledgements may be delayed
  writer.join();
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(one[0].immediate, 5u);
  EXPECT_EQ(a_.writes.size(), 1u);
}

// Sends a number to the other end and waits for the next one, until `rounds` have come back.
class PingPong final : public rdma::Program {
 public:
  PingPong(const End& end, bool begins, std::uint32_t rounds)
      : end_(&end), rounds_(rounds), next_(begins ? 0 : 1), sends_(begins) {}

  void step(Time now, rdma::Rdma& rdma) override {
    std::array<Completion, 4> batch;
    for (std::size_t count = batch.size(); count == batch.size();) {
      count = rdma.poll(batch);
      for (const Completion& one : std::span(batch).first(count)) {
        if (one.kind == Completion::Kind::kWrite) continue;
        rdma.post_receives(now, one.qp, 1);
        last_ = one.immediate;
        sends_ = last_ < rounds_;
        next_ = last_ + 1;
      }
    }
    if (!sends_) return;
    const Write write{.with_immediate = true,
                      .immediate = next_,
                      .from = end_->region.id,
                      .to = &end_->peer,
                      .size = 100};
    sends_ = rdma.post_writes(now, end_->group.first_qp, {&write, 1}) == 0;
  }
  Time next_deadline() const override { return kNever; }
  bool is_done() const override { return !sends_ && last_ + 1 >= rounds_; }

 private:
  const End* end_;
  std::uint32_t rounds_, next_, last_ = 0;
  bool sends_;
};

// Two ranks as they will be: a program in a thread of its own, on an Rdma that drives itself.
TEST_P(RdmaContract, ProgramsInTwoThreadsRunUntilTheyAreDone) {
  open({.receives_max = 4, .receives_posted = 4});
  constexpr std::uint32_t kRounds = 200;
  PingPong first(a_, true, kRounds), second(b_, false, kRounds);
  bool first_done = false;
  const Time limit = os::clock_now() + kPatience;
  std::thread thread([&] {
    first_done = a_.run(first, limit);
    // The peer may still need an answer.
    (void)a_.progress(os::clock_now() + Duration::ms(50));
  });
  EXPECT_TRUE(b_.run(second, limit));
  (void)b_.progress(os::clock_now() + Duration::ms(50));
  thread.join();
  EXPECT_TRUE(first_done);
}

// Fails its group in its first step, and is done when it has been told.
class GivesUp final : public rdma::Program {
 public:
  explicit GivesUp(const End& end) : end_(&end) {}
  void step(Time now, rdma::Rdma& rdma) override {
    std::array<Completion, 16> batch;
    flushed_ += rdma.poll(batch);
    for (Failure failure; rdma.poll_failure(failure);) is_told_ = true;
    if (has_failed_) return;
    has_failed_ = true;
    rdma.fail_group(now, end_->group.id);
  }
  Time next_deadline() const override { return kNever; }
  bool is_done() const override { return is_told_ && flushed_ == 2; }

 private:
  const End* end_;
  std::size_t flushed_ = 0;
  bool has_failed_ = false, is_told_ = false;
};

TEST_P(RdmaContract, WhatAProgramCausesInItsStepIsNewsForItsNextStep) {
  open({.receives_max = 4, .receives_posted = 2});
  GivesUp program(a_);
  const Time began = os::clock_now();
  EXPECT_TRUE(a_.run(program, began + kPatience));
  EXPECT_LT((os::clock_now() - began).to_us(), Duration::s(2).to_us());
}

TEST_P(RdmaContract, AFailedGroupLeavesNothingToTheNextOne) {
  open({.sends_max = 4, .receives_max = 64, .receives_posted = 64});
  for (int turn = 0; turn < 40; ++turn) {
    a_.rdma->fail_group(os::clock_now(), a_.group.id);
    ASSERT_TRUE(a_.rdma->destroy_group(os::clock_now(), a_.group.id));
    const auto next =
        a_.rdma->create_group({.sends_max = 4, .receives_max = 64, .receives_posted = 64});
    ASSERT_TRUE(next) << turn << next.error().message;
    a_.group = *next;
  }
  a_.look();
  EXPECT_TRUE(a_.writes.empty() && a_.receives.empty() && a_.failures.empty());
}

TEST_P(RdmaContract, AGroupThatOnlySendsTakesNoReceivesAndTheOtherWayRound) {
  open({.sends_max = 0, .receives_max = 4, .receives_posted = 4});
  EXPECT_EQ(a_.post({.size = 8}), 0u);
  const auto sender = a_.rdma->create_group({.sends_max = 4, .receives_max = 0}).value();
  EXPECT_EQ(a_.rdma->post_receives(os::clock_now(), sender.first_qp, 1), 0u);
}

TEST_P(RdmaContract, ADescriptionWithOneBadQpChangesNothing) {
  open({});
  const auto two = a_.rdma->create_group({.qps = 2, .sends_max = 1, .receives_max = 1}).value();
  const auto other = b_.rdma->create_group({.qps = 2, .sends_max = 1, .receives_max = 1}).value();
  const auto good = b_.rdma->describe(other.id);
  if (GetParam() == Kind::kLibrary)
    GTEST_SKIP() << "a QP of a library's description has no byte that could be wrong";
  auto bad = good;
  bad[bad.size() / 2] ^= std::byte{0xff};  // the version of the second QP's words
  EXPECT_FALSE(a_.rdma->connect(os::clock_now(), two.id, bad));
  auto elsewhere = good;
  elsewhere[elsewhere.size() / 2 + 33] ^= std::byte{1};  // the incarnation: of another process
  EXPECT_FALSE(a_.rdma->connect(os::clock_now(), two.id, elsewhere));
  EXPECT_TRUE(a_.rdma->connect(os::clock_now(), two.id, good));
}

INSTANTIATE_TEST_SUITE_P(Net, RdmaContract,
                         ::testing::Values(Kind::kPlanes, Kind::kSharedMemory, Kind::kLibrary),
                         [](const auto& of) {
                           return of.param == Kind::kPlanes         ? "Planes"
                                  : of.param == Kind::kSharedMemory ? "SharedMemory"
                                                                    : "Library";
                         });

}  // namespace
}  // namespace weft
