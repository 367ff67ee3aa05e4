// Compares Weft with MRC-Client, an independent implementation of the specification: each parses
// the packets of the other with the same fields. Needs WEFT_PEER_MRC_CLIENT, a source tree of
// github.com/anichol67/MRC-Client.
//
// MRC-Client differs in these points (docs/wire.md): SE and M are swapped in BTH byte 1; the op of
// an EETH is two bits higher, so each side reads 0 in the other's packets; its ICRC is a
// placeholder, and it checks none; it leaves padding in the payload; it does not parse SRv6.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/prng.h"
#include "packet_row.h"
#include "row.h"
#include "scratch_folder.h"
#include "wire/frame.h"
#include "wire/test_packets.h"

namespace weft::mrc_test {
namespace {

using wire::Opcode;
using wire::test::Buffer;

struct Line {
  Buffer frame;
  Row row;
};

std::string hex_of(const Buffer& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[std::to_integer<std::size_t>(b) >> 4];
    out += kDigits[std::to_integer<std::size_t>(b) & 15];
  }
  return out;
}

class MrcClient : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* tree = std::getenv("WEFT_PEER_MRC_CLIENT");
    if (tree == nullptr)
      GTEST_SKIP() << "WEFT_PEER_MRC_CLIENT is not set: MRC-Client's packets are not compared";
    tree_ = tree;
  }

  std::vector<Line> client(const std::string& words) {
    std::vector<Line> lines;
    std::stringstream out(
        folder_.run("python3 tests/wireshark/mrc_client.py '" + tree_ + "' " + words));
    for (std::string text; std::getline(out, text);) {
      const std::vector<std::string> parts = split(text, '\t');
      Line& line = lines.emplace_back();
      line.frame = wire::test::hex(parts[0]);
      for (std::size_t i = 1; i < parts.size(); ++i) {
        const std::size_t at = parts[i].find('=');
        line.row[parts[i].substr(0, at)] = parts[i].substr(at + 1);
      }
    }
    return lines;
  }

  std::string tree_;
  ScratchFolder folder_;
};

// The row that MRC-Client gives for a packet for which Weft gives `ours`.
Row across(Row ours, std::uint32_t padding) {
  ours.erase("_ws.col.Info");
  ours.erase("_ws.col.Protocol");
  std::swap(ours["mrc.se"], ours["mrc.m"]);
  if (ours.contains("mrc.eeth.op")) ours["mrc.eeth.op"] = "0";
  ours["mrc.payload.size"] = std::to_string(std::stoul(ours["mrc.payload.size"]) + padding);
  return ours;
}

TEST_F(MrcClient, PacketsOfMrcClientParseInWeft) {
  const std::vector<Line> lines = client("generate 960");
  ASSERT_EQ(lines.size(), 960u);
  std::size_t srv6 = 0;
  for (const Line& line : lines) {
    const auto frame = wire::parse_frame(line.frame);
    ASSERT_TRUE(frame.has_value()) << to_string(frame.error()) << ": " << hex_of(line.frame);
    EXPECT_FALSE(frame->intact) << "its ICRC is no longer a placeholder: compare it";
    srv6 += frame->envelope.usid_destination ? 1 : 0;
    const auto packet = wire::parse(frame->content.header);
    ASSERT_TRUE(packet.has_value()) << to_string(packet.error()) << ": " << hex_of(line.frame);
    Row ours = row_of(*packet);
    ours["mrc.payload.size"] = std::to_string(frame->content.payload.size());
    ours["mrc.ev"] = std::to_string(frame->envelope.entropy);
    Row theirs = line.row;
    theirs["mrc.variant"] = "0";  // switches may change it, so wire does not keep it
    if (theirs.contains("mrc.eeth.op")) {
      EXPECT_EQ(ours["mrc.eeth.op"], "0");
      theirs["mrc.eeth.op"] = "0";
    }
    ASSERT_EQ(across(ours, 0), theirs) << to_string(*packet);
  }
  EXPECT_GT(srv6, 500u);
  EXPECT_LT(srv6, 760u);
}

TEST_F(MrcClient, PacketsOfWeftParseInMrcClient) {
  std::string sent;
  std::vector<Row> expected;
  for (std::uint64_t seed = 0; seed < 960; ++seed) {
    Prng prng(seed);
    const Opcode opcode = wire::test::kOpcodes[seed % wire::test::kOpcodes.size()];
    wire::Packet packet = wire::test::random_packet(prng, opcode);
    const Buffer payload(wire::is_write(opcode) ? prng.below(80) : 0);
    packet.bth.pad = static_cast<std::uint8_t>(wire::pad_for(payload.size()));
    wire::Envelope envelope = wire::test::golden_v1_envelope();
    envelope.entropy = wire::test::draw32(prng);
    const Buffer header = wire::test::emitted(packet);
    Buffer frame(wire::frame_size_max(payload.size()));
    frame.resize(wire::emit_frame(envelope, {.header = header, .payload = payload}, frame));
    sent += hex_of(frame) + '\n';

    Row ours = row_of(packet);
    ours["mrc.payload.size"] = std::to_string(payload.size());
    ours["mrc.ev"] = std::to_string(envelope.entropy);
    expected.push_back(across(ours, packet.bth.pad));
  }
  const std::vector<Line> lines = client("parse " + folder_.write("frames", sent));
  ASSERT_EQ(lines.size(), expected.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(lines[i].row, expected[i]) << hex_of(lines[i].frame);
  }
}

}  // namespace
}  // namespace weft::mrc_test
