// Hosts send any bytes at any times, and faults are any text. The software switch must not crash,
// must count every packet, and must deliver only packets whose lengths are consistent.
//
// The input is a list of records: a byte for the kind, two bytes for a length, and so many bytes.
// Kinds 0 to 3 are a packet (other bits of the byte give host and plane), 4 is a fault as text, and
// any other kind lets time pass.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "softswitch/fault_text.h"
#include "softswitch/live_fabric.h"

namespace weft::net {
namespace {

softswitch::LiveFabricConfig config() {
  const switching::QueueParams queue{.data_bytes_max = 20'000,
                                     .control_bytes_max = 20'000,
                                     .ecn_bytes_min = 4'000,
                                     .ecn_bytes_max = 12'000};
  return {.topology = *fabric::Topology::make({.shape = fabric::Shape::kTwoTier,
                                               .hosts = 4,
                                               .planes = 2,
                                               .hosts_per_t0 = 2,
                                               .t1_count = 2,
                                               .host_rate = Rate::bps(200'000'000),
                                               .fabric_rate = Rate::bps(200'000'000)}),
          .mtu = 1024,
          .fabric_queue = queue,
          .last_hop_queue = queue,
          .packets_max = 16};
}

void take_all(softswitch::LiveFabric& fabric, Time now) {
  std::array<softswitch::LiveFabric::Delivery, 8> out;
  while (const std::size_t count = fabric.poll(now, out)) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto facts = softswitch::read_facts(out[i].packet);
      WEFT_ASSERT(facts.has_value() && facts->size == out[i].packet.size());
      WEFT_ASSERT(out[i].host < 4 && out[i].plane < 2 && out[i].at <= now);
    }
  }
}

void check(ConstBytes in) {
  softswitch::LiveFabric fabric(config());
  Time now;
  while (in.size() >= 3) {
    const std::uint8_t what = base::load8(in, 0);
    const std::size_t size = std::min<std::size_t>(base::load16(in, 1), in.size() - 3);
    const ConstBytes bytes = in.subspan(3, size);
    in = in.subspan(3 + size);
    if ((what & 7) < 4) {
      fabric.on_packet(now, what & 3, what >> 7, bytes);
    } else if ((what & 7) == 4) {
      const auto event = softswitch::parse_fault_event(
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      if (!event) continue;
      WEFT_ASSERT(softswitch::parse_fault_event(softswitch::to_text(*event)).has_value());
      if (fabric.apply(now, *event)) take_all(fabric, now);
    } else {
      now += Duration::us(static_cast<std::int64_t>(size));
      take_all(fabric, now);
    }
  }
  // In the end all packets must have left. A packet may be delayed several times, each time by up
  // to a day.
  take_all(fabric, now + Duration::s(86'400 * 20));
  take_all(fabric, now + Duration::s(86'400 * 20));
  WEFT_ASSERT(fabric.packets_in_fabric() == 0);
}

}  // namespace
}  // namespace weft::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::net::check({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
