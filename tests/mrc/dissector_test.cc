// tools/wireshark/mrc.lua against wire: what tshark shows of a packet is what wire says of it, field
// by field, for packets drawn from seeds and for bytes that are none.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/prng.h"
#include "net/steering.h"
#include "packet_row.h"
#include "raw_frame.h"
#include "tshark.h"
#include "wire/datagram.h"
#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/layout.h"
#include "wire/test_packets.h"

namespace weft::mrc_test {
namespace {

using wire::Opcode;
using wire::test::Buffer;

const std::vector<std::string> kVerify = {"mrc.verify_icrc:TRUE"};

class Dissector : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Tshark::is_installed())
      GTEST_SKIP() << "tshark is not installed (tools/install-deps test)";
  }

  // What tshark shows of the frames added so far, and that it shows `expected`, each row all of it.
  void expect_rows(const std::vector<Row>& expected, const std::vector<std::string>& options) {
    const std::vector<Row> rows = tshark_.read(all_fields(), options);
    ASSERT_EQ(rows.size(), expected.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const auto& [field, value] : rows[i]) {
        const auto at = expected[i].find(field);
        ASSERT_EQ(value, at == expected[i].end() ? "" : at->second)
            << field << " of frame " << i + 1 << ": " << rows[i].at("_ws.col.Info");
      }
    }
  }

  Tshark tshark_;
};

Ipv6 draw_address(Prng& prng) { return {.high = 0xfd00'0002ull << 32, .low = prng.next()}; }

std::uint16_t draw_port(Prng& prng) {
  switch (prng.below(3)) {
    case 0:
      return wire::kUdpPort;
    case 1:
      return wire::kUdpPortAlternate;
    default:
      return net::listen_port(static_cast<std::uint16_t>(1 + prng.below(net::kProcessesMax - 1)));
  }
}

wire::Envelope draw_envelope(Prng& prng) {
  wire::Envelope envelope = {.source = draw_address(prng),
                             .destination = draw_address(prng),
                             .dscp = 4,
                             .ecn = 2,
                             .udp_port = draw_port(prng),
                             .entropy = static_cast<std::uint32_t>(prng.next())};
  if (prng.below(2) == 0) {
    envelope.usid_destination = Ipv6{.high = 0xfd00'0001'1805'582aull, .low = 0x1809'9811ull << 32};
  }
  return envelope;
}

Buffer draw_payload(Prng& prng, Opcode opcode) {
  Buffer payload(wire::is_write(opcode) ? prng.below(70) : 0);
  for (std::byte& b : payload) b = static_cast<std::byte>(prng.next());
  return payload;
}

Buffer framed(const wire::Envelope& envelope, const Buffer& header, const Buffer& payload) {
  Buffer out(wire::frame_size_max(payload.size()));
  out.resize(wire::emit_frame(envelope, {.header = header, .payload = payload}, out));
  return out;
}

TEST_F(Dissector, GoldenVectors) {
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

TEST_F(Dissector, EveryFieldOfEveryOpcode) {
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

// Whatever a switch leaves of a write, from the BTH on; the outer DSCP says so.
TEST_F(Dissector, TrimmedWrites) {
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
    if (envelope.usid_destination) {  // the inner header keeps what the sender wrote
      frame[54] = std::byte{0x61};
      frame[55] &= std::byte{0x0f};
    }
    tshark_.add(frame);

    const auto seen = wire::parse(header, {.trimmed = true});
    ASSERT_TRUE(seen.has_value());
    Row row = row_of(*seen, header.size());
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

// A switch may leave the sizes of IP and UDP as they were.
TEST_F(Dissector, TrimmedWithoutNewSizes) {
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

// The ICRC notices what it covers, and wire and the dissector agree about what that is.
TEST_F(Dissector, DamageIsNoticed) {
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
    // Behind the BTH's opcode and flags, so that it stays what it is; or in the variant byte.
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

// Any bytes: the reason for a drop is the one that wire gives, and nothing goes wrong.
TEST_F(Dissector, BytesThatAreNoPacket) {
  std::vector<std::string> reasons;
  std::map<std::string, int> count;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Prng prng(seed);
    Buffer datagram(1 + prng.below(80));
    for (std::byte& b : datagram) b = static_cast<std::byte>(prng.next());
    if (prng.below(4) != 0) {
      datagram[0] = static_cast<std::byte>(wire::test::kOpcodes[prng.below(12)]);
      if (datagram.size() > 1 && prng.below(4) != 0) datagram[1] &= std::byte{0xf0};
      if (datagram.size() > 13 && prng.below(2) != 0) {
        datagram[12] = std::byte{0x1f};
        datagram[13] &= std::byte{0xfd};
      }
    }
    const bool trimmed = prng.below(4) == 0;
    tshark_.add(raw_frame({.payload = datagram, .dscp = trimmed ? 12u : 4u}));
    const auto parts = wire::split_datagram(datagram, {.trimmed = trimmed});
    std::string reason;
    if (!parts) {
      reason = to_string(parts.error());
    } else if (const auto packet = wire::parse(parts->header, {.trimmed = trimmed}); !packet) {
      reason = to_string(packet.error());
    }
    ++count[reason];
    reasons.push_back(reason);
  }
  for (const char* reason : {"", "too_short", "bad_opcode", "bad_version", "bad_header"}) {
    EXPECT_GT(count[reason], 20) << reason;
  }
  const auto rows = tshark_.read({"mrc.drop", "_ws.lua.error", "_ws.malformed", "_ws.col.Info"},
                                 {"mrc.verify_icrc:TRUE", "mrc.roce:FALSE"});
  ASSERT_EQ(rows.size(), reasons.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].at("mrc.drop"), reasons[i]) << i << ": " << rows[i].at("_ws.col.Info");
    ASSERT_EQ(rows[i].at("_ws.lua.error"), "") << i;
    ASSERT_EQ(rows[i].at("_ws.malformed").empty(), reasons[i].empty()) << i;
  }
}

// IPv4: by RoCEv2's rules, and as a socket of Weft does it, which never sees the IPv4 header.
TEST_F(Dissector, Ipv4) {
  Prng prng(3);
  wire::Packet packet = wire::test::random_packet(prng, Opcode::kSack);
  packet.bth.pad = 0;
  for (const Ipv4Icrc icrc : {Ipv4Icrc::kRoce, Ipv4Icrc::kMapped, Ipv4Icrc::kWrong}) {
    tshark_.add(ipv4_frame(wire::test::emitted(packet), icrc));
  }
  const auto rows = tshark_.read({"mrc.icrc.status", "mrc.ev", "_ws.col.Info"}, kVerify);
  ASSERT_EQ(rows.size(), 3u);
  for (const Row& row : rows) {
    EXPECT_EQ(row.at("mrc.ev"), std::to_string(kRawSourcePort << 16));
    EXPECT_EQ(row.at("_ws.col.Info"), to_string(packet));
  }
  EXPECT_EQ(rows[0].at("mrc.icrc.status"), "1");
  EXPECT_EQ(rows[1].at("mrc.icrc.status"), "1");
  EXPECT_EQ(rows[2].at("mrc.icrc.status"), "0");
}

// An SRH stands between the headers; the ICRC is of the inner one.
TEST_F(Dissector, SegmentRoutingHeader) {
  Prng prng(4);
  wire::Packet packet = wire::test::random_packet(prng, Opcode::kNack);
  packet.bth.pad = 0;
  wire::Envelope envelope = draw_envelope(prng);
  envelope.udp_port = wire::kUdpPort;
  envelope.usid_destination = Ipv6{.high = 0xfd00'0001'1805'582aull, .low = 0};
  const Buffer frame = with_srh(framed(envelope, wire::test::emitted(packet), {}));
  const auto parsed = wire::parse_frame(frame);
  ASSERT_TRUE(parsed.has_value() && parsed->intact);
  tshark_.add(frame);
  const auto rows = tshark_.read({"mrc.icrc.status", "mrc.srv6.usid", "_ws.col.Info"}, kVerify);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("mrc.icrc.status"), "1");
  EXPECT_EQ(rows[0].at("mrc.srv6.usid"), "6149,22570");
  EXPECT_EQ(rows[0].at("_ws.col.Info"), to_string(packet));
}

}  // namespace
}  // namespace weft::mrc_test
