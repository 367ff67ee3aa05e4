// WEFT_ASSERT: our own broken invariants, on in every build. It prints where and what, and aborts.
// Never for what a peer sent (count a drop) nor for what the world refused (return a Result).
#pragma once

#include <cstdio>
#include <cstdlib>

namespace weft::base {

[[noreturn, gnu::cold, gnu::noinline]] inline void assert_failed(const char* what, const char* file,
                                                                 int line) {
  std::fprintf(stderr, "%s:%d: weft bug: assertion failed: %s\n", file, line, what);
  std::abort();
}

}  // namespace weft::base

#define WEFT_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::weft::base::assert_failed(#condition, __FILE__, __LINE__))
