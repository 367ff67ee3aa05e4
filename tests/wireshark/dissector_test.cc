// Compares tools/wireshark/mrc.lua with wire: for packets drawn from seeds, tshark shows the same
// value as wire in every field.
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "dissector_fixture.h"
#include "wire/layout.h"

namespace weft::mrc_test {
namespace {

TEST_F(Dissector, GoldenPacketsShowEveryField) {
  std::vector<std::string> lines;
  for (const wire::test::Golden& golden : wire::test::golden_vectors()) {
    const Buffer payload(golden.packet.bth.opcode == Opcode::kWriteOnlyImm ? 5 : 0);
    tshark_.add(framed(wire::test::golden_v1_envelope(), golden.bytes, payload));
    lines.push_back(to_string(golden.packet));
  }
  const std::vector<Row> rows = tshark_.read({"_ws.col.Info", "mrc.icrc.status"}, kVerify);
  ASSERT_EQ(rows.size(), lines.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("_ws.col.Info"), lines[i]);
    EXPECT_EQ(rows[i].at("mrc.icrc.status"), "1");
  }
}

TEST_F(Dissector, EveryFieldOfEveryOpcodeIsShown) {
  std::vector<Row> expected;
  for (std::uint64_t seed = 0; seed < 480; ++seed) {
    Prng prng(seed);
    const Opcode opcode = wire::test::kOpcodes[seed % wire::test::kOpcodes.size()];
    wire::Packet packet = wire::test::random_packet(prng, opcode);
    const Buffer payload = draw_payload(prng, opcode);
    packet.bth.pad = static_cast<std::uint8_t>(wire::pad_for(payload.size()));
    const wire::Envelope envelope = draw_envelope(prng);
    tshark_.add(framed(envelope, wire::test::emitted(packet), payload));

    Row row = row_of(packet);
    row["mrc.payload.size"] = std::to_string(payload.size());
    row["mrc.icrc.status"] = "1";
    row["mrc.ev"] = std::to_string(envelope.entropy);
    if (envelope.usid_destination) {
      row["mrc.srv6.block"] = std::to_string(0xfd000001);
      row["mrc.srv6.usid"] = "6149,22570,6153,38929";  // 1805 582a 1809 9811
    }
    expected.push_back(row);
  }
  expect_rows(expected, kVerify);
}

// A write that a switch trimmed at any byte after the BTH; the outer DSCP marks it as trimmed.
TEST_F(Dissector, TrimmedWritesShowTheRemainingFields) {
  std::vector<Row> expected;
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Prng prng(seed);
    const Opcode opcode = wire::test::kOpcodes[seed % 6];
    const wire::Packet packet = wire::test::random_packet(prng, opcode);
    Buffer header = wire::test::emitted(packet);
    header.resize(std::min<std::size_t>(header.size(), wire::bth_at::kSize + 4 * prng.below(8)));
    wire::Envelope envelope = draw_envelope(prng);
    envelope.trimmed = true;
    envelope.dscp = prng.below(2) == 0 ? 12 : 16;
    Buffer frame = framed(envelope, header, {});
    if (envelope.usid_destination) {  // the inner header keeps the sender's DSCP
      frame[54] = std::byte{0x61};
      frame[55] &= std::byte{0x0f};
    }
    tshark_.add(frame);

    const auto seen = wire::parse(header, {.trimmed = true});
    ASSERT_TRUE(seen.has_value());
    Row row = row_of(*seen, header.size());
    row["mrc.ts"] = std::get<wire::Write>(packet.body).has_timestamp ? "1" : "0";
    row["mrc.ev"] = std::to_string(envelope.entropy);
    row["mrc.trimmed"] = "1";
    row["mrc.trimmed.last_hop"] = envelope.dscp == 16 ? "1" : "0";
    if (envelope.usid_destination) {
      row["mrc.srv6.block"] = std::to_string(0xfd000001);
      row["mrc.srv6.usid"] = "6149,22570,6153,38929";
    }
    expected.push_back(row);
  }
  expect_rows(expected, kVerify);
}

// A switch may leave the lengths of IP and UDP unchanged.
TEST_F(Dissector, TrimmedWritesWithOldLengthsAreShown) {
  Prng prng(1);
  const wire::Packet packet = wire::test::random_packet(prng, Opcode::kWriteMiddle);
  wire::Envelope envelope = {.source = draw_address(prng), .destination = draw_address(prng)};
  envelope.dscp = 12;
  const Buffer header = wire::test::emitted(packet);
  Buffer frame = framed(envelope, header, Buffer(1000));
  frame.resize(14 + 40 + wire::kTrimmedSizeAfterIp);
  tshark_.add(frame);
  const auto parsed = wire::parse_frame(frame);
  ASSERT_TRUE(parsed.has_value());
  const auto rows = tshark_.read({"mrc.trimmed", "mrc.psn", "mrc.drop", "_ws.lua.error"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("mrc.trimmed"), "1");
  EXPECT_EQ(rows[0].at("mrc.psn"), std::to_string(packet.bth.psn.value()));
  EXPECT_EQ(rows[0].at("mrc.drop"), "");
  EXPECT_EQ(rows[0].at("_ws.lua.error"), "");
}

// The ICRC detects damage of the bytes that it covers; wire and the dissector agree on these bytes.
TEST_F(Dissector, DamageBreaksTheIcrc) {
  std::vector<bool> intact;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Prng prng(seed);
    const Opcode opcode = wire::test::kOpcodes[seed % wire::test::kOpcodes.size()];
    wire::Packet packet = wire::test::random_packet(prng, opcode);
    const Buffer payload = draw_payload(prng, opcode);
    packet.bth.pad = static_cast<std::uint8_t>(wire::pad_for(payload.size()));
    wire::Envelope envelope = draw_envelope(prng);
    envelope.udp_port = wire::kUdpPort;
    Buffer frame = framed(envelope, wire::test::emitted(packet), payload);
    // The damage is after the BTH's opcode and flags, so that the kind of packet stays the same; or
    // in the variant byte.
    const std::size_t bth =
        frame.size() - 4 - packet.bth.pad - payload.size() - wire::test::emitted(packet).size();
    const std::size_t at =
        prng.below(4) == 0
            ? bth + wire::bth_at::kVariant
            : bth + 9 + prng.below(static_cast<std::uint32_t>(frame.size() - bth - 9));
    frame[at] ^= std::byte{1};
    const auto parsed = wire::parse_frame(frame);
    if (!parsed || !wire::parse(parsed->content.header)) continue;
    tshark_.add(frame);
    intact.push_back(parsed->intact);
  }
  ASSERT_GT(std::count(intact.begin(), intact.end(), true), 20);
  ASSERT_GT(std::count(intact.begin(), intact.end(), false), 100);
  const auto rows = tshark_.read({"mrc.icrc.status", "mrc.expert.icrc", "_ws.col.Info"}, kVerify);
  ASSERT_EQ(rows.size(), intact.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("mrc.icrc.status"), intact[i] ? "1" : "0") << rows[i].at("_ws.col.Info");
  }
}

}  // namespace
}  // namespace weft::mrc_test
