// The end of `weft bench write` that follows: it answers until the others say that it is over.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/bench_end.h"
#include "cli/bench_terms.h"
#include "cli/bench_write.h"
#include "os/stream.h"

namespace weft::cli {

// Waits for the other end's word and keeps answering its packets meanwhile.
Result<Round> hear_while_answering(os::Stream& stream, BenchEnd& end);
// Writes under way on a QP, of messages of that size.
std::uint32_t depth_for(std::uint64_t size);

// One that leads.
Result<void> follow(const Bench& bench, Client& client);
// Several that lead at once, all to this one end. One that goes without a word does not end what
// the others do, but is an error when they are over.
Result<void> serve(const Bench& bench, std::vector<Client> clients);

}  // namespace weft::cli
