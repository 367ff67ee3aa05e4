// Child: runs a function in a forked process, in its own process group, with a time limit. The
// function's result comes back as text. The last printed line is kept, in case the process dies.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"

namespace weft::conformance {

struct ChildResult {
  bool finished = false;  // the function returned; false: the process died or timed out
  bool timed_out = false;
  int signal = 0, exit_status = 0;
  std::string text;       // the result of the function
  std::string last_line;  // the last line that the process printed
};

// Runs `body` for at most `limit`. When this returns, the child and all processes that it started
// are dead. Errors: kSystem.
Result<ChildResult> run_in_child(std::chrono::milliseconds limit,
                                 const std::function<std::string()>& body);

}  // namespace weft::conformance
