// For tests: a responder with everything it uses, and packets made from a few numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/ring.h"
#include "transport/responder.h"
#include "transport/test_memory.h"

namespace weft::transport::test {

// The fields of a data packet other than its PSN. Each PSN's payload has its own address in the
// region.
struct Came {
  wire::Opcode opcode = wire::Opcode::kWriteMiddle;
  std::uint32_t size = 64;
  bool ask = false, rtx = false, marked = false, trimmed = false, trimmed_last_hop = false;
  bool solicited = false;
  std::uint32_t entropy = 1;
  std::uint32_t immediate = 0;
  std::optional<std::uint16_t> rqmsn{};
  std::uint16_t sent = 0;
  std::uint32_t rkey = 0x77;
  std::uint32_t message_size = 1 << 16;
  std::uint64_t va = 0;            // 0: the PSN's own address
  std::uint32_t nominal_size = 0;  // 0: computed from the sizes
  Time now{};
};

class ResponderBench {
 public:
  static constexpr std::uint32_t kPeerQpn = 0x321, kLocalQpn = 0x123;

  // By default no SACK is due by bytes: `sack_bytes` is large.
  explicit ResponderBench(Psn first, Responder::Options options = {.sack_bytes = 1u << 30})
      : first_(first), responder(options) {
    responder.start(first, {.local_qpn = kLocalQpn, .peer_qpn = kPeerQpn, .peer = 0});
  }

  std::uint64_t address_of(Psn psn) const {
    return memory.options().at + static_cast<std::uint64_t>(psn.since(first_)) * 64;
  }
  static std::uint64_t source_of(Psn psn) {
    return 0x5000'0000 + std::uint64_t{psn.value()} * 4096;
  }

  Status write(Psn psn, const Came& came = {}) {
    const wire::Bth bth{.opcode = came.opcode,
                        .solicited = came.solicited,
                        .pad = static_cast<std::uint8_t>(-came.size & 3),
                        .dest_qpn = kLocalQpn,
                        .ack_request = came.ask,
                        .rtx = came.rtx,
                        .psn = psn};
    // By default the packet is numbered as if every packet before it were an immediate.
    const wire::Write write{
        .rqmsn = came.rqmsn.value_or(static_cast<std::uint16_t>(psn.since(first_))),
        .sent = {came.sent},
        .va = came.va != 0 ? came.va : address_of(psn),
        .rkey = came.rkey,
        .message_size = came.message_size,
        .immediate = came.immediate};
    const bool trimmed = came.trimmed || came.trimmed_last_hop;
    const Responder::Arrival arrival{
        .now = came.now,
        .bth = bth,
        .write = write,
        .payload = {.at = source_of(psn), .size = trimmed ? 0 : came.size},
        .nominal_size = came.nominal_size != 0 ? came.nominal_size : 88 + ((came.size + 3) & ~3u),
        .entropy = came.entropy,
        .marked = came.marked,
        .trimmed = trimmed,
        .trimmed_last_hop = came.trimmed_last_hop};
    return responder.on_write_packet(arrival, memory, {receives, completions}, control, counters);
  }
  // Ends the batch. Returns everything that is to be sent.
  std::vector<Sent> queue_due_answers() {
    responder.queue_due_answers(control, counters);
    return take_all(control);
  }
  std::vector<Sent> write_and_flush(Psn psn, const Came& came = {}) {
    EXPECT_EQ(write(psn, came), Status::kOk);
    return queue_due_answers();
  }
  std::vector<Sent> probe(std::uint16_t id, std::uint32_t entropy = 9, bool marked = false) {
    responder.on_probe({.probe_id = id, .sent = {77}},
                       {.entropy = entropy, .marked = marked, .port = 0}, control, counters);
    return take_all(control);
  }

 private:
  Psn first_;

 public:
  TestMemory memory{{}};
  Ring<std::uint64_t> receives{1024};
  Ring<Completion> completions{1024};
  ControlQueue control{4096};
  ResponderCounters counters;
  Responder responder;
};

// The PSNs that a SACK's bitmap names.
inline std::vector<std::uint32_t> reported(const wire::Sack& sack) {
  std::vector<std::uint32_t> psns;
  for (int i = 0; i < 64; ++i) {
    if (sack.bitmap >> i & 1) psns.push_back((sack.cack + sack.bitmap_offset + i).value());
  }
  return psns;
}

}  // namespace weft::transport::test
