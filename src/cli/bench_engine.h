// BenchEnd on the engine itself: a world, an endpoint and memory, driven by the calling thread.
#pragma once

#include <memory>

#include "cli/bench_end.h"

namespace weft::cli {

// Errors: as NetEnd::open.
Result<std::unique_ptr<BenchEnd>> open_engine_end(const engine::NetOptions& options,
                                                  const BenchMemory& memory);

}  // namespace weft::cli
