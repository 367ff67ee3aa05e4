// Weft works without features that older kernels lack. A filter on system calls refuses these
// features here, in a child process.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>

#include "hostile_pair.h"
#include "os/stream.h"

namespace weft::hostile {
namespace {

// Makes this system call fail from now on (only with this first argument, if it is set). False:
// filters are not permitted.
struct Forbidden {
  std::uint32_t number = 0;
  std::optional<std::uint32_t> argument{};
  std::uint32_t error = ENOSYS;
};
bool forbid(const Forbidden& what) {
  constexpr std::size_t kArgument = offsetof(seccomp_data, args);  // lower half of the argument
  std::array<sock_filter, 6> program = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what.number, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArgument),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what.argument.value_or(0), 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | what.error),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  // Without an argument in `what`, every call is refused.
  if (!what.argument) program[3] = sock_filter BPF_STMT(BPF_MISC | BPF_TAX, 0);
  sock_fprog filter{.len = program.size(), .filter = program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

constexpr int kHeld = 40, kNotAllowed = 41, kFailed = 42;

// A listener and a dialling end connect although IPv6 is missing.
int meet_over_ipv4() {
  if (!forbid({.number = SYS_socket, .argument = AF_INET6, .error = EAFNOSUPPORT}))
    return kNotAllowed;
  const std::uint16_t port = static_cast<std::uint16_t>(20'000 + getpid() % 10'000);
  const pid_t dialler = fork();
  if (dialler == 0) {
    for (int i = 0; i < 100; ++i) {
      if (os::dial({.host = "127.0.0.1", .port = port})) _exit(kHeld);
      usleep(50'000);
    }
    _exit(kFailed);
  }
  alarm(20);
  auto listener = os::Listener::open(port, 1);
  const bool came = listener && listener->accept();
  int status = 0;
  waitpid(dialler, &status, 0);
  return came && WEXITSTATUS(status) == kHeld ? kHeld : kFailed;
}

// Runs `what` in a child process, because a filter cannot be removed.
void expect_held(int (*what)()) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(what());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "no filters on system calls here";
  EXPECT_EQ(WEXITSTATUS(status), kHeld);
}

TEST(OldKernel, EndsMeetOverIpv4WithoutIpv6) { expect_held(meet_over_ipv4); }

}  // namespace
}  // namespace weft::hostile
