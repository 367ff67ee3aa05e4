// How an end of `weft bench write` gets its memory, its world and its QPs.
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

// The memory of one end: the bytes that it sends, and the region where the peer's bytes land.
class Buffers {
 public:
  // At least `size` bytes for each of the two; pages are taken by touch(). Errors: kSystem.
  static Result<Buffers> make(std::uint64_t size);
  // Takes the pages. Called when the ends are connected, so that a client that disconnects early
  // costs no memory.
  void touch() const;
  const BenchMemory& memory() const { return memory_; }

 private:
  BenchMemory memory_;  // valid for the life of the process
};

// Opens the end behind the interface that `bench` names.
Result<std::unique_ptr<BenchEnd>> open_end(const Bench& bench, const Terms& terms,
                                           const Buffers& buffers);

// The leading end speaks first.
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
// "over UDP, 2 planes, 4096 bytes a packet": text for the user of either end.
std::string words_of_carrier(const Bench& bench, const BenchLink& link, const BenchEnd& end);
// Connects two groups of one end with each other, so that no second process is needed.
Result<Connected> connect_to_itself(const Bench& bench, const Terms& terms, const Buffers& buffers);

// The counters that are not 0.
nlohmann::json counters_json(BenchEnd& end);

}  // namespace weft::cli
