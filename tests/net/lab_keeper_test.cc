// A keeper is looked up and ended while this process has no free descriptors: it must not be taken
// for dead.
#include "lab/lab_keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace weft::net {
namespace {

class FewDescriptors {
 public:
  // From now on this process can open only `spare` more descriptors.
  explicit FewDescriptors(rlim_t spare) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest) + spare;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

pid_t start_sleeper() {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

TEST(LabKeeper, LivingKeeperIsNotTakenForDeadWithoutDescriptors) {
  const pid_t child = start_sleeper();
  ASSERT_GT(child, 0);
  const auto keeper = lab::find_process(child);
  ASSERT_TRUE(keeper.has_value());
  // With 0 spare descriptors end_keeper() cannot open the process; with 1 it can open the process,
  // but not read its state.
  for (const rlim_t spare : {0, 1}) {
    const FewDescriptors few(spare);
    EXPECT_FALSE(lab::end_keeper(*keeper)) << spare;
  }
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it was ended";
  {
    const FewDescriptors none(0);
    EXPECT_TRUE(lab::is_alive(*keeper));
  }
  EXPECT_TRUE(lab::end_keeper(*keeper));
  EXPECT_FALSE(lab::is_alive(*keeper));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(lab::end_keeper(*keeper)) << "one that is gone is fine";
}

TEST(LabKeeper, AnotherProcessWithTheKeepersPidIsLeftAlone) {
  const pid_t child = start_sleeper();
  ASSERT_GT(child, 0);
  auto keeper = lab::find_process(child);
  ASSERT_TRUE(keeper.has_value());
  --keeper->start;
  EXPECT_FALSE(lab::is_alive(*keeper));
  EXPECT_TRUE(lab::end_keeper(*keeper));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace weft::net
