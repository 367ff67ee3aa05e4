// One process of many_qps. It opens a device, connects QPs to its neighbours, and sends messages
// over all of them, which the receivers check byte by byte. It uses only mrc.h and verbs. If a call
// fails, the process ends with a one-line message.
#pragma once

#include <infiniband/verbs.h>
#include <mrc/mrc.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace many_qps {

using Clock = std::chrono::steady_clock;

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "many_qps: %s: %s\n", what, std::strerror(errno));
  _exit(1);
}
inline void check(bool held, const char* what) {
  if (!held) fail(what);
}
inline double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Which pairs of processes (edges of a graph) have QPs with each other.
struct Shape {
  std::uint32_t processes = 2, neighbours = 1, qps = 100, rounds = 2;
  std::uint32_t hops() const { return processes == 2 ? 1 : neighbours; }
  std::uint32_t edges() const { return processes == 2 ? 1 : processes * neighbours; }
  // The two processes that edge `e` joins.
  std::uint32_t from(std::uint32_t e) const { return processes == 2 ? 0 : e / neighbours; }
  std::uint32_t to(std::uint32_t e) const {
    return processes == 2 ? 1 : (e / neighbours + 1 + e % neighbours) % processes;
  }
};

// What each end of a QP must know of the other.
struct Wire {
  ibv_gid gid{};
  std::uint32_t qpn = 0, psn = 0, rkey = 0;
  std::uint64_t at = 0;
};

// The measurements that a process reports at its end.
struct Report {
  double open_us = 0, create_us = 0, connect_us = 0, exchange_us = 0;
  std::uint64_t qps = 0, messages = 0;
  std::uint64_t pss_kib_open = 0, pss_kib_connected = 0, pss_kib_used = 0;
};

// --- sends values to another process or receives them, over a socket
template <typename T>
void tell(int fd, const std::vector<T>& values) {
  const char* at = reinterpret_cast<const char*>(values.data());
  for (std::size_t left = values.size() * sizeof(T); left > 0;) {
    const ssize_t count = write(fd, at, left);
    check(count > 0, "the other process has gone");
    at += count;
    left -= static_cast<std::size_t>(count);
  }
}
template <typename T>
std::vector<T> hear(int fd, std::size_t size) {
  std::vector<T> values(size);
  char* at = reinterpret_cast<char*>(values.data());
  for (std::size_t left = size * sizeof(T); left > 0;) {
    const ssize_t count = read(fd, at, left);
    check(count > 0, "the other process says nothing");
    at += count;
    left -= static_cast<std::size_t>(count);
  }
  return values;
}

class Process {
 public:
  // `line`: the socket to the parent, which forwards values between the processes.
  Process(const Shape& shape, std::uint32_t self, int line)
      : shape_(shape), self_(self), line_(line) {}
  Report run();

 private:
  void open();
  void create();
  void connect(const std::vector<Wire>& peers);
  void exchange(const std::vector<Wire>& peers);
  void post_receive(std::uint32_t q);
  void send(std::uint32_t q, std::uint32_t round, const Wire& peer);
  void look_at(std::uint32_t q, std::uint32_t round);
  void wait(Clock::time_point until);
  // The seed for the bytes of a message: of this end's message, or with `peer` of the peer's.
  std::uint64_t seed(std::uint32_t q, std::uint32_t round, bool peer) const {
    return (std::uint64_t{edge_[q]} << 40 | std::uint64_t{q_in_edge_[q]} << 20 | round << 1) +
           ((shape_.from(edge_[q]) == self_) != peer ? 1 : 0);
  }

  Shape shape_;
  std::uint32_t self_;
  int line_;
  Report report_;
  ibv_context* verbs_ = nullptr;
  mrc_context* context_ = nullptr;
  mrc_comp_channel* channel_ = nullptr;
  mrc_cq* cq_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<std::uint8_t> memory_;
  std::vector<std::uint32_t> edge_, q_in_edge_;  // index: number of the QP in this process
  std::vector<mrc_qp*> qps_;
  int channel_fd_ = -1;
};

}  // namespace many_qps
