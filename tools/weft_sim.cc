// The trace hash of one simulated run, and nothing else: a program that compiles in a minute, for the
// builds that only compare hashes (tools/same-hash).
//
//   weft-sim FILE SEED     prints the hash, 16 hex digits; exits 2 if there can be no such run
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "run/run_scenario.h"
#include "scenario/parse.h"

namespace {

int fail(const std::string& why) {
  std::fprintf(stderr, "weft-sim: %s\n", why.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("expected FILE SEED");
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return fail(std::string(argv[1]) + ": cannot be read");
  char* end = nullptr;
  weft::run::RunOptions options;
  options.seed = std::strtoull(argv[2], &end, 10);
  if (end == argv[2] || *end != '\0') return fail(std::string(argv[2]) + ": expected a seed");

  const auto scenario = weft::scenario::parse(text, argv[1]);
  if (!scenario) return fail(scenario.error().message);
  const auto outcome = weft::run::run_scenario(*scenario, options);
  if (!outcome) return fail(outcome.error().message);
  std::printf("%016llx\n", static_cast<unsigned long long>(outcome->results.facts.trace_hash));
  return 0;
}
