// The leading end of `weft bench write`: decides what is measured, measures it, and shows the
// result.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "cli/bench_terms.h"
#include "os/stream.h"

namespace weft::cli {

// `stream` leads to the other end; null: this end writes to itself (--self).
Result<void> lead(const Bench& bench, os::Stream* stream, std::span<const std::uint64_t> sizes);

}  // namespace weft::cli
