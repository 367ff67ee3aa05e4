// BenchEnd on mrc.h: a device, a context, a CQ and QPs as any program written for MRC has them, and
// nothing of ours besides: what flags say reaches the device as it reaches other programs, by
// environment. The functions are those of lib_mrc.so, linked in.
//
// Polls the CQ and never sleeps while it waits; it sleeps while it only answers, and the device's own
// thread does so then.
#pragma once

#include <memory>

#include "cli/bench_end.h"
#include "cli/bench_terms.h"

namespace weft::cli {

// What cannot be measured through mrc.h, as one line. Errors: kInvalid.
Result<void> check_mrc(const Bench& bench);
// Once a process. Errors: kSystem.
Result<std::unique_ptr<BenchEnd>> open_mrc_end(const Bench& bench, std::uint32_t qps_max,
                                               const BenchMemory& memory);

}  // namespace weft::cli
