// Runs each test in its own process, with a time limit. So a library that crashes or hangs fails
// one test and does not stop the suite. The caller's process never loads the library.
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
  kFail,   // the device violated the clause, crashed, or hung
  kSkip,   // the test does not apply; `got` has the reason
  kError,  // the suite could not run the test
};
std::string_view to_string(Status status);

struct Outcome {
  const Test* test = nullptr;
  Status status = Status::kError;
  std::string expected{}, got{};  // one line each
  std::chrono::milliseconds took{0};
};

// Runs one test. Afterwards kills its process group, so that no process remains.
Outcome run_test(const Test& test, const Options& options);

// Properties of the device, found before the first test. The tests then use the ICRC cover found
// here.
struct Survey {
  std::string device, gid;
  std::uint32_t api_version = 0, ctl_version = 0;
  std::uint32_t ports = 0;
  IcrcCover icrc = IcrcCover::kFull;
  bool icrc_known = false;  // a packet arrived, so `icrc` is known
};
// Finds the properties of the device, also in a process of its own. Errors: kInvalid if the library
// cannot be loaded or has no MRC device, because then tests would mean nothing.
Result<Survey> survey(const Options& options);

struct Count {
  std::uint32_t pass = 0, fail_must = 0, fail_should = 0, skip = 0, error = 0;
  // A SHOULD that failed does not count.
  bool is_good() const { return fail_must == 0 && error == 0; }
};
Count count(const std::vector<Outcome>& outcomes);

}  // namespace weft::conformance
