// The end of `weft bench write` that leads: says what is measured, measures, shows.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "cli/bench_terms.h"
#include "os/stream.h"

namespace weft::cli {

// `stream`: to the other end; null: this end writes to itself (--self).
Result<void> lead(const Bench& bench, os::Stream* stream, std::span<const std::uint64_t> sizes);

}  // namespace weft::cli
