#include "wire/frame.h"

#include <gtest/gtest.h>

#include "wire/datagram.h"
#include "wire/test_packets.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::hex;

Buffer framed(const Envelope& envelope, const FrameContent& content) {
  Buffer out(frame_size_max(content.payload.size()));
  out.resize(emit_frame(envelope, content, out));
  return out;
}

DropReason frame_error(ConstBytes bytes) {
  const auto frame = parse_frame(bytes);
  EXPECT_FALSE(frame.has_value());
  return frame ? DropReason::kStale : frame.error();
}

bool same(ConstBytes a, ConstBytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

struct V1 {
  Envelope envelope = test::golden_v1_envelope();
  Buffer header = test::golden_vectors()[0].bytes;
  Buffer payload = hex("00 01 02 03 04");
  Buffer ip = test::golden_v1_ip();
  FrameContent content() const { return {.header = header, .payload = payload}; }
};

TEST(Framing, WireSizeCountsEveryHeaderPaddingAndGap) {
  EXPECT_EQ(wire_size({.header_size = 32}), 122u);
  EXPECT_EQ(wire_size({.header_size = 36}), 126u);
  EXPECT_EQ(wire_size({.header_size = 36, .srv6 = true}), 166u);
  EXPECT_EQ(wire_size({.header_size = 32, .payload_size = 5}), 122u + 8) << "padding counts";
  // 8 + 36 bytes after the IP header, no ICRC.
  EXPECT_EQ(wire_size({.header_size = 36, .trimmed = true}), 14u + 40 + 44 + 4 + 20);
  EXPECT_EQ(pad_for(0), 0);
  EXPECT_EQ(pad_for(5), 3);
  EXPECT_EQ(pad_for(4096), 0);
}

TEST(Frame, EmitsAndParsesTheGoldenVector) {
  const V1 v1;
  Buffer expected = hex("02 00 00 00 00 02 02 00 00 00 00 01 86 dd");
  expected.insert(expected.end(), v1.ip.begin(), v1.ip.end());
  const Buffer frame = framed(v1.envelope, v1.content());
  EXPECT_EQ(frame, expected);
  EXPECT_EQ(frame.size(), frame_size({.header_size = 40, .payload_size = 5}));

  const auto parsed = parse_frame(frame);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->envelope, v1.envelope);
  EXPECT_TRUE(same(parsed->content.header, v1.header));
  EXPECT_TRUE(same(parsed->content.payload, v1.payload));
  EXPECT_TRUE(parsed->intact);
}

TEST(Frame, Srv6AddsAnOuterHeaderAndKeepsTheInnerPacket) {
  V1 v1;
  v1.envelope.usid_destination = Ipv6{0xfd00'0001'1805'582a, 0x1809'9811'0000'0000};
  const Buffer frame = framed(v1.envelope, v1.content());
  EXPECT_EQ(frame.size(), frame_size({.header_size = 40, .payload_size = 5, .srv6 = true}));
  EXPECT_TRUE(same(ConstBytes(frame).subspan(14, 40),
                   hex("61 20 12 34 00 64 29 40 | fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01"
                       "fd 00 00 01 18 05 58 2a 18 09 98 11 00 00 00 00")));
  EXPECT_TRUE(same(ConstBytes(frame).subspan(54), v1.ip))
      << "the inner packet and its ICRC are unchanged";
  const auto parsed = parse_frame(frame);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->envelope, v1.envelope);
  EXPECT_TRUE(parsed->intact);
}

// Switches write only to the outer header: they shift the uSIDs, mark CE, rewrite the DSCP and
// lower the hop limit.
TEST(Frame, CeMarkOfEitherSrv6HeaderIsReported) {
  V1 v1;
  v1.envelope.usid_destination = Ipv6{1, 2};
  Buffer frame = framed(v1.envelope, v1.content());
  frame[15] |= std::byte{0x30};
  auto parsed = parse_frame(frame);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->envelope.ecn, kEcnCe);
  EXPECT_TRUE(parsed->intact);
  // A CE mark of the inner header counts too.
  frame = framed(v1.envelope, v1.content());
  frame[55] |= std::byte{0x30};
  parsed = parse_frame(frame);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->envelope.ecn, kEcnCe);
}

TEST(Frame, SegmentRoutingHeaderIsSkipped) {
  V1 v1;
  v1.envelope.usid_destination = Ipv6{1, 2};
  Buffer frame = framed(v1.envelope, v1.content());
  const Buffer srh =
      hex("29 02 04 00 00 00 00 00 | fd 00 00 01 18 05 58 2a 18 09 98 11 00 00 00 00");
  frame.insert(frame.begin() + 54, srh.begin(), srh.end());
  frame[14 + 5] = std::byte{0x64 + 24};
  frame[14 + 6] = std::byte{43};
  const auto parsed = parse_frame(frame);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->envelope, v1.envelope);
  frame[54 + 2] = std::byte{0};
  EXPECT_EQ(frame_error(frame), DropReason::kBadHeader) << "a routing header of another type";
}

TEST(Frame, DamageIsDetectedByTheIcrc) {
  const V1 v1;
  const Buffer good = framed(v1.envelope, v1.content());
  for (std::size_t at = 14 + 48 + 12; at < good.size(); ++at) {
    Buffer bad = good;
    bad[at] ^= std::byte{0x01};
    const auto parsed = parse_frame(bad);
    ASSERT_TRUE(parsed.has_value()) << at;
    EXPECT_FALSE(parsed->intact) << at;
  }
}

TEST(Frame, TrimmedFramesHaveNoPayloadAndNoIcrc) {
  for (bool srv6 : {false, true}) {
    V1 v1;
    v1.envelope.dscp = 12;
    v1.envelope.trimmed = true;
    if (srv6) v1.envelope.usid_destination = Ipv6{1, 2};
    const FrameContent cut = {.header = ConstBytes(v1.header).first(36), .payload = v1.payload};
    const Buffer frame = framed(v1.envelope, cut);
    EXPECT_EQ(frame.size(), frame_size({.header_size = 36, .srv6 = srv6, .trimmed = true}));
    const auto parsed = parse_frame(frame);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->envelope, v1.envelope);
    EXPECT_TRUE(same(parsed->content.header, cut.header));
    EXPECT_TRUE(parsed->content.payload.empty());
    EXPECT_TRUE(parsed->intact);
  }
}

// Some switches trim a packet and rewrite its DSCP, but leave the size fields unchanged.
TEST(Frame, TrimmedFramesWithTheirOldSizeFieldsAreParsed) {
  V1 v1;
  for (std::uint8_t dscp : {std::uint8_t{12}, std::uint8_t{16}}) {
    v1.envelope.dscp = dscp;
    Buffer frame = framed(v1.envelope, v1.content());
    frame.resize(14 + 40 + kTrimmedSizeAfterIp);
    const auto parsed = parse_frame(frame);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_TRUE(parsed->envelope.trimmed);
    EXPECT_EQ(parsed->content.header.size(), 36u);
    const auto packet = parse(parsed->content.header, {.trimmed = true});
    ASSERT_TRUE(packet.has_value());
    EXPECT_EQ(packet->bth.psn, Psn(10));
  }
}

TEST(Frame, EveryShorterLengthIsTooShort) {
  V1 v1;
  for (bool srv6 : {false, true}) {
    if (srv6) v1.envelope.usid_destination = Ipv6{1, 2};
    const Buffer frame = framed(v1.envelope, v1.content());
    for (std::size_t size = 0; size < frame.size(); ++size) {
      const Buffer cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_EQ(frame_error(cut), DropReason::kTooShort) << size;
    }
  }
}

TEST(Frame, EthernetPaddingIsIgnored) {
  const V1 v1;
  Buffer frame = framed(v1.envelope, v1.content());
  frame.insert(frame.end(), 9, std::byte{0xee});
  const auto parsed = parse_frame(frame);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_TRUE(parsed->intact);
  EXPECT_TRUE(same(parsed->content.payload, v1.payload));
}

TEST(Frame, FramesThatAreNotMrcAreRefused) {
  struct Change {
    std::size_t at;
    unsigned value;
    DropReason expected;
  };
  const Change changes[] = {
      {13, 0x00, DropReason::kBadHeader},           // not IPv6 by EtherType
      {14, 0x41, DropReason::kBadHeader},           // not IPv6 by version
      {14 + 6, 6, DropReason::kBadHeader},          // TCP
      {14 + 40 + 3, 0xb8, DropReason::kBadHeader},  // another UDP port
      {14 + 40 + 5, 0x3b, DropReason::kBadHeader},  // UDP and IPv6 disagree
      {14 + 48, 0x00, DropReason::kBadOpcode},
  };
  const V1 v1;
  for (const Change& change : changes) {
    Buffer frame = framed(v1.envelope, v1.content());
    frame[change.at] = static_cast<std::byte>(change.value);
    EXPECT_EQ(frame_error(frame), change.expected) << "byte " << change.at;
  }
}

TEST(Frame, BothUdpPortsAreAccepted) {
  V1 v1;
  v1.envelope.udp_port = kUdpPortAlternate;
  const auto parsed = parse_frame(framed(v1.envelope, v1.content()));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->envelope.udp_port, 4971);
  EXPECT_TRUE(parsed->intact);
}

TEST(Frame, ParseOfEmitIsTheIdentity) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Prng prng = Prng(seed).fork("frame");
    for (Opcode opcode : test::kOpcodes) {
      Buffer payload(is_write(opcode) ? prng.below(300) : 0);
      for (std::byte& b : payload) b = static_cast<std::byte>(prng.next());
      Packet packet = test::random_packet(prng, opcode);
      packet.bth.pad = pad_for(payload.size());
      const Buffer header = test::emitted(packet);
      Envelope envelope = {.source = {prng.next(), prng.next()},
                           .destination = {prng.next(), prng.next()},
                           .dscp = static_cast<std::uint8_t>(prng.below(12)),
                           .ecn = static_cast<std::uint8_t>(prng.below(4)),
                           .hop_limit = test::draw8(prng),
                           .entropy = test::draw32(prng)};
      const bool srv6 = test::draw1(prng);
      if (srv6) envelope.usid_destination = Ipv6{prng.next(), prng.next()};
      const Buffer frame = framed(envelope, {.header = header, .payload = payload});
      ASSERT_EQ(
          frame.size(),
          frame_size({.header_size = header.size(), .payload_size = payload.size(), .srv6 = srv6}));
      const auto parsed = parse_frame(frame);
      ASSERT_TRUE(parsed.has_value()) << "seed " << seed << ": " << to_string(packet);
      ASSERT_EQ(parsed->envelope, envelope) << "seed " << seed;
      ASSERT_TRUE(parsed->intact) << "seed " << seed;
      ASSERT_TRUE(same(parsed->content.header, header)) << "seed " << seed;
      ASSERT_TRUE(same(parsed->content.payload, payload)) << "seed " << seed;
    }
  }
}

TEST(Datagram, SplitsIntoItsPartsAndRefusesShortDatagrams) {
  const V1 v1;
  const ConstBytes datagram = ConstBytes(v1.ip).subspan(48);
  const auto parts = split_datagram(datagram);
  ASSERT_TRUE(parts.has_value());
  EXPECT_TRUE(same(parts->header, v1.header));
  EXPECT_TRUE(same(parts->payload, v1.payload));
  EXPECT_EQ(parts->padding.size(), 3u);
  EXPECT_TRUE(same(parts->icrc, hex("10 be 8f 43")));
  // BTH.pad says three bytes, but only two follow the header.
  Buffer short_body(v1.header.begin(), v1.header.end());
  short_body.resize(v1.header.size() + 2 + kIcrcSize);
  EXPECT_EQ(split_datagram(short_body).error(), DropReason::kBadHeader);
  short_body.resize(v1.header.size() + kIcrcSize - 1);
  EXPECT_EQ(split_datagram(short_body).error(), DropReason::kTooShort);
  EXPECT_EQ(split_datagram(ConstBytes(v1.header).first(11)).error(), DropReason::kTooShort);
}

}  // namespace
}  // namespace weft::wire
