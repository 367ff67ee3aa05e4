// stands_still: measures how long this machine stops a process that only reads the clock. Pauses of
// a transfer can only be judged in comparison with this. Prints the longest gap of each core, in
// ms. With --beside it is to run during a transfer: it sleeps for half a millisecond at a time. For
// each gap of more than a millisecond it prints the time (monotonic clock, in s) and the length (in
// ms).
//
//   stands_still SECONDS [--beside]
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Ms = std::chrono::duration<double, std::milli>;

struct Gap {
  double at_s, length_ms;
};

void stay_on(unsigned core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof(one),
                    &one);  // pins this thread to the core, if that is permitted
}

// With `beside`, returns every gap of more than a millisecond. Otherwise each gap that is longer
// than all earlier ones.
std::vector<Gap> watch(unsigned core, double seconds, bool beside) {
  stay_on(core);
  const auto start = Clock::now();
  std::vector<Gap> gaps;
  double least_ms = beside ? 1 : 0;
  for (auto before = start; Ms(before - start).count() < seconds * 1e3;) {
    if (beside) std::this_thread::sleep_for(std::chrono::microseconds(500));
    const auto now = Clock::now();
    const double length_ms = Ms(now - before).count();
    if (length_ms > least_ms) {
      gaps.push_back({std::chrono::duration<double>(before.time_since_epoch()).count(), length_ms});
      if (!beside) least_ms = length_ms;
    }
    before = now;
  }
  return gaps;
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count >= 2 ? std::strtod(words[1], nullptr) : 0;
  const bool beside = count == 3 && std::strcmp(words[2], "--beside") == 0;
  if (seconds <= 0 || count > (beside ? 3 : 2)) {
    std::fprintf(stderr, "usage: stands_still SECONDS [--beside]\n");
    return 2;
  }
  std::vector<std::vector<Gap>> cores(std::max(std::thread::hardware_concurrency(), 1u));
  std::vector<std::thread> threads;
  for (unsigned core = 0; core < cores.size(); ++core)
    threads.emplace_back(
        [&gaps = cores[core], core, seconds, beside] { gaps = watch(core, seconds, beside); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& gaps : cores) {
    if (!beside) std::printf("%.3f\n", gaps.empty() ? 0 : gaps.back().length_ms);
    for (const Gap& gap : beside ? gaps : std::vector<Gap>())
      std::printf("%.6f %.3f\n", gap.at_s, gap.length_ms);
  }
  return 0;
}
