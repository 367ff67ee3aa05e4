// How an end of `weft bench write` comes to its memory, its world and its QPs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/result.h"
#include "cli/bench_terms.h"
#include "cli/bench_write.h"
#include "cli/net_end.h"
#include "cli/stream.h"

namespace weft::cli {

// Both ends' memory: what is sent, and where it lands.
class Buffers {
 public:
  // At least so much each. Errors: kSystem.
  static Result<Buffers> make(std::uint64_t size);
  std::span<std::byte> source() const { return halves_[0]; }
  std::span<std::byte> landing() const { return halves_[1]; }

 private:
  std::array<std::span<std::byte>, 2> halves_;  // for the life of the process
};

Result<std::unique_ptr<NetEnd>> open_end(const Bench& bench, const Terms& terms);

// Who leads proposes what carries the QPs, who follows decides.
enum class Role : std::uint8_t { kLeads, kFollows };
// The QPs between two ends, and what was agreed for all of them.
struct Links {
  std::vector<BenchQp> qps;
  NetEnd::Carrier carrier = NetEnd::Carrier::kPlanes;
  std::uint32_t mtu = 0;  // payload of a packet, where the planes carry
};
// Between `end` and the one at the other end of the stream.
Result<Links> connect_qps(const Bench& bench, const Terms& terms, Role role, Stream& stream,
                          const Buffers& buffers, NetEnd& end);

struct Connected : Links {
  std::unique_ptr<NetEnd> end;
};
Result<Connected> connect(const Bench& bench, const Terms& terms, Role role, Stream& stream,
                          const Buffers& buffers);

// Those that are not 0.
nlohmann::json counters_json(NetEnd& end);

}  // namespace weft::cli
