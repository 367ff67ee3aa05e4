#include "net/packet_run.h"

#include <cstdint>

#include "base/assert.h"

namespace weft::net {

bool have_one_path(const world::Datagram& a, const world::Datagram& b) {
  const auto class_of = [](const world::Datagram& d) {
    return d.dscp == world::Dscp::kTrimmableRetx ? world::Dscp::kTrimmable : d.dscp;
  };
  return a.port == b.port && a.entropy == b.entropy && class_of(a) == class_of(b) &&
         a.ecn == b.ecn && a.peer == b.peer;
}

std::span<const world::Datagram> group_by_path(std::span<const world::Datagram> out,
                                               std::span<world::Datagram> room) {
  constexpr std::size_t kShort = 4;  // fewer packets a run, in the mean, are worth grouping
  std::size_t runs = 1;
  for (std::size_t i = 1; i < out.size(); ++i) runs += have_one_path(out[i - 1], out[i]) ? 0 : 1;
  if (out.size() <= 2 || runs * kShort <= out.size()) return out;
  WEFT_ASSERT(room.size() >= out.size());
  static_assert(kPollDatagramsMax <= 64);
  std::uint64_t placed = 0;  // bit i: out[i] is in `room`
  std::size_t count = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if ((placed >> i & 1) != 0) continue;
    for (std::size_t j = i; j < out.size(); ++j) {
      if ((placed >> j & 1) != 0 || !have_one_path(out[i], out[j])) continue;
      placed |= std::uint64_t{1} << j;
      room[count++] = out[j];
    }
  }
  WEFT_ASSERT(count == out.size());
  return room.first(count);
}

}  // namespace weft::net
