// The device as responder: which bytes it places, when, and which completions its program gets.
#include <endian.h>

#include <algorithm>
#include <array>

#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

using wire::Opcode;
using Piece = Duel::Piece;

// Packet i of a message of `count` full packets, with its part of the pattern. `first` is the PSN
// of the message's first packet.
Piece packet_of_message(std::int32_t first, std::uint32_t i, std::uint32_t count) {
  const Opcode opcode = i == 0          ? Opcode::kWriteFirst
                        : i + 1 < count ? Opcode::kWriteMiddle
                                        : Opcode::kWriteLast;
  return {.psn = first + static_cast<std::int32_t>(i),
          .opcode = opcode,
          .to = std::uint64_t{i} * 1024,
          .size = 1024,
          .seed = 100 + i,
          .message_size = count * 1024};
}
void is_placed(Duel& duel, std::uint32_t i) {
  is_pattern(duel.end.memory.data() + std::size_t{i} * 1024, 1024, 100 + i);
}
bool covers(const ReceivedPacket& seen, Psn psn) {
  const auto* const sack = seen.as<wire::Sack>();
  return sack != nullptr && sack->cack == psn;
}
void wait_for_cack(Duel& duel, std::int32_t psn) {
  duel.next_where("a SACK with that cumulative PSN",
                  [&](const ReceivedPacket& seen) { return covers(seen, duel.psn(psn)); });
}

void one_packet_is_placed(Session& session) {
  Duel duel(session);
  std::memset(duel.end.memory.data(), 0xcc, 4096);
  duel.send({.to = 100, .size = 333, .seed = 9});
  wait_for_cack(duel, 0);
  is_pattern(duel.end.memory.data() + 100, 333, 9);
  equal_hex("the byte before it", duel.end.memory[99], 0xcc);
  equal_hex("the byte behind it", duel.end.memory[433], 0xcc);
}

void every_order(Session& session, std::array<std::uint32_t, 6> order) {
  Duel duel(session);
  for (const std::uint32_t i : order)
    duel.send(packet_of_message(0, i, 6),
              {.plane = i % duel.tester.plane_count(), .sender = i % 4});
  wait_for_cack(duel, 5);
  for (std::uint32_t i = 0; i < 6; ++i) is_placed(duel, i);
}

// A packet above a hole must be placed before the missing packet arrives.
void placed_above_hole(Session& session) {
  Duel duel(session);
  duel.send(packet_of_message(0, 2, 3));
  duel.next_where("a SACK that reports it", [&](const ReceivedPacket& seen) {
    const auto* const sack = seen.as<wire::Sack>();
    return sack != nullptr && sack->cack == duel.psn(-1) && sack->ooo_count == 1;
  });
  is_placed(duel, 2);
}

void duplicate_is_not_placed(Session& session, bool below_edge) {
  Duel duel(session);
  const std::int32_t psn = below_edge ? 0 : 1;
  duel.send({.psn = psn, .size = 64, .seed = 1});
  duel.next_sack();
  duel.send({.psn = psn, .size = 64, .seed = 2, .rtx = true});
  duel.next_where("a SACK for the duplicate", [](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr && s.bth().rtx;
  });
  is_pattern(duel.end.memory.data(), 64, 1);
}

void psn_wraps(Session& session) {
  Duel duel(session, {.tester_psn = 0xff'fffe});
  for (std::uint32_t i = 0; i < 5; ++i) duel.send(packet_of_message(0, i, 5));
  wait_for_cack(duel, 4);
  equal_hex("PSN 4 behind 0xfffffe", duel.psn(4).value(), 2);
  for (std::uint32_t i = 0; i < 5; ++i) is_placed(duel, i);
}

void zero_length_needs_no_rkey(Session& session) {
  Duel duel(session);
  duel.send({.size = 0, .rkey = 0x12345678});
  wait_for_cack(duel, 0);
  duel.expect_still_works(1);
}

// --- immediates

void immediate(Session& session) {
  Duel duel(session);
  duel.end.receive(0x42);
  duel.send({.opcode = Opcode::kWriteOnlyImm, .size = 333, .immediate = 0x01020304});
  const ibv_wc wc = duel.end.wait_receive();
  completed_as(wc, IBV_WC_SUCCESS, 0x42);
  equal_hex("immediate", be32toh(wc.imm_data), 0x01020304);
  equal("byte_len", wc.byte_len, 333u);
}

// The second immediate arrives first. It must wait for the first.
void immediates_in_order(Session& session) {
  Duel duel(session);
  duel.end.receive(1);
  duel.end.receive(2);
  duel.send({.psn = 1, .opcode = Opcode::kWriteOnlyImm, .msn = 1, .rqmsn = 1, .immediate = 22});
  duel.next_sack();
  duel.end.expect_no_completion(duel.end.receive_cq, milliseconds(50));
  duel.send({.psn = 0, .opcode = Opcode::kWriteOnlyImm, .immediate = 11});
  for (const std::uint32_t expected : {11u, 22u})
    equal("immediate", be32toh(duel.end.wait_receive().imm_data), expected);
}

// The last packet of the message has arrived, but an earlier one is missing: there must be no
// completion.
void waits_for_hole(Session& session) {
  Duel duel(session);
  duel.end.receive(1);
  Piece last = packet_of_message(0, 2, 3);
  last.opcode = Opcode::kWriteLastImm;
  last.immediate = 7;
  duel.send(packet_of_message(0, 0, 3));
  duel.send(last);
  duel.end.expect_no_completion(duel.end.receive_cq, milliseconds(50));
  duel.send(packet_of_message(0, 1, 3));
  const ibv_wc wc = duel.end.wait_receive();
  completed_as(wc, IBV_WC_SUCCESS, 1);
  equal("byte_len: the whole message's,", wc.byte_len, 3072u);
}

void immediate_is_delivered_once(Session& session) {
  Duel duel(session);
  duel.end.receive(1);
  duel.end.receive(2);
  const Piece piece{.opcode = Opcode::kWriteOnlyImm, .immediate = 7};
  duel.send(piece);
  completed_as(duel.end.wait_receive(), IBV_WC_SUCCESS, 1);
  for (int i = 0; i < 3; ++i) duel.send(piece);
  duel.end.expect_no_completion(duel.end.receive_cq, milliseconds(50));
}

// The tester counts rqmsn from 1, as some readers of the specification do.
void rqmsn_may_start_at_one(Session& session) {
  Duel duel(session);
  duel.end.receive(1);
  duel.end.receive(2);
  duel.send({.opcode = Opcode::kWriteOnlyImm, .msn = 1, .rqmsn = 1, .immediate = 1});
  completed_as(duel.end.wait_receive(), IBV_WC_SUCCESS, 1);
  duel.send({.psn = 1, .opcode = Opcode::kWriteOnlyImm, .msn = 2, .rqmsn = 2, .immediate = 2});
  completed_as(duel.end.wait_receive(), IBV_WC_SUCCESS, 2);
}

void write_without_tseth(Session& session) {
  Duel duel(session);
  wire::Packet packet = duel.packet_of({.size = 16});
  std::get<wire::Write>(packet.body).has_timestamp = false;
  std::array<std::uint8_t, 16> payload;
  fill(payload.data(), payload.size(), 3);
  duel.tester.send(packet, std::as_bytes(std::span(payload)), {});
  wait_for_cack(duel, 0);
  is_pattern(duel.end.memory.data(), 16, 3);
}

#define WEFT_PSN "MRC 6.3.1, PSN checks"
#define WEFT_IMM "MRC 6.2.1, WriteIMM"
constexpr Test kTests[] = {
    {.id = "wire.place.only",
     .clause = "MRC 6.3",
     .certainty = Certainty::kReaders,
     .what = "one packet is placed where its RETH says, and no other byte changes",
     .body = one_packet_is_placed},
    {.id = "wire.place.reverse",
     .clause = "MRC 6.3",
     .certainty = Certainty::kReaders,
     .what = "six packets in reverse order form the message",
     .body =
         [](Session& s) {
           every_order(s, {5, 4, 3, 2, 1, 0});
         }},
    {.id = "wire.place.shuffled",
     .clause = "MRC 6.3",
     .certainty = Certainty::kReaders,
     .what = "six packets in mixed order over all ports form the message",
     .body =
         [](Session& s) {
           every_order(s, {3, 0, 5, 1, 4, 2});
         }},
    {.id = "wire.place.at-once",
     .clause = "paper 2.1: no reorder buffer",
     .certainty = Certainty::kPaper,
     .what = "a packet above a hole is placed at once",
     .body = placed_above_hole},
    {.id = "wire.place.duplicate-above",
     .clause = WEFT_PSN,
     .certainty = Certainty::kReaders,
     .what = "a duplicate above the cumulative PSN is acknowledged and not placed again",
     .body = [](Session& s) { duplicate_is_not_placed(s, false); }},
    {.id = "wire.place.duplicate-below",
     .clause = WEFT_PSN,
     .certainty = Certainty::kReaders,
     .what = "a duplicate below the cumulative PSN is acknowledged and not placed again",
     .body = [](Session& s) { duplicate_is_not_placed(s, true); }},
    {.id = "wire.place.psn-wrap",
     .clause = "MRC 6.2.2, 24-bit PSN",
     .certainty = Certainty::kReaders,
     .what = "a message across PSN 0xFFFFFF is received",
     .body = psn_wraps},
    {.id = "wire.place.zero-length",
     .clause = "IBA 9.7.4: no key check without payload",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a write of no bytes needs no valid rkey",
     .body = zero_length_needs_no_rkey},
    {.id = "wire.place.no-tseth",
     .clause = "MRC 6.2.2, BTH.ts",
     .certainty = Certainty::kReaders,
     .what = "a write without TSETH is received",
     .body = write_without_tseth},
    {.id = "wire.imm.delivered",
     .clause = WEFT_IMM,
     .certainty = Certainty::kReaders,
     .what = "an immediate consumes a receive; the completion has value and length",
     .body = immediate},
    {.id = "wire.imm.order",
     .clause = WEFT_IMM,
     .certainty = Certainty::kReaders,
     .what = "immediates that arrive in the wrong order are delivered in the right order",
     .body = immediates_in_order},
    {.id = "wire.imm.hole",
     .clause = WEFT_IMM,
     .certainty = Certainty::kReaders,
     .what = "an immediate waits for all earlier packets",
     .body = waits_for_hole},
    {.id = "wire.imm.once",
     .clause = WEFT_IMM,
     .certainty = Certainty::kReaders,
     .what = "duplicates of an immediate are not delivered again",
     .body = immediate_is_delivered_once},
    {.id = "wire.imm.rqmsn-from-1",
     .clause = "MRC 6.2.2 (METH)",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a peer that counts rqmsn from 1 is understood",
     .body = rqmsn_may_start_at_one},
};

}  // namespace

std::span<const Test> wire_place_tests() { return kTests; }

}  // namespace weft::conformance
