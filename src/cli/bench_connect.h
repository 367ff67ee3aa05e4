// How an end of `weft bench write` gets its memory, its BenchEnd and its connected QPs.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_end.h"
#include "cli/bench_terms.h"
#include "cli/bench_write.h"
#include "os/stream.h"

namespace weft::cli {

// The memory of one end: the bytes that it sends, and the region that the peer writes to.
class Buffers {
 public:
  // Reserves at least `size` bytes each for sending and receiving. touch() allocates the pages.
  // Errors: kSystem.
  static Result<Buffers> make(std::uint64_t size);
  // Makes the kernel allocate the pages. Call it when the ends are connected: a client that
  // disconnects before that costs no memory.
  void touch() const;
  const BenchMemory& memory() const { return memory_; }

 private:
  BenchMemory memory_;  // stays mapped until the process ends
};

// Opens an end on the interface that `bench` selects: the engine, or mrc.h.
Result<std::unique_ptr<BenchEnd>> open_end(const Bench& bench, const Terms& terms,
                                           const Buffers& buffers);

// In each exchange on the stream the leading end sends first.
enum class Role : std::uint8_t { kLeads, kFollows };
// Connects a group of QPs of `end` with the end at the other side of `stream`.
Result<BenchLink> connect_group(const Bench& bench, const Terms& terms, Role role,
                                os::Stream& stream, const Buffers& buffers, BenchEnd& end);

struct Connected {
  std::unique_ptr<BenchEnd> end;
  BenchLink link;
};
Result<Connected> connect(const Bench& bench, const Terms& terms, Role role, os::Stream& stream,
                          const Buffers& buffers);
// Text for the user, such as "over UDP, 2 planes, 4096 bytes a packet".
std::string carrier_text(const Bench& bench, const BenchLink& link, const BenchEnd& end);
// Opens one end and connects two of its groups with each other, so that no second process is
// needed.
Result<Connected> connect_to_itself(const Bench& bench, const Terms& terms, const Buffers& buffers);

// The counters that are not 0.
nlohmann::json counters_json(BenchEnd& end);

}  // namespace weft::cli
