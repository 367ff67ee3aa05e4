// BenchEnd on mrc.h, through mrclib, as any program written for MRC. The flags reach the device
// through the environment, as for other programs. The functions are those of lib_mrc.so, linked in,
// so that the numbers that mrc.h does not have (counters, the payload that fits) can be read from
// the device behind them.
//
// While it waits it polls the CQ and never sleeps. While it only answers it sleeps, and the thread
// of the device drives the network.
#pragma once

#include <memory>

#include "cli/bench_end.h"
#include "cli/bench_terms.h"

namespace weft::cli {

// Refuses what cannot be measured through mrc.h, with one line. Errors: kInvalid.
Result<void> check_mrc(const Bench& bench);
// Call it at most once in a process. Errors: kSystem.
Result<std::unique_ptr<BenchEnd>> open_mrc_end(const Bench& bench, std::uint32_t qps_max,
                                               const BenchMemory& memory);

}  // namespace weft::cli
