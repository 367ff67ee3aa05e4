// Runs tests, each in a process of its own with a time limit: a library that crashes or hangs fails
// one test, and not the suite. Nothing of the library is loaded in the caller's process.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "conformance/session.h"
#include "conformance/test.h"

namespace weft::conformance {

enum class Status : std::uint8_t {
  kPass,
  kFail,   // the device did something else than the clause says, or crashed, or hung
  kSkip,   // does not apply here; `got` says why
  kError,  // the suite could not do its part
};
std::string_view to_string(Status status);

struct Outcome {
  const Test* test = nullptr;
  Status status = Status::kError;
  std::string expected{}, got{};  // one line each
  std::chrono::milliseconds took{0};
};

// One test. Leaves nothing behind: what it started is killed with its process group.
Outcome run_test(const Test& test, const Options& options);

// What is known of the device before the first test. The ICRC cover goes into the options of the
// rest.
struct Survey {
  std::string device, gid;
  std::uint32_t api_version = 0, ctl_version = 0;
  std::uint32_t ports = 0;
  IcrcCover icrc = IcrcCover::kFull;
  bool icrc_known = false;  // a packet was seen
};
// Errors: kInvalid when the library cannot be loaded or has no MRC device: then no test would tell
// anything. Runs in a process of its own too.
Result<Survey> survey(const Options& options);

struct Count {
  std::uint32_t pass = 0, fail_must = 0, fail_should = 0, skip = 0, error = 0;
  // Only what the device is bound to, and what nobody could find out about that.
  bool is_good() const { return fail_must == 0 && error == 0; }
};
Count count(const std::vector<Outcome>& outcomes);

}  // namespace weft::conformance
