#include "lab/lab_switch.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "softswitch/frame_socket.h"
#include "softswitch/live_fabric_loop.h"

namespace weft::lab {
namespace {

constexpr int kChannelFd = 3;            // descriptor of the switch's end of channel_
constexpr int kStartMs = 30'000;         // how long to wait for an answer on a busy machine
constexpr std::size_t kAnswerMax = 512;  // "ok", or an error message

Error broken(const char* what) {
  return {ErrorKind::kSystem,
          fmt::format("lab: software switch: {}: {}", what, strerrordesc_np(errno))};
}

// Opens the sockets of the switch. The control socket is opened before the namespaces are entered,
// because its folder may be hidden inside the lab.
Result<std::unique_ptr<softswitch::LiveFabricLoop>> open_loop(const NewSwitch::Orders& orders) {
  WEFT_TRY(os::ControlSocket control, os::ControlSocket::listen(orders.control_path));
  WEFT_CHECK(enter(orders.lab_entry, orders.netns));
  WEFT_TRY(softswitch::FrameSocket links, softswitch::FrameSocket::open(orders.config.topology));
  return std::make_unique<softswitch::LiveFabricLoop>(
      orders.config, std::make_unique<softswitch::FrameSocket>(std::move(links)),
      std::move(control));
}

void say(std::string_view text) {
  if (send(kChannelFd, text.data(), std::min(text.size(), kAnswerMax), MSG_NOSIGNAL) < 0) _exit(1);
}

// A descriptor that is readable when SIGTERM has come or, if `leashed`, the caller has closed its
// end of the socket.
int open_stop(bool ends_with_caller) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int told = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  const int stop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event readable{.events = EPOLLIN, .data = {}};
  if (told < 0 || stop < 0 || epoll_ctl(stop, EPOLL_CTL_ADD, told, &readable) != 0) _exit(1);
  if (ends_with_caller && epoll_ctl(stop, EPOLL_CTL_ADD, kChannelFd, &readable) != 0) _exit(1);
  return stop;
}

[[noreturn]] void serve(int talk, const NewSwitch::Orders& orders) {
  // Close our copies of the caller's descriptors. A program that waits until its output is closed
  // or a lock is released must not wait for the switch.
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0) _exit(1);
  for (int fd = 0; fd < 3; ++fd) dup2(nothing, fd);
  dup2(talk, kChannelFd);
  close_range(kChannelFd + 1, ~0u, 0);
  prctl(PR_SET_NAME, "weft-switch");
  const int stop = open_stop(orders.ends_with_caller);
  const pid_t own = getpid();
  if (send(kChannelFd, &own, sizeof(own), MSG_NOSIGNAL) != sizeof(own)) _exit(1);
  char go = 0;
  if (recv(kChannelFd, &go, 1, 0) != 1) _exit(1);
  auto loop = open_loop(orders);
  if (!loop) {
    say(loop.error().message);
    _exit(1);
  }
  say("ok");
  if (!orders.ends_with_caller) close(kChannelFd);
  (*loop)->run(stop);
  loop->reset();
  _exit(0);
}

// Receives one message. On an error, errno is the reason.
ssize_t hear(int fd, void* to, std::size_t size) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = poll(&waiting, 1, kStartMs)) < 0 && errno == EINTR) {
  }
  if (ready == 0) errno = ETIMEDOUT;
  return ready > 0 ? recv(fd, to, size, 0) : -1;
}

}  // namespace

Result<NewSwitch> NewSwitch::start(const Orders& orders) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return broken("socketpair");
  os::FileDescriptor ours(ends[0]), theirs(ends[1]);
  // Fork twice, so that the switch is not our child and leaves no zombie.
  const pid_t between = fork();
  if (between < 0) return broken("fork");
  if (between == 0) {
    if (setsid() < 0 || chdir("/") != 0) _exit(1);
    const pid_t pid = fork();
    if (pid != 0) _exit(pid < 0 ? 1 : 0);
    serve(theirs.get(), orders);
  }
  theirs.reset();
  while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_t pid = 0;
  if (hear(ours.get(), &pid, sizeof(pid)) != sizeof(pid)) return broken("fork");
  const auto process = find_process(pid);
  if (!process) return broken("it ended at once");
  NewSwitch out;
  out.process_ = *process;
  out.channel_ = std::move(ours);
  return out;
}

Result<void> NewSwitch::let_go() {
  const char go = 1;
  if (send(channel_.get(), &go, 1, MSG_NOSIGNAL) != 1) return broken("it is gone");
  std::array<char, kAnswerMax> answer;
  const ssize_t got = hear(channel_.get(), answer.data(), answer.size());
  if (got <= 0) return broken("it gave no answer");
  const std::string_view text(answer.data(), static_cast<std::size_t>(got));
  if (text == "ok") return {};
  return Error{ErrorKind::kSystem, fmt::format("lab: software switch: {}", text)};
}

}  // namespace weft::lab
