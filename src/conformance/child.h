// Child: a function in a forked process, in a process group of its own, with a time limit. What it
// returns comes back as text; what it printed is kept, in case it dies.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"

namespace weft::conformance {

struct ChildResult {
  bool finished = false;  // it returned; else it died or ran out of time
  bool timed_out = false;
  int signal = 0, exit_status = 0;
  std::string text;       // what it returned
  std::string last_line;  // of what it printed
};

// Errors: kSystem. The child and everything that it started are gone afterwards.
Result<ChildResult> run_in_child(std::chrono::milliseconds limit,
                                 const std::function<std::string()>& body);

}  // namespace weft::conformance
