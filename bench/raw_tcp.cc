// raw_tcp: measures the kernel's TCP or MPTCP between two processes of this machine. Messages go
// from one large buffer into another, and the arrival times are recorded.
//
//   raw_tcp ADDRESS SECONDS [--mptcp] [--cubic|--bbr] [--from-netns NAME] [--to-netns NAME]
//           [--buffer MIB] [--message BYTES] [--port PORT]
//
// Prints one JSON object: Gb/s received, and bytes in each millisecond with all gaps above 0.5 ms.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/timeline.h"
#include "os/clock.h"
#include "raw.h"

namespace {

using raw::Address, raw::enter, raw::fail, raw::large_buffer, raw::parse;
using weft::Duration;
using weft::Time;

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

struct Options {
  std::string address, from_netns, to_netns, congestion = "cubic";
  double seconds = 1;
  int protocol = IPPROTO_TCP;
  std::size_t buffer = 64u << 20, message = 1u << 20;
  std::uint16_t port = 14'701;
};

int open_socket(const Options& options, const Address& address) {
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, options.protocol);
  if (fd < 0) fail("socket");
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.congestion.data(),
             static_cast<socklen_t>(options.congestion.size()));
  return fd;
}

// Receives until the stream ends, or until no byte has arrived for a while after the end of the
// run.
void receive(const Options& options, int listener) {
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) fail("accept");
  char* const to = large_buffer(options.buffer);
  const Time start = weft::os::clock_now();
  const Time end = start + Duration::us(static_cast<std::int64_t>(options.seconds * 1e6));
  weft::base::Timeline timeline(start, end - start);
  std::size_t place = 0;
  std::uint64_t bytes = 0;
  while (weft::os::clock_now() < end) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&p, 1, 100) <= 0) continue;
    const ssize_t got = recv(fd, to + place, std::min(options.message, options.buffer - place), 0);
    if (got <= 0) break;
    bytes += static_cast<std::uint64_t>(got);
    place = (place + static_cast<std::size_t>(got)) % options.buffer;
    timeline.add(weft::os::clock_now(), static_cast<std::uint64_t>(got));
  }
  const double elapsed = (weft::os::clock_now() - start).to_us() * 1e-6;
  std::printf("{\"gbps\": %.4f, \"timeline\": {\"start_s\": %.6f, \"bytes\": [",
              static_cast<double>(bytes) * 8e-9 / elapsed, start.since_start().to_us() * 1e-6);
  const char* comma = "";
  for (const std::uint64_t bin : timeline.bins()) {
    std::printf("%s%llu", comma, static_cast<unsigned long long>(bin));
    comma = ",";
  }
  std::printf("], \"gaps\": [");
  comma = "";
  for (const auto& gap : timeline.gaps()) {
    std::printf("%s[%.6f, %.3f]", comma, gap.from.since_start().to_us() * 1e-6,
                gap.length.to_us() * 1e-3);
    comma = ",";
  }
  std::printf("]}}\n");
  std::fflush(stdout);
  _exit(0);
}

void send_all(const Options& options, const Address& to) {
  int fd = -1;
  // Retry: the listener may not have started yet, or its interface may still be down.
  for (int i = 0; i < 100; ++i) {
    fd = open_socket(options, to);
    if (connect(fd, to.get(), to.size) == 0) break;
    close(fd);
    fd = -1;
    usleep(20'000);
  }
  if (fd < 0) fail("connect");
  const char* const from = large_buffer(options.buffer);
  const Time end = weft::os::clock_now() +
                   Duration::us(static_cast<std::int64_t>((options.seconds + 0.2) * 1e6));
  std::size_t place = 0;
  while (weft::os::clock_now() < end) {
    const std::size_t size = std::min(options.message, options.buffer - place);
    const ssize_t sent = send(fd, from + place, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) break;
    if (sent < 0) {
      pollfd p{.fd = fd, .events = POLLOUT, .revents = 0};
      poll(&p, 1, 100);
      continue;
    }
    place = (place + static_cast<std::size_t>(sent)) % options.buffer;
  }
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc < 3) {
    std::fprintf(stderr, "usage: raw_tcp ADDRESS SECONDS [options, see bench/raw_tcp.cc]\n");
    return 2;
  }
  options.address = argv[1];
  options.seconds = std::atof(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--mptcp") {
      options.protocol = IPPROTO_MPTCP;
    } else if (word == "--cubic" || word == "--bbr") {
      options.congestion = word.substr(2);
    } else {
      ++i;
      if (word == "--from-netns") options.from_netns = value;
      if (word == "--to-netns") options.to_netns = value;
      if (word == "--buffer") options.buffer = std::strtoull(value, nullptr, 10) << 20;
      if (word == "--message") options.message = std::strtoull(value, nullptr, 10);
      if (word == "--port") options.port = static_cast<std::uint16_t>(std::atoi(value));
    }
  }
  const Address address = parse(options.address, options.port);
  int ready[2];
  if (pipe(ready) != 0) fail("pipe");
  const pid_t child = fork();
  if (child == 0) {
    enter(options.to_netns);
    const int listener = open_socket(options, address);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // Listen on every address, because MPTCP's other subflows arrive at the addresses of other
    // links.
    Address any = address;
    any.set_any();
    if (bind(listener, any.get(), any.size) != 0 || listen(listener, 1) != 0) fail("bind");
    if (write(ready[1], "", 1) != 1) fail("pipe");
    receive(options, listener);
  }
  close(ready[1]);
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) {
    waitpid(child, nullptr, 0);
    return 1;
  }
  enter(options.from_netns);
  send_all(options, address);
  // Do not wait for ever: the sender may have died.
  for (int i = 0; i < 100; ++i) {
    if (waitpid(child, nullptr, WNOHANG) == child) return 0;
    usleep(20'000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return 1;
}
