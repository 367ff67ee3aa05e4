#include "conformance/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "os/file_descriptor.h"
#include "os/system_error.h"

namespace weft::conformance {
namespace {

using Clock = std::chrono::steady_clock;
// A result has one or two lines, but a broken library may print any amount of text.
constexpr std::size_t kTextMax = 64 << 10, kPrintedMax = 4096;
// A complete result begins with this character; a truncated result must not be accepted.
constexpr char kWhole = '\x06';

using os::system_error;

[[noreturn]] void be_child(int text_fd, int printed_fd, pid_t parent,
                           const std::function<std::string()>& body) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(printed_fd, STDOUT_FILENO);
  dup2(printed_fd, STDERR_FILENO);
  std::string text = body();
  text.resize(std::min(text.size(), kTextMax));
  text += kWhole;
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = write(text_fd, text.data() + at, text.size() - at);
    if (count <= 0) _exit(1);
    at += static_cast<std::size_t>(count);
  }
  // Use _exit(): the library's exit handlers are not part of the test.
  _exit(0);
}

// Reads until the other end closes the pipe or the time is `until`.
bool read_until(int fd, Clock::time_point until, std::string& out) {
  std::array<char, 4096> buffer;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd what{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&what, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000))) <= 0) continue;
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count <= 0) return true;
    out.append(buffer.data(), static_cast<std::size_t>(count));
    if (out.back() == kWhole) return true;
  }
}

std::string last_line_of(int fd) {
  std::string text(kPrintedMax, '\0');
  const off_t size = lseek(fd, 0, SEEK_END);
  const off_t from = std::max<off_t>(size - static_cast<off_t>(text.size()), 0);
  const ssize_t got = pread(fd, text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

Result<ChildResult> run_in_child(std::chrono::milliseconds limit,
                                 const std::function<std::string()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe");
  os::FileDescriptor text(ends[0]), text_in(ends[1]);
  const os::FileDescriptor printed(memfd_create("weft-conformance", MFD_CLOEXEC));
  if (!printed.is_open()) return system_error("memfd_create");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork");
  if (pid == 0) be_child(text_in.get(), printed.get(), parent, body);
  setpgid(pid, pid);  // parent and child both call this; the first call takes effect
  text_in.reset();

  ChildResult out;
  out.timed_out = !read_until(text.get(), Clock::now() + limit, out.text);
  out.finished = !out.text.empty() && out.text.back() == kWhole;
  if (out.finished) out.text.pop_back();
  // Wait until the child ends by itself. WNOWAIT keeps it a zombie, so that its process group id is
  // not reused.
  siginfo_t how{};
  if (!out.finished && !out.timed_out)
    waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOWAIT);
  if (how.si_code == CLD_EXITED) {
    out.exit_status = how.si_status;
  } else if (!out.finished && !out.timed_out) {
    out.signal = how.si_status;
  }
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);  // in case it died before it became the leader of its group
  waitpid(pid, nullptr, 0);
  out.last_line = last_line_of(printed.get());
  return out;
}

}  // namespace weft::conformance
