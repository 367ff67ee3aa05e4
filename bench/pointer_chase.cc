// pointer_chase: measures the present time of one dependent load on this machine. Memory latency
// limits a simulator of many hosts, so its speeds can only be compared together with this figure.
// Prints one JSON object: nanoseconds per load, for working sets of several sizes.
//
//   pointer_chase [MIB ...]      default: 1 16 128 1024
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace {

// One element per cache line, so that each load touches another line.
struct alignas(64) Line {
  std::uint32_t next = 0;
};

std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

// All lines form one cycle in random order (Sattolo's shuffle), so that no prefetcher can predict the next.
std::vector<Line> one_cycle(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::uint64_t state = 1;
  for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[next_random(state) % i]);
  std::vector<Line> lines(count);
  for (std::size_t i = 0; i < count; ++i) lines[i].next = order[i];
  return lines;
}

double nanoseconds_a_load(const std::vector<Line>& lines, std::size_t loads) {
  volatile std::uint32_t start = 0;
  std::uint32_t at = start;
  const auto before = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < loads; ++i) at = lines[at].next;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
  start = at;  // a use of the result, so that the compiler keeps the loop
  return took.count() / static_cast<double>(loads);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes_mib;
  for (int i = 1; i < argc; ++i) {
    const long size = std::strtol(argv[i], nullptr, 10);
    if (size < 1 || size > 65536) {
      std::fprintf(stderr, "pointer_chase: %s: expected a size in MiB, 1 to 65536\n", argv[i]);
      return 2;
    }
    sizes_mib.push_back(static_cast<std::size_t>(size));
  }
  if (sizes_mib.empty()) sizes_mib = {1, 16, 128, 1024};

  std::printf("{");
  const char* comma = "";
  for (std::size_t size_mib : sizes_mib) {
    const auto lines = one_cycle((size_mib << 20) / sizeof(Line));
    nanoseconds_a_load(lines, 200'000);  // a first pass that fills caches and touches pages
    std::printf("%s\"%zu\": %.1f", comma, size_mib, nanoseconds_a_load(lines, 2'000'000));
    comma = ", ";
  }
  std::printf("}\n");
}
