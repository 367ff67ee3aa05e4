// How an end of `weft bench write` comes to its memory, its world and its QPs.
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

// Both ends' memory: what is sent, and where it lands.
class Buffers {
 public:
  // At least so much each; pages come with touch(). Errors: kSystem.
  static Result<Buffers> make(std::uint64_t size);
  // Once the ends are connected: who only asks, and goes, costs nothing.
  void touch() const;
  const BenchMemory& memory() const { return memory_; }

 private:
  BenchMemory memory_;  // for the life of the process
};

// By the interface that this end is asked to use.
Result<std::unique_ptr<BenchEnd>> open_end(const Bench& bench, const Terms& terms,
                                           const Buffers& buffers);

// Who leads proposes what carries the QPs, who follows decides.
enum class Role : std::uint8_t { kLeads, kFollows };
// The QPs between two ends, and what was agreed for all of them.
struct Links {
  std::vector<BenchQp> qps;
  engine::NetEnd::Carrier carrier = engine::NetEnd::Carrier::kPlanes;
  std::uint32_t mtu = 0;  // payload of a packet, where the planes carry
};
// Between `end` and the one at the other end of the stream.
Result<Links> connect_qps(const Bench& bench, const Terms& terms, Role role, os::Stream& stream,
                          const Buffers& buffers, BenchEnd& end);

struct Connected : Links {
  std::unique_ptr<BenchEnd> end;
};
Result<Connected> connect(const Bench& bench, const Terms& terms, Role role, os::Stream& stream,
                          const Buffers& buffers);
// "over UDP, 2 planes, 4096 bytes a packet", for the people at either end.
std::string words_of_carrier(const Bench& bench, const Links& links, const BenchEnd& end);
// Each QP's other end is a second one of the same end: nobody else is needed.
Result<Connected> connect_to_itself(const Bench& bench, const Terms& terms, const Buffers& buffers);

// Those that are not 0.
nlohmann::json counters_json(BenchEnd& end);

}  // namespace weft::cli
