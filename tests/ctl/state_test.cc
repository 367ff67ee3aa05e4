// The controller's state shared by real processes: use, kill -9, two writers, permissions, events.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "control/controller_state.h"
#include "control/ctl_codec.h"
#include "control/ctl_events.h"
#include "control/ctl_test_changes.h"

namespace weft::control {
namespace {

namespace fs = std::filesystem;
using testing::ev_change;
using testing::format_change;
using testing::stev;

constexpr auto kOffline = ProfileState::kOffline;
constexpr auto kOnline = ProfileState::kOnline;

class CtlStateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/weft-ctl-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    fs::remove_all(directory_);
  }

  std::unique_ptr<ControllerState> open(DeviceScope scope = DeviceScope::kUser) {
    auto state = ControllerState::open({.directory = directory_,
                                        .device = "weft0",
                                        .scope = scope,
                                        .shape = {.port_mask = 0b11110}});
    EXPECT_TRUE(state) << state.error().message;
    return std::move(state).value();
  }
  // Brings EV profile 1 ONLINE, with two EVs.
  static void online(ControllerState& state) {
    ASSERT_TRUE(state.modify_format(13, format_change({16, 16})));
    ASSERT_TRUE(state.modify_format(13, {.state = kOnline}));
    EvChange change = ev_change(fabric::EvMode::kExplicit, 2);
    change.ops = EvOps{
        .op = EvOp::kReplace,
        .entries = {{.ev_new = stev(0xa, 1), .state = 1}, {.ev_new = stev(0xb, 3), .state = 4}}};
    ASSERT_TRUE(state.modify_ev(1, change));
    ASSERT_TRUE(state.modify_ev(1, {.state = kOnline}));
  }
  // Runs `body` in a child process until `body` returns or end() is called. Waits for the byte that
  // `body` writes to `ready`.
  pid_t child(const std::function<void(int ready)>& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      body(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    children_.push_back(pid);
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
  }
  void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    std::erase(children_, pid);
  }

  std::string directory_;
  std::vector<pid_t> children_;
};

// Eight processes find an empty directory at the same moment, as the ranks of a job do after a
// reboot.
TEST_F(CtlStateTest, ProcessesThatStartTogetherAllSeeACompleteState) {
  for (int round = 0; round < 40; ++round) {
    fs::remove_all(directory_);
    fs::create_directory(directory_);
    std::array<int, 2> start{};
    ASSERT_EQ(pipe(start.data()), 0);
    std::vector<pid_t> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(fork());
      if (all.back() != 0) continue;
      close(start[1]);
      char byte;
      (void)!read(start[0], &byte, 1);
      const auto state = ControllerState::open(
          {.directory = directory_, .device = "weft0", .shape = {.port_mask = 0b11110}});
      _exit(state ? 0 : 1);
    }
    close(start[1]);  // all children continue now
    close(start[0]);
    for (const pid_t child : all) {
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << "round " << round;
    }
  }
}

// If there is no space for the first page of the file, opening fails, and no partial file remains
// that others would take for a damaged one.
TEST_F(CtlStateTest, AFailedFirstWriteLeavesNoFile) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    const auto state = ControllerState::open(
        {.directory = directory_, .device = "weft0", .shape = {.port_mask = 0b11110}});
    _exit(state ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(WIFEXITED(status));
  for (const auto& entry : fs::directory_iterator(directory_))
    EXPECT_NE(fs::file_size(entry), 0u) << entry.path();
}

TEST_F(CtlStateTest, StateOutlivesProcessesAndAllProcessesSeeIt) {
  auto one = open();
  const std::uint64_t before = one->generation();
  online(*one);
  EXPECT_NE(one->generation(), before);
  EXPECT_EQ(one->generation() % 2, 0u);
  auto two = open();
  EXPECT_EQ(two->generation(), one->generation());
  const auto use = two->use_ev_profile(1);
  ASSERT_TRUE(use) << use.error().message;
  ASSERT_EQ(use->view.entries.size(), 2u);
  EXPECT_EQ(use->view.entries[0].path, (fabric::Ev{.value = 0xa, .port = 0}));
  EXPECT_EQ(use->view.entries[1].path, (fabric::Ev{.value = 0xb, .port = 2}));
  EXPECT_EQ(use->view.entries[1].state, EvState::kDenied);
  EXPECT_EQ(use->view.event_mask, 3u);
  // One process denies an EV. The other process must see a new generation number, and then the new
  // state.
  const std::uint64_t seen = two->generation();
  ASSERT_TRUE(one->modify_ev(
      1, {.ops = EvOps{.op = EvOp::kModifyState, .entries = {{.ev = stev(0xa, 1), .state = 4}}}}));
  EXPECT_NE(two->generation(), seen);
  EXPECT_EQ(two->ev_view(1)->entries[0].state, EvState::kDenied);
}

TEST_F(CtlStateTest, ProfileZeroMeansTheDefaultsUntilConfigured) {
  auto state = open();
  auto ev = state->use_ev_profile(0);
  ASSERT_TRUE(ev);
  EXPECT_EQ(ev->view.mode, fabric::EvMode::kAutomatic);
  EXPECT_TRUE(ev->view.entries.empty());
  auto cc = state->use_cc_profile(0);
  ASSERT_TRUE(cc);
  EXPECT_EQ(cc->view.algorithm, CcAlgorithm::kNscc);
  EXPECT_EQ(state->use_ev_profile(1).error().code, EINVAL);  // EV profile 1 is in INIT
  EXPECT_EQ(state->use_ev_profile(kEvProfilesMax).error().code, EINVAL);
  EXPECT_EQ(state->use_cc_profile(kCcProfilesMax).error().code, EINVAL);
  // Using the defaults must not prevent a change of the profile.
  ASSERT_TRUE(state->modify_cc(0, {.state = kOffline, .algorithm = CcAlgorithm::kNone}));
  ASSERT_TRUE(state->modify_cc(0, {.state = kOnline}));
  EXPECT_EQ(state->use_cc_profile(0)->view.algorithm, CcAlgorithm::kNone);
  EXPECT_TRUE(state->modify_cc(0, {.state = kOffline}));
}

TEST_F(CtlStateTest, AUseKeepsTheProfileOnlineUntilItsProcessIsKilled) {
  auto state = open();
  online(*state);
  const pid_t user = child([&](int ready) {
    auto mine = open();
    auto use = mine->use_ev_profile(1);
    auto again = mine->use_ev_profile(1);
    if (!use || !again) _exit(1);
    again->use.release();  // the profile has a second use
    (void)!::write(ready, "x", 1);
    pause();
  });
  EXPECT_EQ(state->modify_ev(1, {.state = kOffline}).error().code, EBUSY);
  end(user);
  EXPECT_TRUE(state->modify_ev(1, {.state = kOffline}));
  EXPECT_EQ(state->use_ev_profile(1).error().code, EINVAL);
}

TEST_F(CtlStateTest, SeveralChangesInOneAreAllMadeOrNone) {
  auto state = open();
  online(*state);
  const auto before = state->snapshot().value();
  using Changes = ControllerState::Changes;
  // The first entry of the batch succeeds, the second fails. In a single modify_ev() the first
  // entry would be kept; here it must be undone.
  const EvOps half{.op = EvOp::kModifyState,
                   .entries = {{.ev = stev(0xa, 1), .state = 4}, {.ev = stev(0xc, 1), .state = 4}}};
  const auto failed = state->change_together([&](Changes& to) -> CtlResult<void> {
    WEFT_CHECK(to.modify_port({.port = 2, .enabled = false}));
    return to.modify_ev(1, {.ops = half});
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ENOENT);
  EXPECT_EQ(*state->snapshot().value(), *before);
  EXPECT_FALSE(state->modify_ev(1, {.ops = half}));
  EXPECT_EQ(state->snapshot().value()->evs[1].evs[0].state, EvState::kDenied);
  // One change brings a profile OFFLINE and ONLINE again. It must be refused while the profile is
  // in use.
  const auto round = [&](Changes& to) -> CtlResult<void> {
    WEFT_CHECK(to.modify_port({.port = 3, .enabled = false}));
    WEFT_CHECK(to.modify_ev(1, {.state = kOffline}));
    return to.modify_ev(1, {.state = kOnline});
  };
  {
    const auto use = state->use_ev_profile(1);
    ASSERT_TRUE(use);
    const auto busy = state->change_together(round);
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().code, EBUSY);
    EXPECT_EQ(state->snapshot().value()->ports_disabled, before->ports_disabled);
  }
  const std::uint64_t made = state->generation_made();
  ASSERT_TRUE(state->change_together(round));
  EXPECT_EQ(state->generation_made(), made + 1);
  EXPECT_EQ(state->snapshot().value()->evs[1].state, kOnline);
  EXPECT_NE(state->snapshot().value()->ports_disabled, before->ports_disabled);
}

TEST_F(CtlStateTest, AUseByTheSameProcessKeepsAProfileOnline) {
  auto state = open();
  online(*state);
  {
    const auto use = state->use_ev_profile(1);
    ASSERT_TRUE(use);
    EXPECT_EQ(state->modify_ev(1, {.state = kOffline}).error().code, EBUSY);
  }
  EXPECT_TRUE(state->modify_ev(1, {.state = kOffline}));
}

// A forked child, such as a DataLoader worker, must not keep the profile of its dead parent busy.
TEST_F(CtlStateTest, AForkedChildHoldsNoUseOfAProfile) {
  auto state = open();
  online(*state);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t parent = child([&](int ready) {
    auto mine = open();
    const auto use = mine->use_ev_profile(1);
    if (!use) _exit(1);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      prctl(PR_SET_PDEATHSIG, 0);
      close(ends[1]);
      (void)!::write(ready, "x", 1);
      char byte = 0;
      (void)!::read(ends[0], &byte, 1);  // blocks until the test ends
      _exit(0);
    }
    pause();
  });
  close(ends[0]);
  end(parent);
  EXPECT_TRUE(state->modify_ev(1, {.state = kOffline}));
  close(ends[1]);
}

// A writer may be killed at any moment. Then the file must have the old state or the new state, and
// the next writer must be able to continue.
TEST_F(CtlStateTest, AWriterMayBeKilledAtAnyPoint) {
  auto state = open();
  online(*state);
  std::uint64_t generation = 0;
  for (int round = 0; round < 40; ++round) {
    const pid_t writer = child([&](int ready) {
      auto mine = open();
      (void)!::write(ready, "x", 1);
      for (;;) (void)mine->touch();
    });
    usleep(static_cast<useconds_t>(500 + 137 * round));
    end(writer);
    const auto seen = state->snapshot();
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_GE((*seen)->generation, generation);
    generation = (*seen)->generation;
    ASSERT_EQ((*seen)->evs[1].evs.size(), 2u);
    ASSERT_TRUE(state->modify_port({.port = 1, .enabled = round % 2 == 0}));
    EXPECT_EQ(state->generation() % 2, 0u);
    EXPECT_EQ((*state->snapshot())->ports_disabled, round % 2 == 0 ? 0u : 0b10u);
  }
}

TEST_F(CtlStateTest, TwoControllersLoseNoChange) {
  open();
  constexpr int kEach = 100;
  std::vector<pid_t> writers;
  for (std::uint64_t id : {5u, 6u}) {
    writers.push_back(child([&, id](int ready) {
      auto mine = open();
      (void)!::write(ready, "x", 1);
      for (int i = 0; i < kEach; ++i) {
        VendorConfig vendor{};
        vendor[0] = static_cast<std::byte>(i + 1);
        if (!mine->modify_cc(id, {.vendor = vendor})) _exit(1);
      }
    }));
  }
  for (const pid_t pid : writers) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    std::erase(children_, pid);
    EXPECT_EQ(status, 0);
  }
  const auto now = *open()->snapshot();
  EXPECT_EQ(now->generation, 2u * kEach);
  EXPECT_EQ(now->ccs[5].vendor[0], static_cast<std::byte>(kEach));
  EXPECT_EQ(now->ccs[6].vendor[0], static_cast<std::byte>(kEach));
}

TEST_F(CtlStateTest, ADamagedFileIsReportedAndNotUsed) {
  auto state = open();
  online(*state);
  std::ofstream(directory_ + "/weft0.state", std::ios::binary) << "rubbish";
  auto other = open();
  const auto seen = other->snapshot();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, EIO);
  EXPECT_NE(seen.error().message.find("weft0.state"), std::string::npos);
  EXPECT_EQ(other->modify_port({.port = 1, .enabled = false}).error().code, EIO);
}

TEST_F(CtlStateTest, BadNamesAndDirectoriesAreRefused) {
  for (const char* name : {"", "../x", "a/b", ".hidden"}) {
    EXPECT_FALSE(ControllerState::open({.directory = directory_, .device = name}));
  }
  fs::permissions(directory_, fs::perms{0777});
  EXPECT_FALSE(ControllerState::open({.directory = directory_, .device = "weft0"}));
  fs::permissions(directory_, fs::perms{0700});
  // The directory is missing and cannot be created: the state has its initial values, and cannot be
  // changed.
  auto nowhere = ControllerState::open({.directory = "/proc/self/nosuch", .device = "weft0"});
  ASSERT_TRUE(nowhere);
  EXPECT_FALSE((*nowhere)->is_attached());
  EXPECT_TRUE((*nowhere)->use_ev_profile(0));
  EXPECT_EQ((*nowhere)->modify_port({.port = 1}).error().code, EPERM);
}

TEST_F(CtlStateTest, OnlyTheOwnerMayChangeTheState) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  fs::permissions(directory_, fs::perms{0755});
  auto state = open(DeviceScope::kSystem);
  online(*state);
  const pid_t other = child([&](int ready) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    auto mine = open(DeviceScope::kSystem);
    const auto use = mine->use_ev_profile(1);
    if (!use) _exit(3);
    if (mine->modify_port({.port = 1, .enabled = false}).error().code != EPERM) _exit(4);
    if (mine->modify_ev(1, {.state = kOffline}).error().code != EPERM) _exit(5);
    (void)!::write(ready, "x", 1);
    pause();
  });
  EXPECT_EQ(state->modify_ev(1, {.state = kOffline}).error().code,
            EBUSY);  // a use by this process counts too
  end(other);
  // Root without CAP_NET_ADMIN may change a device of a user, but not a system device.
  const pid_t uncapped = child([&](int ready) {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct data[2]{};
    if (syscall(SYS_capget, &header, data) != 0) _exit(2);
    data[0].effective &= ~(1u << CAP_NET_ADMIN);
    if (syscall(SYS_capset, &header, data) != 0) _exit(3);
    if (open(DeviceScope::kSystem)->modify_port({.port = 1}).error().code != EPERM) _exit(4);
    if (!open(DeviceScope::kUser)->modify_port({.port = 1})) _exit(5);
    (void)!::write(ready, "x", 1);
  });
  end(uncapped);
}

TEST_F(CtlStateTest, EventsReachEveryListenerWithAnExactCountOfLosses) {
  auto state = open();
  EXPECT_EQ(state->events_directory(ControllerState::Make::kNo).error().kind, ErrorKind::kNotFound);
  std::array<std::unique_ptr<EvEventQueue>, 2> queues;
  for (auto& queue : queues) {
    auto made = EvEventQueue::open(state->events_directory(ControllerState::Make::kYes).value());
    ASSERT_TRUE(made) << made.error().message;
    queue = std::move(made).value();
  }
  EvEventSender sender;
  ASSERT_TRUE(sender.refresh(*state->events_directory(ControllerState::Make::kNo)));
  ASSERT_EQ(sender.listeners(), 2u);
  const EvEvent first{.profile_id = 1, .ev = stev(7, 2), .state = EvState::kAssumedBad};
  sender.send(first);
  EvEvent got[2];
  for (auto& queue : queues) {
    ASSERT_EQ(queue->poll(got), 1u);
    EXPECT_EQ(got[0], first);
  }
  // No listener reads: the kernel's queues fill. Each further event must be counted as lost.
  constexpr std::uint64_t kMany = 20'000;
  for (std::uint64_t i = 0; i < kMany; ++i) sender.send(first);
  ASSERT_GT(sender.dropped(), 0u);
  std::vector<EvEvent> all(kMany);
  std::uint64_t sent = kMany;
  for (auto& queue : queues) {
    std::uint64_t received = queue->poll(all), lost = 0;
    EXPECT_GE(received, kEventsMin);
    for (std::uint64_t i = 0; i < received; ++i) lost += all[i].drop_count;
    EXPECT_EQ(lost, 0u);
    sender.send(first);  // carries the number of events lost before it
    ASSERT_GE(queue->poll(got), 1u);
    EXPECT_EQ(received + got[0].drop_count, sent) << "and no other is missing";
    ++sent;  // the other listener's queue is still full, so this event counts as lost there
    while (queue->poll(got) > 0) {
    }
  }
  // When a listener ends, its socket must be removed.
  queues[0].reset();
  sender.send(first);
  ASSERT_TRUE(sender.refresh(*state->events_directory(ControllerState::Make::kNo)));
  EXPECT_EQ(sender.listeners(), 1u);
}

TEST_F(CtlStateTest, EventQueuesAreBoundedAndThoseOfDeadProcessesAreRemoved) {
  auto state = open();
  const auto make = [&] {
    return EvEventQueue::open(state->events_directory(ControllerState::Make::kYes).value());
  };
  const pid_t dead = child([&](int ready) {
    const auto queue = make();
    (void)!::write(ready, queue ? "x" : "", queue ? 1 : 0);
    pause();
  });
  end(dead);
  std::vector<std::unique_ptr<EvEventQueue>> queues;
  for (std::uint32_t i = 0; i < kEventQueuesMax; ++i) {
    auto queue = make();
    ASSERT_TRUE(queue) << queue.error().message;
    queues.push_back(std::move(queue).value());
  }
  EXPECT_EQ(make().error().kind, ErrorKind::kExhausted);
  queues.clear();
  EXPECT_TRUE(fs::is_empty(directory_ + "/weft0.events"));
}

TEST_F(CtlStateTest, AMalformedEventIsCountedAndDropped) {
  std::array<std::byte, kEvEventBytes> bytes{};
  const EvEvent event{.profile_id = 3, .ev = stev(1, 4), .state = EvState::kGood, .drop_count = 9};
  emit_ev_event(event, bytes);
  EXPECT_EQ(parse_ev_event(bytes), event);
  EXPECT_FALSE(parse_ev_event(ConstBytes(bytes).first(kEvEventBytes - 1)));
  for (const std::size_t at : {0u, 8u, 48u, 49u}) {
    auto bad = bytes;
    bad[at] = std::byte{0xff};
    EXPECT_FALSE(parse_ev_event(bad)) << at;
  }
}

}  // namespace
}  // namespace weft::control
