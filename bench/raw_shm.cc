// raw_shm: measures shared memory, and UDP, between two processes of this machine, without any
// protocol.
//
//   raw_shm ring PIECE SECONDS    one direction through a ring of 2 MiB in pieces of PIECE bytes, each
//                                 copied in from one buffer of 64 MiB and out to another: GB/s
//   raw_shm flag ROUNDS           ping-pong of 8 bytes through two cache lines: median round trip, us
//   raw_shm udp ROUNDS            ping-pong of 8 bytes by UDP on the loopback, both ends busy: the same
//   raw_shm epoll ROUNDS          the same, both ends asleep in epoll, on cores 0 and 1
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kRing = 2u << 20, kBuffer = 64u << 20;

struct Shared {
  alignas(128) std::atomic<std::uint64_t> written{0};
  alignas(128) std::atomic<std::uint64_t> read{0};
  alignas(128) std::atomic<std::uint64_t> ping{0};
  alignas(128) std::atomic<std::uint64_t> pong{0};
  alignas(128) std::atomic<bool> stop{false};
  double gigabytes_per_s = 0;
  alignas(4096) std::array<std::byte, kRing> ring;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "raw_shm: %s: %s\n", what, std::strerror(errno));
  _exit(1);
}

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void* map(std::size_t bytes, int sharing) {
  void* const at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) fail("mmap");
  return at;
}

std::byte* buffer(int fill) {
  auto* const at = static_cast<std::byte*>(map(kBuffer, MAP_PRIVATE));
  std::memset(at, fill, kBuffer);
  return at;
}

pid_t fork_or_fail() {
  const pid_t child = fork();
  if (child < 0) fail("fork");
  return child;
}

void finish(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) fail("the other process");
}

// --- bandwidth ---------------------------------------------------------------------------------

void read_all(Shared& shared, std::size_t piece) {
  std::byte* const to = buffer(0);
  const std::size_t ring = kRing / piece * piece;
  std::uint64_t read = 0, written = 0;
  std::size_t at = 0;
  double began = 0;
  for (;;) {
    if (read == written) {
      written = shared.written.load(std::memory_order_acquire);
      if (read == written) {
        if (shared.stop.load(std::memory_order_relaxed)) break;
        continue;
      }
      if (read == 0) began = now();
    }
    std::memcpy(to + at, shared.ring.data() + read % ring, piece);
    at = at + 2 * piece > kBuffer ? 0 : at + piece;
    read += piece;
    shared.read.store(read, std::memory_order_release);
  }
  shared.gigabytes_per_s = static_cast<double>(read) * 1e-9 / (now() - began);
}

double ring_bandwidth(Shared& shared, std::size_t piece, double seconds) {
  const pid_t child = fork_or_fail();
  if (child == 0) {
    read_all(shared, piece);
    _exit(0);
  }
  const std::byte* const from = buffer(1);
  const std::size_t ring = kRing / piece * piece;
  std::uint64_t written = 0, read = 0;
  std::size_t at = 0;
  for (const double until = now() + seconds; now() < until;) {
    for (int i = 0; i < 16; ++i) {
      while (written + piece - read > ring) read = shared.read.load(std::memory_order_acquire);
      std::memcpy(shared.ring.data() + written % ring, from + at, piece);
      at = at + 2 * piece > kBuffer ? 0 : at + piece;
      written += piece;
      shared.written.store(written, std::memory_order_release);
    }
  }
  shared.stop.store(true);
  finish(child);
  return shared.gigabytes_per_s;
}

// --- round trips -------------------------------------------------------------------------------

// Measures `rounds` round trips and returns their median in us.
template <typename Round>
double median_us(std::uint64_t rounds, Round round) {
  std::vector<double> us;
  us.reserve(rounds);
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    const double start = now();
    round(i);
    us.push_back((now() - start) * 1e6);
  }
  std::nth_element(us.begin(), us.begin() + static_cast<std::ptrdiff_t>(rounds / 2), us.end());
  return us[rounds / 2];
}

void wait_for(const std::atomic<std::uint64_t>& flag, std::uint64_t value) {
  while (flag.load(std::memory_order_acquire) != value) continue;
}

double flag_round_trip(Shared& shared, std::uint64_t rounds) {
  const pid_t child = fork_or_fail();
  if (child == 0) {
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      wait_for(shared.ping, i);
      shared.pong.store(i, std::memory_order_release);
    }
    _exit(0);
  }
  const double us = median_us(rounds, [&shared](std::uint64_t i) {
    shared.ping.store(i, std::memory_order_release);
    wait_for(shared.pong, i);
  });
  finish(child);
  return us;
}

// One end of a UDP flow over the loopback.
class Udp {
 public:
  Udp(bool sleeps) : sleeps_(sleeps), fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd_ < 0 || bind(fd_, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0)
      fail("bind");
    epoll_ = epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) != 0) fail("epoll");
  }
  void connect_to(const Udp& other) {
    sockaddr_in to{};
    socklen_t size = sizeof(to);
    if (getsockname(other.fd_, reinterpret_cast<sockaddr*>(&to), &size) != 0 ||
        connect(fd_, reinterpret_cast<const sockaddr*>(&to), size) != 0) {
      fail("connect");
    }
  }
  void send_word(std::uint64_t word) {
    if (send(fd_, &word, sizeof(word), 0) != sizeof(word)) fail("send");
  }
  void receive_word() {
    std::uint64_t word = 0;
    while (recv(fd_, &word, sizeof(word), 0) != sizeof(word)) {
      if (errno != EAGAIN) fail("recv");
      epoll_event event{};
      if (sleeps_) epoll_wait(epoll_, &event, 1, -1);
    }
  }

 private:
  bool sleeps_;
  int fd_, epoll_ = -1;
};

// Pins a process to a core. Round trips between sleeping processes differ by a factor of four if
// the processes are on one core or on two, and the scheduler would choose differently in each run.
void keep_to_core(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) fail("sched_setaffinity");
}

double udp_round_trip(std::uint64_t rounds, bool sleeps) {
  Udp ours(sleeps), theirs(sleeps);
  ours.connect_to(theirs);
  theirs.connect_to(ours);
  const pid_t child = fork_or_fail();
  const bool apart = sleeps && std::thread::hardware_concurrency() > 1;
  if (apart) keep_to_core(child == 0 ? 0 : 1);
  if (child == 0) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      theirs.receive_word();
      theirs.send_word(i);
    }
    _exit(0);
  }
  const double us = median_us(rounds, [&ours](std::uint64_t i) {
    ours.send_word(i);
    ours.receive_word();
  });
  finish(child);
  return us;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  auto* const shared = new (map(sizeof(Shared), MAP_SHARED)) Shared;
  const std::uint64_t number = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
  if (number == 0 || (what == "ring" && (count != 4 || number > kRing / 2))) {
    std::fprintf(stderr,
                 "usage: raw_shm ring PIECE SECONDS | flag ROUNDS | udp ROUNDS | epoll ROUNDS\n");
    return 2;
  }
  double result = 0;
  if (what == "ring") {
    result = ring_bandwidth(*shared, number, std::strtod(words[3], nullptr));
  } else if (what == "flag") {
    result = flag_round_trip(*shared, number);
  } else {
    result = udp_round_trip(number, what == "epoll");
  }
  std::printf("%.4f\n", result);
  return 0;
}
