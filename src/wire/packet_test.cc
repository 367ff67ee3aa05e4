#include "wire/packet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "wire/layout.h"
#include "wire/test_packets.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::emitted;
using test::hex;

constexpr std::uint64_t kSeeds = 2000;

bool has_timestamp(const Packet& packet) {
  const Write* write = std::get_if<Write>(&packet.body);
  return write != nullptr && write->has_timestamp;
}

DropReason parse_error(ConstBytes bytes, ParseOptions options = {}) {
  const auto packet = parse(bytes, options);
  EXPECT_FALSE(packet.has_value());
  return packet ? DropReason::kStale : packet.error();
}

TEST(Packet, GoldenVectorsAreParsedAndEmitted) {
  for (const auto& golden : test::golden_vectors()) {
    EXPECT_EQ(emitted(golden.packet), golden.bytes) << golden.name;
    const auto parsed = parse(golden.bytes);
    ASSERT_TRUE(parsed.has_value()) << golden.name;
    EXPECT_EQ(*parsed, golden.packet) << golden.name << ": " << to_string(*parsed);
  }
}

TEST(Packet, SizesFollowTheLayoutTables) {
  constexpr std::size_t kWrite = bth_at::kSize + meth_at::kSize + reth_at::kSize;
  for (Opcode opcode : test::kOpcodes) {
    if (!is_write(opcode)) continue;
    const std::size_t size = kWrite + (has_immediate(opcode) ? immdt_at::kSize : 0);
    EXPECT_EQ(header_size({.opcode = opcode}), size);
    EXPECT_EQ(header_size({.opcode = opcode, .has_timestamp = true}), size + tseth_at::kSize);
  }
  EXPECT_EQ(header_size({.opcode = Opcode::kTransportAck}), bth_at::kSize + aeth_at::kSize);
  EXPECT_EQ(header_size({.opcode = Opcode::kSack}), bth_at::kSize + seth_at::kSize);
  EXPECT_EQ(header_size({.opcode = Opcode::kNack}), bth_at::kSize + neth_at::kSize);
  EXPECT_EQ(header_size({.opcode = Opcode::kProbe}), bth_at::kSize + peth_at::kSize);
  EXPECT_EQ(header_size({.opcode = Opcode::kEndpointRequest}), bth_at::kSize + erth_at::kSize);
  EXPECT_EQ(header_size({.opcode = Opcode::kEndpointResponse}), bth_at::kSize + eeth_at::kSize);
}

TEST(Packet, ParseOfEmitIsTheIdentity) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Prng prng(seed);
    for (Opcode opcode : test::kOpcodes) {
      const Packet packet = test::random_packet(prng, opcode);
      const Buffer bytes = emitted(packet);
      ASSERT_EQ(bytes.size(),
                header_size({.opcode = opcode, .has_timestamp = has_timestamp(packet)}));
      const auto parsed = parse(bytes);
      ASSERT_TRUE(parsed.has_value()) << "seed " << seed << ": " << to_string(packet);
      ASSERT_EQ(*parsed, packet) << "seed " << seed << ": " << to_string(packet);
      const auto trimmed = parse(bytes, {.trimmed = true});
      ASSERT_TRUE(trimmed.has_value());
      ASSERT_EQ(*trimmed, packet) << "seed " << seed << ": a whole header is not truncated";
    }
  }
}

// Random bytes with a valid opcode and version: reserved bits are set and must be ignored.
TEST(Packet, ParseEmitParseIsTheIdentityOnNoise) {
  std::uint64_t parsed_count = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Prng prng = Prng(seed).fork("noise");
    for (Opcode opcode : test::kOpcodes) {
      Buffer bytes(prng.below(64));
      for (std::byte& b : bytes) b = static_cast<std::byte>(prng.next());
      if (bytes.size() >= 2) {
        bytes[0] = static_cast<std::byte>(opcode);
        bytes[1] &= std::byte{0xf0};
      }
      const ParseOptions options = {.trimmed = test::draw1(prng)};
      const auto first = parse(bytes, options);
      if (!first) continue;
      ++parsed_count;
      const auto second = parse(emitted(*first), options);
      ASSERT_TRUE(second.has_value()) << "seed " << seed << ": " << to_string(*first);
      ASSERT_EQ(*second, *first) << "seed " << seed << ": " << to_string(*first);
    }
  }
  EXPECT_GT(parsed_count, kSeeds);
}

TEST(Packet, EveryShorterLengthIsTooShort) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Prng prng = Prng(seed).fork("short");
    for (Opcode opcode : test::kOpcodes) {
      const Buffer bytes = emitted(test::random_packet(prng, opcode));
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        // A copy of exactly that size, so that a sanitizer detects a read past its end.
        const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        ASSERT_EQ(parse_error(cut), DropReason::kTooShort) << "seed " << seed << " size " << size;
        if (!is_write(opcode) || size < bth_at::kSize) {
          ASSERT_EQ(parse_error(cut, {.trimmed = true}), DropReason::kTooShort);
        }
      }
    }
  }
}

TEST(Packet, TrimmedWritesParseAtEveryLengthFromTheBth) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Prng prng = Prng(seed).fork("trimmed");
    for (Opcode opcode : test::kOpcodes) {
      if (!is_write(opcode)) continue;
      const Packet packet = test::random_packet(prng, opcode);
      const Write& whole = std::get<Write>(packet.body);
      const Buffer bytes = emitted(packet);
      for (std::size_t size = bth_at::kSize; size < bytes.size(); ++size) {
        const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        const auto parsed = parse(cut, {.trimmed = true});
        ASSERT_TRUE(parsed.has_value()) << "seed " << seed << " size " << size;
        EXPECT_EQ(parsed->bth, packet.bth);
        const Write& write = std::get<Write>(parsed->body);
        EXPECT_TRUE(write.truncated);
        const bool has_meth = size >= 16;
        EXPECT_EQ(write.msn, has_meth ? whole.msn : 0);
        EXPECT_EQ(write.has_timestamp, whole.has_timestamp && size >= 20);
        EXPECT_EQ(write.sent, write.has_timestamp ? whole.sent : Timestamp{});
        const bool has_reth = size >= (whole.has_timestamp ? 36u : 32u);
        EXPECT_EQ(write.va, has_reth ? whole.va : 0);
        EXPECT_EQ(write.message_size, has_reth ? whole.message_size : 0);
        EXPECT_EQ(write.immediate, 0u);
        const auto again = parse(emitted(*parsed), {.trimmed = true});
        ASSERT_TRUE(again.has_value());
        ASSERT_EQ(*again, *parsed) << "seed " << seed << " size " << size;
      }
    }
  }
}

// Our switch keeps 44 bytes after the IP header, 36 of them after the UDP header.
TEST(Packet, AWriteTrimmedByOurSwitchKeepsItsReth) {
  const auto golden = test::golden_vectors()[0];
  const auto parsed =
      parse(ConstBytes(golden.bytes).first(kTrimmedSizeAfterIp - kUdpSize), {.trimmed = true});
  ASSERT_TRUE(parsed.has_value());
  Write expected = std::get<Write>(golden.packet.body);
  expected.immediate = 0;
  expected.truncated = true;
  EXPECT_EQ(std::get<Write>(parsed->body), expected);
}

TEST(Packet, BytesAfterTheHeaderAreIgnored) {
  for (const auto& golden : test::golden_vectors()) {
    Buffer longer = golden.bytes;
    longer.insert(longer.end(), 20, std::byte{0xff});
    const auto parsed = parse(longer);
    ASSERT_TRUE(parsed.has_value()) << golden.name;
    EXPECT_EQ(*parsed, golden.packet) << golden.name;
  }
}

TEST(Packet, OpcodesOtherThanTheTwelveAreRefused) {
  Buffer bytes(kHeaderSizeMax);
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    bytes[0] = static_cast<std::byte>(opcode);
    const bool is_ours = std::find(test::kOpcodes.begin(), test::kOpcodes.end(),
                                   static_cast<Opcode>(opcode)) != test::kOpcodes.end();
    if (is_ours) {
      EXPECT_TRUE(parse(bytes).has_value()) << opcode;
    } else {
      EXPECT_EQ(parse_error(bytes), DropReason::kBadOpcode) << opcode;
    }
  }
}

TEST(Packet, VersionsOtherThanZeroAreRefused) {
  for (const auto& golden : test::golden_vectors()) {
    for (unsigned version = 1; version < 16; ++version) {
      Buffer bytes = golden.bytes;
      bytes[1] |= static_cast<std::byte>(version);
      EXPECT_EQ(parse_error(bytes), DropReason::kBadVersion) << golden.name;
    }
  }
}

TEST(Packet, ReservedBitsAreIgnoredAndEmittedAsZero) {
  struct Reserved {
    std::size_t vector;  // index of the golden vector: V1 is 0
    std::size_t at;
    unsigned bits;
  };
  const Reserved all[] = {
      {0, 4, 0xff},  {0, 8, 0x4f},  {0, 18, 0x7f}, {0, 19, 0xfe},  // BTH, TSETH
      {1, 12, 0xff}, {1, 13, 0x9d}, {1, 24, 0xff}, {1, 42, 0x80},  // SETH
      {3, 12, 0xff}, {3, 24, 0xff}, {3, 29, 0xff},                 // NETH
      {4, 14, 0xff}, {4, 18, 0xff}, {4, 26, 0x7f},                 // PETH
      {5, 13, 0xfc}, {5, 14, 0xff}, {5, 20, 0xff},                 // ERTH
      {6, 13, 0xf3}, {6, 15, 0xff}, {6, 42, 0xff}, {6, 47, 0xff},  // EETH
  };
  const auto vectors = test::golden_vectors();
  for (const Reserved& reserved : all) {
    const auto& golden = vectors[reserved.vector];
    Buffer bytes = golden.bytes;
    bytes[reserved.at] |= static_cast<std::byte>(reserved.bits);
    ASSERT_NE(bytes, golden.bytes) << golden.name << " byte " << reserved.at;
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed.has_value()) << golden.name << " byte " << reserved.at;
    EXPECT_EQ(*parsed, golden.packet) << golden.name << " byte " << reserved.at;
    EXPECT_EQ(emitted(*parsed), golden.bytes) << golden.name << " byte " << reserved.at;
  }
}

// The sources disagree about the position of the op: one of them puts it in bits 5:4. Such a
// response parses: its op reads as a different one, its request id and timestamp are right.
TEST(Packet, EndpointResponseWithTheOpInOtherBitsIsParsed) {
  Buffer bytes = test::golden_vectors()[6].bytes;
  bytes[13] = std::byte{0x10};
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->bth.psn, Psn(0x42));
  const EndpointResponse expected = {.op = EndpointOp::kPortStatusUpdate, .echo = {0x1300}};
  EXPECT_EQ(std::get<EndpointResponse>(parsed->body), expected);
}

TEST(Packet, EndpointRequestWithAnUnknownOpIsRefused) {
  Buffer bytes = test::golden_vectors()[5].bytes;
  bytes[13] = std::byte{2};
  EXPECT_EQ(parse_error(bytes), DropReason::kBadHeader);
}

TEST(Packet, OnlyAcksAndTheThreeNakSyndromesParse) {
  Buffer bytes = test::golden_vectors()[8].bytes;
  for (unsigned syndrome = 0; syndrome < 256; ++syndrome) {
    bytes[12] = static_cast<std::byte>(syndrome);
    const bool is_ack = syndrome < 0x20;
    const bool is_nak = syndrome >= 0x61 && syndrome <= 0x63;
    if (!is_ack && !is_nak) {
      EXPECT_EQ(parse_error(bytes), DropReason::kBadHeader) << syndrome;
      continue;
    }
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed.has_value()) << syndrome;
    EXPECT_EQ(std::get<TransportAck>(parsed->body).syndrome,
              is_ack ? AckSyndrome::kAck : static_cast<AckSyndrome>(syndrome));
  }
}

TEST(Packet, ReservedMarkParsesAsNoneAndUnknownNackReasonIsKept) {
  Buffer sack = test::golden_vectors()[1].bytes;
  sack[13] = std::byte{0x60};
  EXPECT_EQ(std::get<Sack>(parse(sack)->body).mark, PathMark::kNone);
  Buffer nack = test::golden_vectors()[3].bytes;
  nack[14] = std::byte{0x55};
  EXPECT_EQ(std::get<Nack>(parse(nack)->body).reason, static_cast<NackReason>(0x55));
}

TEST(Packet, CountersTooLargeForTheirFieldsSaturateOrWrap) {
  const Bth bth = {.opcode = Opcode::kSack};
  const Sack sack = {.ooo_count = 0x8001, .rcvd_bytes_256 = 0x100'0005};
  const Sack parsed = std::get<Sack>(parse(emitted({bth, sack}))->body);
  EXPECT_EQ(parsed.ooo_count, 0x7fff) << "saturates";
  EXPECT_EQ(parsed.rcvd_bytes_256, 5u) << "wraps";
  EXPECT_FALSE(parsed.restore_cwnd);
  const Bth ack_bth = {.opcode = Opcode::kTransportAck};
  const TransportAck ack = {.msn = 0x100'0007};
  EXPECT_EQ(std::get<TransportAck>(parse(emitted({ack_bth, ack}))->body).msn, 7u) << "wraps";
}

TEST(Packet, PsnsAroundTheWrapParseUnchanged) {
  for (std::int32_t step = -3; step <= 3; ++step) {
    const Psn psn = Psn(0) + step;
    const Packet write = {{.opcode = Opcode::kWriteOnly, .psn = psn}, Write{}};
    EXPECT_EQ(parse(emitted(write))->bth.psn, psn);
    const Packet sack = {{.opcode = Opcode::kSack, .psn = psn},
                         Sack{.trigger_offset = -5, .cack = psn, .bitmap_offset = -2}};
    const auto parsed = parse(emitted(sack));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, sack);
    const Sack& body = std::get<Sack>(parsed->body);
    EXPECT_EQ((body.cack + body.bitmap_offset).since(psn), -2);
    const Packet nack = {{.opcode = Opcode::kNack, .psn = psn}, Nack{.psn = psn}};
    EXPECT_EQ(std::get<Nack>(parse(emitted(nack))->body).psn, psn);
  }
}

TEST(PacketDeathTest, EmitAssertsOnInvalidPackets) {
  std::array<std::byte, kHeaderSizeMax> out;
  EXPECT_DEATH(emit(Bth{.opcode = Opcode::kSack}, Write{}, out), "is_write");
  EXPECT_DEATH(emit(Bth{.opcode = Opcode::kWriteOnly}, Sack{}, out), "kSack");
  EXPECT_DEATH(emit(Bth{.pad = 4}, Write{}, out), "pad");
  EXPECT_DEATH(emit(Bth{.dest_qpn = kQpnMask + 1}, Write{}, out), "dest_qpn");
  EXPECT_DEATH(emit(Bth{}, Write{}, Bytes(out).first(47)), "kHeaderSizeMax");
}

TEST(DropReason, EveryReasonHasItsOwnName) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kDropReasonCount; ++i) {
    names.push_back(weft::to_string(static_cast<DropReason>(i)));
  }
  EXPECT_EQ(names.front(), "too_short");
  EXPECT_EQ(names.back(), "port_disabled");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_EQ(weft::to_string(static_cast<DropReason>(kDropReasonCount)), "unknown");
}

}  // namespace
}  // namespace weft::wire
