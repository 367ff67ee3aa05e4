// The following end of `weft bench write`: it answers until the leading ends say that the run is
// over.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/bench_end.h"
#include "cli/bench_terms.h"
#include "cli/bench_write.h"
#include "os/stream.h"

namespace weft::cli {

// Waits for the next message of the other end, and answers its packets meanwhile.
Result<Round> receive_round_while_answering(os::Stream& stream, BenchEnd& end);
// How many writes of messages of that size are in flight on a QP.
std::uint32_t depth_for(std::uint64_t size);

// Follows one leading end.
Result<void> follow(const Bench& bench, Client& client);
// Follows several leading ends at once. If one of them disconnects early, the others continue;
// serve() returns an error after they are done.
Result<void> serve(const Bench& bench, std::vector<Client> clients);

}  // namespace weft::cli
