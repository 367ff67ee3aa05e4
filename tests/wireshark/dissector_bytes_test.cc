// tools/wireshark/mrc.lua and bytes that wire::emit_frame does not make: malformed packets, other
// encapsulations, and Weft's own hello.
#include <fmt/format.h>

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dissector_fixture.h"
#include "raw_frame.h"
#include "seal/secure_hello.h"
#include "wire/datagram.h"

namespace weft::mrc_test {
namespace {

// Random bytes: the dissector shows the same drop reason as wire, and the script has no error.
TEST_F(Dissector, MalformedPacketsShowTheDropReasonOfWire) {
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

// Every bit of every header is shown at its place, unused bits too.
TEST_F(Dissector, EveryBitOfEveryHeaderIsShown) {
  for (const Opcode opcode : wire::test::kOpcodes) {
    Buffer datagram(100, std::byte{0xff});
    datagram[0] = static_cast<std::byte>(opcode);
    tshark_.add(raw_frame({.payload = datagram}));
  }
  const auto rows = tshark_.read({"mrc.opcode", "mrc.tver", "mrc.variant", "mrc.tseth.ftype",
                                  "mrc.probe.ftype", "mrc.erth.ftype", "mrc.erth.op", "mrc.eeth.op",
                                  "mrc.sack.type", "mrc.sack.nh", "mrc.sack.m", "mrc.drop"});
  ASSERT_EQ(rows.size(), wire::test::kOpcodes.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Opcode opcode = wire::test::kOpcodes[i];
    const auto only_in = [&](bool is_there, const char* value) { return is_there ? value : ""; };
    const Row& row = rows[i];
    EXPECT_EQ(row.at("mrc.tver"), "15");
    EXPECT_EQ(row.at("mrc.variant"), "255");
    EXPECT_EQ(row.at("mrc.tseth.ftype"), only_in(wire::is_write(opcode), "15"));
    EXPECT_EQ(row.at("mrc.probe.ftype"), only_in(opcode == Opcode::kProbe, "15"));
    EXPECT_EQ(row.at("mrc.erth.ftype"), only_in(opcode == Opcode::kEndpointRequest, "15"));
    EXPECT_EQ(row.at("mrc.erth.op"), only_in(opcode == Opcode::kEndpointRequest, "3"));
    EXPECT_EQ(row.at("mrc.eeth.op"), only_in(opcode == Opcode::kEndpointResponse, "3"));
    EXPECT_EQ(row.at("mrc.sack.type"), only_in(opcode == Opcode::kSack, "15"));
    EXPECT_EQ(row.at("mrc.sack.nh"), only_in(opcode == Opcode::kSack, "31"));
    EXPECT_EQ(row.at("mrc.sack.m"), only_in(opcode == Opcode::kSack, "3"));
    EXPECT_EQ(row.at("mrc.drop"), "bad_version");
  }
}

TEST_F(Dissector, EveryFieldOfAHelloIsShown) {
  const std::array<std::byte, 32> secret{};
  const auto keys = seal::KeySchedule::from_secret(secret);
  ASSERT_TRUE(keys.has_value());
  seal::SecureHello hello;
  hello.from = {.incarnation = 0x1122'3344'5566'7788, .process = 7, .qpn = 0x0a0b0c};
  hello.to = {.incarnation = 0x99aa'bbcc'ddee'ff00, .process = 9, .qpn = 0x010203};
  hello.drawn.fill(std::byte{0xd1});
  hello.echo.fill(std::byte{0xec});
  const auto packet = hello.emit(*keys);
  tshark_.add(raw_frame({.payload = Buffer(packet.begin(), packet.end())}));
  const auto rows = tshark_.read(
      {"mrc.hello.from_incarnation", "mrc.hello.from_qpn", "mrc.hello.from_process",
       "mrc.hello.to_incarnation", "mrc.hello.to_qpn", "mrc.hello.to_process", "mrc.hello.drawn",
       "mrc.hello.echo", "mrc.hello.version", "mrc.hello.flags", "mrc.hello.tag", "_ws.col.Info"});
  ASSERT_EQ(rows.size(), 1u);
  const auto at = [&](const char* name) { return rows[0].at(std::string("mrc.hello.") + name); };
  EXPECT_EQ(at("from_incarnation"), std::to_string(hello.from.incarnation));
  EXPECT_EQ(at("from_qpn"), std::to_string(hello.from.qpn));
  EXPECT_EQ(at("from_process"), "7");
  EXPECT_EQ(at("to_incarnation"), std::to_string(hello.to.incarnation));
  EXPECT_EQ(at("to_qpn"), std::to_string(hello.to.qpn));
  EXPECT_EQ(at("to_process"), "9");
  EXPECT_EQ(at("drawn"), "d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1");
  EXPECT_EQ(at("echo"), "ecececececececececececececececec");
  EXPECT_EQ(at("version"), std::to_string(std::to_integer<int>(packet[4])));
  EXPECT_EQ(at("flags"), std::to_string(std::to_integer<int>(packet[5])));
  std::string tag;
  for (const std::byte b : std::span(packet).subspan(68))
    tag += fmt::format("{:02x}", std::to_integer<int>(b));
  EXPECT_EQ(at("tag"), tag);
  EXPECT_EQ(rows[0].at("_ws.col.Info"), "WEFT_HELLO");
}

// ICRCs over IPv4: by RoCEv2's rules, and in Weft's form for sockets, which never see the IPv4
// header.
TEST_F(Dissector, IcrcsOverIpv4AreVerified) {
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

// An SRH is between the two IPv6 headers; the ICRC covers the inner one.
TEST_F(Dissector, PacketsWithASegmentRoutingHeaderAreShown) {
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
