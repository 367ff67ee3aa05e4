// many_qps: measures memory and set-up time with many QPs and many processes. Like any program, it
// uses only mrc.h and verbs.
//
//   many_qps PROCESSES NEIGHBOURS QPS ROUNDS
//
// Each process opens the device and has QPS QPs with each of its next NEIGHBOURS processes in a
// ring. (Two processes have one group of QPs with each other.) On every QP both ends write ROUNDS
// messages with an immediate. Each message has its own pattern, and is checked byte by byte before
// the next one is requested. Prints one JSON object. Exit status 1: a call failed, a byte was
// wrong, or the run took too long.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "many_qps_process.h"

using namespace many_qps;

namespace {

// The parent: forwards values between the processes, and returns their reports.
std::vector<Report> lead(const Shape& shape, const std::vector<int>& lines) {
  std::vector<std::vector<std::uint32_t>> edges_of(shape.processes);
  for (std::uint32_t e = 0; e < shape.edges(); ++e) {
    edges_of[shape.from(e)].push_back(e);
    edges_of[shape.to(e)].push_back(e);
  }
  const auto bundle = static_cast<std::ptrdiff_t>(shape.qps);
  struct Edge {
    std::vector<Wire> from, to;
  };
  std::vector<Edge> edges(shape.edges());
  for (std::uint32_t p = 0; p < shape.processes; ++p) {
    std::sort(edges_of[p].begin(), edges_of[p].end());
    const auto all = hear<Wire>(lines[p], edges_of[p].size() * shape.qps);
    auto at = all.begin();
    for (const std::uint32_t e : edges_of[p]) {
      (shape.from(e) == p ? edges[e].from : edges[e].to).assign(at, at + bundle);
      at += bundle;
    }
  }
  for (std::uint32_t p = 0; p < shape.processes; ++p) {
    for (const std::uint32_t e : edges_of[p])
      tell(lines[p], shape.from(e) == p ? edges[e].to : edges[e].from);
  }
  for (int barrier = 0; barrier < 2; ++barrier) {
    for (const int line : lines) hear<int>(line, 1);
    for (const int line : lines) tell<int>(line, {1});
  }
  std::vector<Report> reports;
  for (const int line : lines) reports.push_back(hear<Report>(line, 1)[0]);
  return reports;
}

template <typename Of>
double mean(const std::vector<Report>& reports, Of of) {
  double sum = 0;
  for (const Report& report : reports) sum += static_cast<double>(of(report));
  return sum / static_cast<double>(reports.size());
}

void show(const Shape& shape, const std::vector<Report>& reports, double seconds) {
  const double qps = mean(reports, [](const Report& r) { return r.qps; });
  double exchange_us = 0;
  for (const Report& report : reports) exchange_us = std::max(exchange_us, report.exchange_us);
  std::printf(
      "{\"processes\": %u, \"qps\": %.0f, \"open_us\": %.0f, \"create_us\": %.2f, "
      "\"connect_us\": %.2f, \"pss_kib_open\": %.0f, \"pss_kib_connected\": %.0f, "
      "\"pss_kib_used\": %.0f, \"messages\": %.0f, \"exchange_ms\": %.1f, \"seconds\": %.2f}\n",
      shape.processes, qps, mean(reports, [](const Report& r) { return r.open_us; }),
      mean(reports, [](const Report& r) { return r.create_us; }) / qps,
      mean(reports, [](const Report& r) { return r.connect_us; }) / qps,
      mean(reports, [](const Report& r) { return r.pss_kib_open; }),
      mean(reports, [](const Report& r) { return r.pss_kib_connected; }),
      mean(reports, [](const Report& r) { return r.pss_kib_used; }),
      mean(reports, [](const Report& r) { return r.messages; }) *
          static_cast<double>(reports.size()),
      exchange_us / 1000, seconds);
}

std::uint32_t number(const char* text, std::uint32_t least, std::uint32_t most) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*end != '\0' || value < least || value > most) {
    std::fprintf(stderr, "many_qps: %s: expected %u to %u\n", text, least, most);
    std::exit(2);
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: many_qps PROCESSES NEIGHBOURS QPS ROUNDS\n");
    return 2;
  }
  Shape shape;
  shape.processes = number(words[1], 2, 128);
  shape.neighbours = number(words[2], 1, std::max((shape.processes - 1) / 2, 1u));
  shape.qps = number(words[3], 1, 1024 / shape.hops());
  shape.rounds = number(words[4], 1, 1u << 16);
  const auto start = Clock::now();
  std::vector<int> lines;
  std::vector<pid_t> children;
  const timeval patience{.tv_sec = 90, .tv_usec = 0};
  for (std::uint32_t p = 0; p < shape.processes; ++p) {
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    for (const int end : pair)
      setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child must not outlive its parent
      close(pair[0]);
      for (const int line : lines) close(line);
      tell<Report>(pair[1], {Process(shape, p, pair[1]).run()});
      _exit(0);
    }
    close(pair[1]);
    lines.push_back(pair[0]);
    children.push_back(child);
  }
  const std::vector<Report> reports = lead(shape, lines);
  bool all = true;
  for (const pid_t child : children) {
    int status = -1;
    all = waitpid(child, &status, 0) == child && status == 0 && all;
  }
  if (!all) return 1;
  show(shape, reports, us_since(start) / 1e6);
  return 0;
}
