// Malformed packets, and packets that are not for this QP: the device must drop them, answer
// nothing, and change nothing.
#include "base/prng.h"
#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

using Piece = Duel::Piece;
using SendOptions = Tester::SendOptions;

// Afterwards memory must be unchanged, and a valid packet with the same PSN must be accepted as
// new.
void bad_packet_is_dropped(Session& session, const std::function<void(Duel&)>& send) {
  Duel duel(session);
  std::memset(duel.end.memory.data(), 0x77, 4096);
  send(duel);
  duel.none_where("answer", milliseconds(50), [](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr || s.as<wire::TransportAck>() != nullptr;
  });
  equal_hex("memory", duel.end.memory[0], 0x77);
  duel.expect_still_works(0);
}

void damaged_payload_is_dropped(Session& session) {
  if (session.options().icrc == IcrcCover::kHeaders)
    skip("the device leaves the payload out of the ICRC");
  bad_packet_is_dropped(session, [](Duel& duel) { duel.send({.size = 64}, {.flip = {{40, 1}}}); });
}

void write_of_stranger_is_dropped(Session& session) {
  Duel duel(session);
  std::memset(duel.end.memory.data(), 0x77, 4096);
  // A host that is not the peer of the QP.
  Tester stranger = open_tester(session, duel.host, duel.end.qpn(), duel.cover);
  std::vector<std::byte> payload(64);
  stranger.send(duel.packet_of({.size = 64}), payload, {});
  const auto until = Clock::now() + milliseconds(50);
  while (const auto seen = stranger.next(until)) {
    holds(seen->as<wire::Sack>() == nullptr, "no answer to a stranger",
          wire::to_string(seen->packet));
  }
  equal_hex("memory", duel.end.memory[0], 0x77);
  duel.expect_still_works(0);
}

void nak_of_stranger_is_dropped(Session& session) {
  Duel duel(session);
  duel.post(100);
  const ReceivedPacket write = duel.next_write();
  Tester stranger = open_tester(session, duel.host, duel.end.qpn(), duel.cover);
  stranger.send({.bth = {.opcode = wire::Opcode::kTransportAck,
                         .dest_qpn = duel.end.qpn(),
                         .psn = write.bth().psn},
                 .body = wire::TransportAck{.syndrome = wire::AckSyndrome::kNakRemoteAccess}});
  duel.end.expect_no_completion(duel.end.send_cq, milliseconds(50));
  duel.accept(write, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

// Datagrams of random bytes; some begin like a packet for this QP.
void garbage(Session& session) {
  Duel duel(session);
  Prng prng(20260321);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> bytes(prng.below(120));
    for (std::byte& b : bytes) b = static_cast<std::byte>(prng.below(256));
    if (i % 2 == 0 && bytes.size() >= 12) {
      bytes[0] = static_cast<std::byte>(0xc6 + prng.below(0x20));
      bytes[1] &= std::byte{0xf0};
      base::store24(bytes, 5, i % 4 == 0 ? duel.end.qpn() : 2);
    }
    if (!bytes.empty())
      duel.tester.send_raw(bytes, {.plane = prng.below(duel.tester.plane_count())});
    if (i % 64 == 0) duel.tester.next(Clock::now() + milliseconds(1));
  }
  equal("state", static_cast<int>(duel.end.state()), static_cast<int>(IBV_QPS_RTS));
  duel.expect_still_works(0);
}

// A valid packet, truncated at every length.
void truncated_packets_are_dropped(Session& session) {
  Duel duel(session);
  for (std::size_t keep = 1; keep < 12 + 4 + 4 + 16 + 64 + 4; ++keep)
    duel.send({.size = 64}, {.cut = keep});
  equal("state", static_cast<int>(duel.end.state()), static_cast<int>(IBV_QPS_RTS));
  duel.expect_still_works(0);
}

// A transfer must continue while other hosts send random bytes.
void transfer_among_garbage(Session& session) {
  Duel duel(session);
  Prng prng(7);
  for (std::int32_t i = 0; i < 50; ++i) {
    std::vector<std::byte> bytes(40);
    for (std::byte& b : bytes) b = static_cast<std::byte>(prng.below(256));
    for (int k = 0; k < 10; ++k) duel.tester.send_raw(bytes, {});
    duel.send({.psn = i,
               .to = static_cast<std::uint64_t>(i) * 64,
               .size = 64,
               .seed = static_cast<std::uint64_t>(i)});
  }
  duel.expect_still_works(50);
  for (std::uint64_t i = 0; i < 50; ++i) is_pattern(duel.end.memory.data() + i * 64, 64, i);
}

#define WEFT_DROP(id_, clause_, certainty_, what_, ...)                                   \
  {                                                                                       \
    .id = id_, .clause = clause_, .certainty = certainty_, .what = what_,                 \
    .body = [](Session& s) { bad_packet_is_dropped(s, [](Duel& duel) { __VA_ARGS__; }); } \
  }
constexpr Test kTests[] = {
    WEFT_DROP("wire.drop.icrc", "RoCEv2, ICRC", Certainty::kReaders,
              "a packet with a wrong ICRC is dropped",
              duel.send({.size = 64}, {.corrupt_icrc = true})),
    {.id = "wire.drop.payload",
     .clause = "RoCEv2, ICRC",
     .certainty = Certainty::kReaders,
     .what = "a packet with a damaged payload is dropped",
     .body = damaged_payload_is_dropped},
    WEFT_DROP("wire.drop.header", "RoCEv2, ICRC", Certainty::kReaders,
              "a packet whose va was damaged in flight is dropped",
              duel.send({.size = 64}, {.flip = {{24, 1}}})),
    WEFT_DROP("wire.drop.tver", "MRC 6.2.2 (BTH): TVer", Certainty::kReaders,
              "a packet of another transport version is dropped",
              duel.send({.size = 64}, {.patch = {{1, 0x01}}})),
    WEFT_DROP("wire.drop.opcode", "MRC 6.2.2, opcodes", Certainty::kReaders,
              "an opcode that is not MRC's is dropped",
              duel.send({.size = 64}, {.patch = {{0, 0xcf}}})),
    WEFT_DROP("wire.drop.rc-opcode", "MRC: no RC on the wire", Certainty::kReaders,
              "an RC WRITE (0x0A) is dropped", duel.send({.size = 64}, {.patch = {{0, 0x0a}}})),
    WEFT_DROP("wire.drop.qpn", "MRC 6.3", Certainty::kReaders,
              "a packet for a QP that does not exist is dropped",
              duel.send({.size = 64},
                        {.patch = {{7, static_cast<std::uint8_t>(duel.end.qpn() ^ 0x55)}}})),
    WEFT_DROP("wire.drop.short", "MRC 6.2.2", Certainty::kReaders,
              "a packet that ends inside its RETH is dropped",
              duel.send({.size = 64}, {.cut = 24})),
    WEFT_DROP("wire.drop.pad", "MRC 6.2.2 (BTH): PadCnt", Certainty::kReaders,
              "padding without payload is dropped", duel.send({.size = 0}, {.patch = {{1, 0x30}}})),
    {.id = "wire.drop.every-cut",
     .clause = "MRC 6.2.2",
     .certainty = Certainty::kOurs,
     .what = "a packet truncated at any byte does no harm",
     .body = truncated_packets_are_dropped},
    {.id = "wire.drop.stranger",
     .clause = "MRC 6.1, a QP has one peer",
     .certainty = Certainty::kOurs,
     .what = "a write from an address other than the peer's is dropped",
     .body = write_of_stranger_is_dropped},
    {.id = "wire.drop.stranger-nak",
     .clause = "MRC 6.1, a QP has one peer",
     .certainty = Certainty::kOurs,
     .what = "a NAK from another address has no effect",
     .body = nak_of_stranger_is_dropped},
    {.id = "wire.drop.garbage",
     .clause = "MRC 6.2.2",
     .certainty = Certainty::kOurs,
     .what = "3000 datagrams of garbage do no harm",
     .body = garbage},
    {.id = "wire.drop.under-fire",
     .clause = "MRC 6.2.2",
     .certainty = Certainty::kOurs,
     .what = "a transfer continues correctly while garbage arrives",
     .body = transfer_among_garbage},
};

}  // namespace

std::span<const Test> wire_hostile_tests() { return kTests; }

}  // namespace weft::conformance
