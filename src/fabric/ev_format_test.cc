#include "fabric/ev_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "base/prng.h"

namespace weft::fabric {
namespace {

// Bytes from hexadecimal digits. Blanks are ignored; the remaining bytes are 0.
EvBytes from_hex(const std::string& text) {
  EvBytes bytes{};
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    const unsigned digit = static_cast<unsigned>(std::stoi(std::string(1, c), nullptr, 16));
    bytes[digits / 2] |= static_cast<std::byte>(digits % 2 == 0 ? digit << 4 : digit);
    ++digits;
  }
  return bytes;
}

std::string to_hex(const EvBytes& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

EvField fixed(std::uint32_t width, std::uint32_t init_val) {
  return {.width = width, .init_val = init_val};
}
EvField ranged(std::uint32_t width, std::uint32_t init_val, std::uint32_t max, std::uint32_t mask) {
  return {.width = width, .init_val = init_val, .min = 1, .max = max, .mask = mask};
}
const EvField kFree16{.width = 16, .mask = 0xffff};
const EvFormat kStev{EvFormatMode::kStev, {16, 16}};
const EvFormat kSrv6{EvFormatMode::kSrv6, {32, 16, 16, 16, 16}};
const EvFormat kSrv6Srh{EvFormatMode::kSrv6, {32, 16, 16, 16, 16, 16, 16, 32, 16, 16}};

struct GoldenRow {
  const char* name;
  EvFormat format;
  std::vector<EvField> fields;
  const char* ev;
  const char* expanded;
};

// The worked examples of the specification's sample program, as that program prints them.
const GoldenRow kGolden[] = {
    {"STEV explicit", kStev, {kFree16, kFree16}, "f3b04256", "f3b0 4256"},
    {"STEV one field",
     {EvFormatMode::kStev, {32}},
     {{.width = 32, .mask = 0xffff'ffff}},
     "12345678",
     "12345678"},
    {"STEV fixed high byte",
     kStev,
     {ranged(16, 0x100, 0xf, 0x000f), ranged(16, 0x200, 0xf, 0x000f)},
     "a4",
     "010a 0204"},
    {"STEV split mask",
     kStev,
     {ranged(16, 0x1000, 0xff, 0x0f0f), ranged(16, 0x2000, 0xff, 0x0f0f)},
     "3312",
     "1303 2102"},
    {"STEV split mask, second value",
     kStev,
     {ranged(16, 0x1000, 0xff, 0x0f0f), ranged(16, 0x2000, 0xff, 0x0f0f)},
     "e33e",
     "1e03 230e"},
    {"SRv6 explicit",
     kSrv6,
     {fixed(32, 0xcafe'cafe), kFree16, kFree16, kFree16, kFree16},
     "43ba48d6a43de086",
     "cafecafe 43ba 48d6 a43d e086"},
    {"SRv6 subset",
     kSrv6,
     {fixed(32, 0xdead'dead), kFree16, kFree16},
     "e298f115",
     "deaddead e298 f115"},
    {"SRv6 generated narrow",
     kSrv6,
     {fixed(32, 0x4242'4242), ranged(4, 0, 0xf, 0xf), ranged(4, 0, 0xf, 0xf),
      ranged(4, 0, 0xf, 0xf), ranged(4, 0, 0xf, 0xf)},
     "78ba",
     "42424242 0007 0008 000b 000a"},
    {"SRv6 generated + fixed",
     kSrv6,
     {fixed(32, 0x1313'1313), ranged(16, 0x100, 0xf, 0xf), ranged(16, 0x200, 0xf, 0xf),
      ranged(16, 0x300, 0xf, 0xf), ranged(16, 0x400, 0xf, 0xf)},
     "9b79",
     "13131313 0109 020b 0307 0409"},
    {"SRv6+SRH explicit",
     kSrv6Srh,
     {fixed(32, 0xcafe'cafe), kFree16, kFree16, kFree16, kFree16, kFree16, kFree16,
      fixed(32, 0xdeca'fbad), kFree16, kFree16},
     "b8a7310e14c80962ae4b9dd6 587a4c16",
     "cafecafe b8a7 310e 14c8 0962 ae4b 9dd6 decafbad 587a 4c16"},
};

TEST(EvExpansion, ExpandsEveryGoldenRow) {
  for (const GoldenRow& row : kGolden) {
    const auto expansion = EvExpansion::make(row.format, row.fields);
    ASSERT_TRUE(expansion) << row.name << ": " << expansion.error().message;
    const auto expanded = expansion->expand(from_hex(row.ev));
    ASSERT_TRUE(expanded) << row.name << ": " << expanded.error().message;
    EXPECT_EQ(to_hex(*expanded), to_hex(from_hex(row.expanded))) << row.name;
  }
}

TEST(EvExpansion, AFullyMaskedFieldExpandsToTheEvItself) {
  const auto expansion =
      EvExpansion::make({EvFormatMode::kStev, {32}}, {{.width = 32, .mask = 0xffff'ffff}});
  ASSERT_TRUE(expansion);
  for (const std::uint32_t value : {0u, 1u, 0x8000'0000u, 0xffff'ffffu, 0x1234'5678u}) {
    EXPECT_EQ(*expansion->expand(ev_bytes(value)), ev_bytes(value));
  }
}

TEST(EvBytes, AreInNetworkOrder) {
  EXPECT_EQ(to_hex(ev_bytes(0x1234'5678)).substr(0, 8), "12345678");
  EXPECT_EQ(ev_first32(from_hex("12345678 9a")), 0x1234'5678u);
}

TEST(EvExpansion, MaskedBitsReplaceInitVal) {
  const auto expansion = EvExpansion::make({EvFormatMode::kUdp, {16}},
                                           {{.width = 16, .init_val = 0xffff, .mask = 0x0ff0}});
  ASSERT_TRUE(expansion);
  EXPECT_EQ(expansion->compact_bits(), 8u);
  EXPECT_EQ(to_hex(*expansion->expand(from_hex("25"))).substr(0, 4), "f25f");
}

TEST(EvExpansion, RefusesEvBitsThatNoFieldUses) {
  const auto expansion = EvExpansion::make(kGolden[2].format, kGolden[2].fields);
  ASSERT_TRUE(expansion);
  EXPECT_EQ(expansion->compact_bits(), 8u);
  for (const char* ev :
       {"a480", "a40001",
        "a4 00000000 00000000 00000000 00000000 00000000 00000000 00000000 000001"}) {
    const auto expanded = expansion->expand(from_hex(ev));
    ASSERT_FALSE(expanded) << ev;
    EXPECT_EQ(expanded.error().message, "EV: a bit is set beyond the 8 that the profile uses");
  }
}

std::string refusal(const EvFormat& format, const std::vector<EvField>& fields) {
  const auto made = EvExpansion::make(format, fields);
  return made ? "" : made.error().message;
}

TEST(EvExpansion, RefusesBadFormats) {
  EXPECT_EQ(refusal({EvFormatMode::kStev, {}}, {}), "EV format: it has no fields");
  EXPECT_EQ(refusal({EvFormatMode::kStev, {16, 0}}, {}),
            "EV format field 1: width 0 is not in 1..32");
  EXPECT_EQ(refusal({EvFormatMode::kSrv6, {33}}, {}),
            "EV format field 0: width 33 is not in 1..32");
  EXPECT_EQ(refusal({EvFormatMode::kStev, {16, 16, 1}}, {}),
            "EV format: 33 bits, but this mode carries 32");
  EXPECT_EQ(refusal({EvFormatMode::kUdp, {17}}, {}),
            "EV format: 17 bits, but this mode carries 16");
  EXPECT_EQ(refusal({EvFormatMode::kSrv6, {32, 32, 32, 32, 32, 32, 32, 32}}, {}), "");
  EXPECT_EQ(refusal({EvFormatMode::kSrv6, {32, 32, 32, 32, 32, 32, 32, 32, 1}}, {}),
            "EV format: 257 bits, but this mode carries 256");
  EXPECT_EQ(refusal({static_cast<EvFormatMode>(3), {1}}, {}), "EV format: unknown mode 3");
}

TEST(EvExpansion, RefusesBadFields) {
  EXPECT_EQ(refusal(kStev, {kFree16, kFree16}), "");
  EXPECT_EQ(refusal(kStev, {kFree16, kFree16, kFree16}),
            "EV profile: 3 fields, but the format has 2");
  EXPECT_EQ(refusal(kStev, {fixed(0, 0)}), "EV field 0: width 0 is not in 1..32");
  EXPECT_EQ(refusal(kStev, {fixed(33, 0)}), "EV field 0: width 33 is not in 1..32");
  EXPECT_EQ(refusal(kStev, {kFree16, fixed(8, 0x100)}),
            "EV field 1: init_val 256 needs more than 8 bits");
  EXPECT_EQ(refusal(kStev, {{.width = 8, .mask = 0x100}}),
            "EV field 0: mask has bits beyond width 8");
  EXPECT_EQ(refusal(kStev, {ranged(16, 0, 16, 0x0f)}),
            "EV field 0: max 16 needs more than the mask's 4 bits");
  EXPECT_EQ(refusal(kStev, {{.width = 16, .min = 0, .max = 0xffff, .mask = 0}}),
            "");  // without a mask, min and max are ignored
  // Two errors that the specification's sample program does not detect.
  EXPECT_EQ(refusal({EvFormatMode::kStev, {8, 24}}, {fixed(16, 0)}),
            "EV field 0: width 16 is more than the format's 8");
  EXPECT_EQ(refusal(kStev, {{.width = 16, .min = 5, .max = 4, .mask = 0xffff}}),
            "EV field 0: min 5 is more than max 4");
}

TEST(EvExpansion, AcceptsFieldsWithAll32BitsInUse) {
  EXPECT_EQ(refusal({EvFormatMode::kStev, {32}}, {{.width = 32,
                                                   .init_val = 0xffff'ffff,
                                                   .min = 0,
                                                   .max = 0xffff'ffff,
                                                   .mask = 0xffff'ffff}}),
            "");
}

TEST(FreeFields, TakeEveryBit) {
  const auto expansion = EvExpansion::make(kSrv6Srh, free_fields(kSrv6Srh));
  ASSERT_TRUE(expansion);
  EXPECT_EQ(expansion->compact_bits(), 192u);
  const EvBytes ev = from_hex("0123456789abcdef 0123456789abcdef fedcba9876543210");
  EXPECT_EQ(*expansion->expand(ev), ev);
}

// Compacts random field values, expands the EV, and reads the masked bits back from the wire bits.
TEST(EvExpansion, ExpandRestoresTheValuesGivenToCompact) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    Prng prng(seed);
    EvFormat format{EvFormatMode::kSrv6, {}};
    std::vector<EvField> fields;
    std::vector<std::uint32_t> values;
    for (std::uint32_t i = 0, n = 1 + prng.below(8); i < n; ++i) {
      format.widths.push_back(1 + prng.below(32));
      const std::uint32_t width = 1 + prng.below(format.widths[i]);
      const auto below = static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
      fields.push_back({.width = width,
                        .init_val = static_cast<std::uint32_t>(prng.next()) & below,
                        .mask = static_cast<std::uint32_t>(prng.next()) & below});
      const auto bits = static_cast<unsigned>(std::popcount(fields[i].mask));
      values.push_back(static_cast<std::uint32_t>(prng.next()) &
                       static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1));
    }
    const auto expansion = EvExpansion::make(format, fields);
    ASSERT_TRUE(expansion) << "seed " << seed << ": " << expansion.error().message;
    const auto expanded = expansion->expand(expansion->compact(values));
    ASSERT_TRUE(expanded) << "seed " << seed << ": " << expanded.error().message;

    std::size_t at = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::uint64_t on_wire = 0, seen = 0;
      for (std::uint32_t bit = 0; bit < format.widths[i]; ++bit, ++at) {
        on_wire =
            on_wire << 1 | (std::to_integer<unsigned>((*expanded)[at / 8]) >> (7 - at % 8) & 1);
      }
      for (int bit = 31; bit >= 0; --bit) {
        if ((fields[i].mask >> bit & 1) != 0) seen = seen << 1 | (on_wire >> bit & 1);
      }
      ASSERT_EQ(seen, values[i]) << "seed " << seed << " field " << i;
      ASSERT_EQ(on_wire & ~std::uint64_t{fields[i].mask}, fields[i].init_val & ~fields[i].mask)
          << "seed " << seed << " field " << i;
    }
  }
}

}  // namespace
}  // namespace weft::fabric
