// A BenchEnd on mrc.h, through mrclib, like any program written for MRC. The command line's
// settings reach the device through environment variables, as for other programs. The functions are
// those of our lib_mrc.so, linked into this program. So values that mrc.h does not have (counters,
// the payload that fits) can be read from the device.
//
// During a measurement this end polls the CQ and never sleeps. In answer() it sleeps, and the
// device's own thread drives the network.
#pragma once

#include <memory>

#include "cli/bench_end.h"
#include "cli/bench_terms.h"

namespace weft::cli {

// Refuses what cannot be measured through mrc.h. Errors: kInvalid with a one-line message.
Result<void> check_mrc(const Bench& bench);
// Call it at most once in a process. Errors: kSystem.
Result<std::unique_ptr<BenchEnd>> open_mrc_end(const Bench& bench, std::uint32_t qps_max,
                                               const BenchMemory& memory);

}  // namespace weft::cli
