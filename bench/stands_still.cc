// stands_still: how long this machine lets a process that does nothing but look at the clock stand still, with nothing of
// ours running. Pauses of a transfer are only worth reading beside it. Prints the longest gap in ms of each core.
//
//   stands_still SECONDS
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

double longest_gap_ms(unsigned core, double seconds) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof(one),
                    &one);  // of this thread; where it may not, it stays where it is
  using Clock = std::chrono::steady_clock;
  using Ms = std::chrono::duration<double, std::milli>;
  const auto start = Clock::now();
  auto before = start;
  double longest = 0;
  while (Ms(before - start).count() < seconds * 1e3) {
    const auto now = Clock::now();
    longest = std::max(longest, Ms(now - before).count());
    before = now;
  }
  return longest;
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count == 2 ? std::strtod(words[1], nullptr) : 0;
  if (seconds <= 0) {
    std::fprintf(stderr, "usage: stands_still SECONDS\n");
    return 2;
  }
  std::vector<double> gaps(std::max(std::thread::hardware_concurrency(), 1u));
  std::vector<std::thread> threads;
  for (unsigned core = 0; core < gaps.size(); ++core)
    threads.emplace_back([&gaps, core, seconds] { gaps[core] = longest_gap_ms(core, seconds); });
  for (std::thread& thread : threads) thread.join();
  for (const double gap : gaps) std::printf("%.3f\n", gap);
  return 0;
}
