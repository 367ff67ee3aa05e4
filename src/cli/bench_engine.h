// A BenchEnd on the engine itself: a world, an endpoint and memory, driven by the calling thread.
#pragma once

#include <memory>

#include "cli/bench_end.h"
#include "engine/net_rdma.h"

namespace weft::cli {

// Errors: as NetRdma::open.
Result<std::unique_ptr<BenchEnd>> open_engine_end(const engine::NetRdmaOptions& options,
                                                  const BenchMemory& memory);

}  // namespace weft::cli
