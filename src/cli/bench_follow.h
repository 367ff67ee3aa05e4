// The following end of `weft bench write`: it acknowledges packets until the leading ends say that
// the run is over.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/bench_end.h"
#include "cli/bench_terms.h"
#include "cli/bench_write.h"
#include "os/stream.h"

namespace weft::cli {

// Waits for the next message of the other end. Meanwhile drives the network for the other end's
// packets.
Result<Round> receive_round_while_answering(os::Stream& stream, BenchEnd& end);
// The most writes of this size that the benchmark keeps in flight on a QP.
std::uint32_t depth_for(std::uint64_t size);

// The following end of one leading end.
Result<void> follow(const Bench& bench, Client& client);
// The following end of several leading ends at once. If one of them disconnects early, the others
// continue; when they are done, serve() returns an error.
Result<void> serve(const Bench& bench, std::vector<Client> clients);

}  // namespace weft::cli
