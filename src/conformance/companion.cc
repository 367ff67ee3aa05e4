#include "conformance/companion.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <exception>

namespace weft::conformance {
namespace {

bool is_readable_in_time(const Session& session, int fd) {
  const auto left =
      std::chrono::duration_cast<milliseconds>(session.ends_at() - Clock::now()).count();
  pollfd what{.fd = fd, .events = POLLIN, .revents = 0};
  return left > 0 && poll(&what, 1, static_cast<int>(left)) == 1;
}

// The second process reports a failure as text; its first byte says Failure or Skip.
constexpr char kFailed = 'f', kSkipped = 's';

// Runs the body. Returns its failure as text, empty if the body passed.
std::string run_body(Session& session, const Line& line,
                     const std::function<void(Session&, const Line&)>& body) {
  try {
    body(session, line);
    return {};
  } catch (const Failure& failure) {
    return fmt::format("{}{}, got {}", kFailed, failure.expected, failure.got);
  } catch (const Skip& skipped) {
    return kSkipped + skipped.reason;
  } catch (const SuiteError& error) {
    return kFailed + error.what;
  } catch (const std::exception& other) {
    return kFailed + std::string(other.what());
  } catch (...) {
    return kFailed + std::string("an exception of the library's");
  }
}

}  // namespace

void Line::send(const void* bytes, std::size_t size) const {
  if (::send(fd_, bytes, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size))
    fail("the other process of the test receives", "it has ended");
}

void Line::receive(const Session& session, void* bytes, std::size_t size) const {
  std::size_t got = 0;
  while (got < size) {
    if (!is_readable_in_time(session, fd_))
      fail("the other process of the test answers", "it sends nothing");
    const ssize_t count = read(fd_, static_cast<char*>(bytes) + got, size - got);
    if (count <= 0) fail("the other process of the test answers", "it ended early");
    got += static_cast<std::size_t>(count);
  }
}

Companion::Companion(Session& session, const std::function<void(Session&, const Line&)>& body)
    : session_(session) {
  session.share_device();
  int ends[2], words[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 || pipe2(words, O_CLOEXEC) != 0)
    throw SuiteError{"socketpair, pipe"};
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw SuiteError{"fork"};
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    const std::string why = run_body(session, Line(ends[1]), body);
    [[maybe_unused]] const auto told = write(words[1], why.data(), why.size());
    _exit(0);
  }
  close(ends[1]);
  close(words[1]);
  fd_ = ends[0];
  words_ = words[0];
}

Companion::~Companion() {
  kill_process();
  close(fd_);
  close(words_);
}

void Companion::kill_process() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Companion::join() {
  if (!is_readable_in_time(session_, words_)) fail("the other process ends", "it still runs");
  std::array<char, 512> text;
  const ssize_t got = read(words_, text.data(), text.size());
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (got > 0) {
    const std::string why(text.data() + 1, static_cast<std::size_t>(got - 1));
    if (text[0] == kSkipped) skip(why);
    fail("all holds at the other end", why);
  }
  if (!WIFEXITED(status))
    fail("the other process exits normally", fmt::format("signal {}", WTERMSIG(status)));
}

}  // namespace weft::conformance
