// WEFT_ASSERT checks an invariant of our own code, in every build. When the invariant is broken, it
// prints the condition and its place, and aborts. Bad bytes from a peer are never asserted: they
// are a counted drop. An operation that the system refuses returns a Result.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace weft::base {

[[noreturn, gnu::cold, gnu::noinline]] inline void assert_failed(const char* condition,
                                                                 const char* file, int line) {
  std::fprintf(stderr, "%s:%d: weft bug: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace weft::base

#define WEFT_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::weft::base::assert_failed(#condition, __FILE__, __LINE__))
