// What newer kernels have and older ones do not: refused here by a filter on system calls, in a child.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "hostile_pair.h"

namespace weft::hostile {
namespace {

// From here on this process has no such system call. False: filters are not allowed.
bool forbid(std::uint32_t number) {
  std::array<sock_filter, 4> program = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter{.len = program.size(), .filter = program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

constexpr int kHeld = 40, kNotAllowed = 41, kFailed = 42;

// Two ends that sleep between packets, without epoll_pwait2.
int transfer_asleep() {
  if (!forbid(SYS_epoll_pwait2)) return kNotAllowed;
  HostilePair pair;
  if (!pair.open(Security::kPlain)) return kFailed;
  pair.post(pair.a, pair.b, {});
  const Time until = net::clock_now() + Duration::s(20);
  while (pair.a.done == 0 && net::clock_now() < until) {
    for (End* end : {&pair.a, &pair.b}) {
      end->net->world().step(net::clock_now() + Duration::ms(2));  // longer than it spins
      end->collect();
    }
  }
  // Nothing is to come any more: it sleeps, and wakes up.
  const Time before = net::clock_now();
  pair.a.net->world().step(before + Duration::ms(30));
  const Duration slept = net::clock_now() - before;
  return pair.a.done == 1 && slept >= Duration::ms(29) ? kHeld : kFailed;
}

TEST(OldKernel, SleepsInMillisecondsWithoutEpollPwait2) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(transfer_asleep());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "no filters on system calls here";
  EXPECT_EQ(WEXITSTATUS(status), kHeld);
}

}  // namespace
}  // namespace weft::hostile
