// The leading end of `weft bench write`: decides what is measured, measures it, and prints the
// result.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "cli/bench_terms.h"
#include "os/stream.h"

namespace weft::cli {

// Runs the benchmark with the end at the other side of `stream`. Null: this end writes to itself
// (--self).
Result<void> lead(const Bench& bench, os::Stream* stream, std::span<const std::uint64_t> sizes);

}  // namespace weft::cli
