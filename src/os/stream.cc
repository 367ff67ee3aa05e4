#include "os/stream.h"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/clock.h"
#include "os/interruption.h"

namespace weft::os {
namespace {

// No single wait is longer than this. A signal that comes just before a wait does not interrupt it,
// so the wait must end by itself.
constexpr int kWaitMs = 100;

// Waits until `fd` is readable. False at the time `until`, or after Ctrl-C.
bool wait_readable(int fd, Time until) {
  while (os::clock_now() < until) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    if (interrupted()) return false;
    if (poll(&p, 1, kWaitMs) > 0) return true;
  }
  return false;
}

// A socket that listens on every address of this host, on IPv4 only if the host has no IPv6. -1
// with errno on an error.
int listen_on(std::uint16_t port, std::uint32_t count) {
  const int on = 1, off = 0;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(port);
  any6.sin6_addr = in6addr_any;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(port);
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool v6 = fd >= 0;
  if (!v6) fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (v6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  const auto* const address =
      v6 ? reinterpret_cast<const sockaddr*>(&any6) : reinterpret_cast<const sockaddr*>(&any4);
  if (bind(fd, address, v6 ? sizeof(any6) : sizeof(any4)) == 0 &&
      ::listen(fd, static_cast<int>(count)) == 0) {
    return fd;
  }
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

// A broken network causes no error on an idle stream. So keepalive probes detect a silent peer, and
// end the stream.
void notice_silence(int fd) {
  const int on = 1, idle_s = 5, every_s = 5, tries = 3, unanswered_ms = 20'000;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

}  // namespace

Stream::~Stream() {
  if (fd_ >= 0) close(fd_);
}

Result<void> Stream::send(ConstBytes bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return gone();
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> Stream::receive(Bytes bytes, Duration patience) {
  const Time until = os::clock_now() + patience;
  while (!bytes.empty()) {
    if (!wait_readable(fd_, until)) {
      if (interrupted()) return interruption();
      return Error{ErrorKind::kSystem,
                   fmt::format("{} says nothing for {:.0f} s (it may be no `weft bench write`, or "
                               "wait for more --clients)",
                               name_, patience.to_us() * 1e-6)};
    }
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gone();
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

bool Stream::has_something() const {
  pollfd p{.fd = fd_, .events = POLLIN, .revents = 0};
  return poll(&p, 1, 0) > 0;
}

bool Stream::has_ended() const {
  pollfd p{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return poll(&p, 1, 0) > 0;
}

bool Stream::peek(Bytes bytes) const {
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 && static_cast<std::size_t>(got) == bytes.size();
}

namespace {

// The address without its port, such as "10.0.1.7"; "somebody" if the system cannot say.
std::string text_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host,
                                sizeof host, nullptr, 0, NI_NUMERICHOST);
  const std::string text = error == 0 ? host : "somebody";
  const std::string mapped = "::ffff:";
  return text.starts_with(mapped) ? text.substr(mapped.size()) : text;
}

}  // namespace

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

Result<Listener> Listener::open(std::uint16_t port, std::uint32_t count) {
  const int fd = listen_on(port, count);
  if (fd >= 0) return Listener(fd);
  const std::string why = std::strerror(errno);
  return Error{
      ErrorKind::kSystem,
      fmt::format("TCP port {} cannot be listened on: {}; take another with --port", port, why)};
}

Result<Listener::Caller> Listener::accept() {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  int fd = -1;
  if (wait_readable(fd_, kNever))
    fd = accept4(fd_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC);
  const std::string why = std::strerror(errno);
  if (fd < 0 && !interrupted()) return Error{ErrorKind::kSystem, fmt::format("accept: {}", why)};
  Stream stream(fd);
  if (interrupted()) return interruption();
  notice_silence(fd);
  return Caller{.stream = std::move(stream), .from = text_of(from, size)};
}

Result<Stream> dial(const Callee& callee) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(callee.port);
  if (const int error = getaddrinfo(callee.host.c_str(), port.c_str(), &hints, &found); error != 0)
    return Error{ErrorKind::kNotFound,
                 fmt::format("HOST {}: {}; expected the name or address of a host (ports: --port, "
                             "sizes: --size 64,1MiB)",
                             callee.host, gai_strerror(error))};
  int fd = -1, why = 0;
  for (const addrinfo* a = found; a != nullptr && fd < 0 && !interrupted(); a = a->ai_next) {
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // Connecting takes at most about 15 s: SYN packets at 0, 1, 3 and 7 s.
    constexpr int kTriesMore = 3;
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &kTriesMore, sizeof(kTriesMore));
    if (fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
      why = errno;
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  if (interrupted()) {
    if (fd >= 0) close(fd);
    return interruption();
  }
  if (fd < 0 && why != ECONNREFUSED) {
    return Error{ErrorKind::kSystem,
                 fmt::format("{}: TCP port {} cannot be reached: {}; is the address right, and the "
                             "host up?",
                             callee.host, callee.port, std::strerror(why))};
  }
  if (fd < 0) {
    return Error{
        ErrorKind::kSystem,
        fmt::format("{}: nobody listens on TCP port {}, or it is busy with another client; start "
                    "`weft bench write --listen` there",
                    callee.host, callee.port)};
  }
  notice_silence(fd);
  return Stream(fd, fmt::format("{}, TCP port {},", callee.host, callee.port));
}

}  // namespace weft::os
