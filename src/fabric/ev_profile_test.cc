#include "fabric/ev_profile.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace weft::fabric {
namespace {

const EvFormat kStev{EvFormatMode::kStev, {16, 16}};

EvProfileSpec generated(std::uint32_t count) {
  return {.mode = EvMode::kGenerated,
          .format = kStev,
          .fields = {{.width = 16, .init_val = 0x100, .min = 1, .max = 0xf, .mask = 0xf},
                     {.width = 16, .init_val = 0x200, .min = 3, .max = 0xc, .mask = 0xf}},
          .count = count,
          .min_active = 1,
          .port_mask = 0b0000'1101};
}

std::string refusal(const EvProfileSpec& spec) {
  Prng prng(1);
  const auto made = EvProfile::make(spec, prng);
  return made ? "" : made.error().message;
}

TEST(GeneratedProfile, EvsStayInTheirRangesAndNeverRepeat) {
  for (const std::uint32_t count : {1u, 10u, 75u, 76u, 149u, 150u}) {  // of 15 * 10 possible EVs
    Prng prng(count);
    const auto profile = EvProfile::make(generated(count), prng);
    ASSERT_TRUE(profile) << profile.error().message;
    ASSERT_EQ(profile->count(), count);
    std::set<EvBytes> values;
    const std::uint8_t ports[] = {0, 2, 3};
    for (std::uint32_t i = 0; i < count; ++i) {
      const Ev ev = profile->ev(i);
      EXPECT_EQ(ev.value >> 16 & 0xfff0, 0x100u);
      EXPECT_EQ(ev.value & 0xfff0, 0x200u);
      EXPECT_GE(ev.value >> 16 & 0xf, 1u);
      EXPECT_GE(ev.value & 0xf, 3u);
      EXPECT_LE(ev.value & 0xf, 0xcu);
      EXPECT_EQ(ev.port, ports[i % 3]);
      EXPECT_TRUE(values.insert(profile->evs()[i].value).second);
    }
  }
  EXPECT_EQ(refusal(generated(151)),
            "EV profile: count 151 is more than the 150 EVs that the fields' ranges allow");
}

TEST(GeneratedProfile, TheSameSeedGivesTheSameEvs) {
  Prng one(5), two(5), other(6);
  const auto a = EvProfile::make(generated(64), one), b = EvProfile::make(generated(64), two);
  EXPECT_EQ(a->evs(), b->evs());
  EXPECT_NE(a->evs(), EvProfile::make(generated(64), other)->evs());
}

TEST(GeneratedProfile, ZeroRangeWithAMaskIsTheFullRange) {
  EvProfileSpec spec = generated(16);
  spec.fields = {{.width = 16, .init_val = 0x4000, .mask = 0x0300}, {.width = 16, .mask = 0x0011}};
  Prng prng(1);
  const auto profile = EvProfile::make(spec, prng);
  ASSERT_TRUE(profile) << profile.error().message;
  std::set<std::uint32_t> values;
  for (std::uint32_t i = 0; i < 16; ++i) values.insert(profile->ev(i).value);
  EXPECT_EQ(values.size(), 16u);
  EXPECT_EQ(*values.begin(), 0x4000'0000u);
  EXPECT_EQ(*values.rbegin(), 0x4300'0011u);
  spec.count = 17;
  EXPECT_NE(refusal(spec), "");
}

TEST(GeneratedProfile, WideRangesDoNotOverflow) {
  EvProfileSpec spec = generated(1'000);
  spec.format = {EvFormatMode::kSrv6, {32, 32, 32, 32, 32, 32, 32, 32}};
  spec.fields = free_fields(spec.format);
  Prng prng(1);
  const auto profile = EvProfile::make(spec, prng);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->expanded()[7], profile->evs()[7].value);
  EXPECT_EQ(profile->ev(7).value, 7u);  // SRv6: the index is what a peer echoes
}

TEST(GeneratedProfile, IsRefusedWhenItsFieldsAllowTooFewEvs) {
  EvProfileSpec spec = generated(1);
  spec.fields.clear();
  EXPECT_EQ(refusal(spec), "EV profile: a generated profile needs fields to generate from");
  spec.fields = {{.width = 16, .init_val = 7}};  // no masked bits: exactly one EV is possible
  EXPECT_EQ(refusal(spec), "");
  spec.count = 2;
  EXPECT_EQ(refusal(spec),
            "EV profile: count 2 is more than the 1 EVs that the fields' ranges allow");
}

TEST(AutomaticProfile, EvsAreRandomAndEquallyManyOnEveryPort) {
  for (const EvFormatMode mode : {EvFormatMode::kStev, EvFormatMode::kUdp}) {
    const EvProfileSpec spec{.mode = EvMode::kAutomatic,
                             .format = {mode, {}},
                             .count = 256,
                             .min_active = 64,
                             .port_mask = 0xff};
    Prng prng(1);
    const auto profile = EvProfile::make(spec, prng);
    ASSERT_TRUE(profile) << profile.error().message;
    std::array<int, 8> uses{};
    std::uint32_t any = 0;
    std::set<std::uint32_t> values;
    for (std::uint32_t i = 0; i < 256; ++i) {
      const Ev ev = profile->ev(i);
      ++uses[ev.port];
      any |= ev.value;
      EXPECT_TRUE(values.insert(ev.value).second);
    }
    for (const int n : uses) EXPECT_EQ(n, 32);
    EXPECT_EQ(any, mode == EvFormatMode::kStev ? 0xffff'ffffu : 0xffffu);
  }
}

TEST(AutomaticProfile, RefusesFieldsSrv6AndAnUnevenCount) {
  EvProfileSpec spec{.count = 10, .port_mask = 0x0f};
  EXPECT_EQ(refusal(spec), "EV profile: count 10 does not divide evenly over 4 ports");
  spec.count = 12;
  EXPECT_EQ(refusal(spec), "");
  spec.format.mode = EvFormatMode::kSrv6;
  EXPECT_EQ(
      refusal(spec),
      "EV profile: automatic EVs are for fabrics that hash; SRv6 needs explicit or generated ones");
  spec.format = kStev;
  EXPECT_EQ(refusal(spec), "EV profile: an automatic profile has no fields");
  spec = {.format = {EvFormatMode::kUdp, {}}, .count = kEvCountMax};
  EXPECT_EQ(refusal(spec), "");  // needs every 16-bit value once
}

TEST(ExplicitProfile, KeepsOrderAndDuplicates) {
  const ProfileEv a{ev_bytes(0xf3b0'4256), 1}, b{ev_bytes(0x0000'0001), 0};
  const EvProfileSpec spec{.mode = EvMode::kExplicit,
                           .format = kStev,
                           .count = 3,
                           .min_active = 3,
                           .port_mask = 0b11,
                           .evs = {a, b, a}};
  Prng prng(1);
  const auto profile = EvProfile::make(spec, prng);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->evs(), spec.evs);
  EXPECT_EQ(profile->ev(0), (Ev{0xf3b0'4256, 1}));
  EXPECT_EQ(profile->ev(1), (Ev{1, 0}));
  EXPECT_EQ(profile->ev(2), profile->ev(0));
  EXPECT_EQ(prng.next(), Prng(1).next());  // the profile drew no random number
}

TEST(ExplicitProfile, RefusesEvsThatContradictCountPortsOrFormat) {
  EvProfileSpec spec{.mode = EvMode::kExplicit, .format = kStev, .count = 2, .port_mask = 0b10};
  spec.evs = {{ev_bytes(1), 1}};
  EXPECT_EQ(refusal(spec), "EV profile: 1 EVs are given, count says 2");
  spec.evs.push_back({ev_bytes(2), 0});
  EXPECT_EQ(refusal(spec), "EV profile: EV 1 is on port 0, which port_mask does not allow");
  spec.evs[1].port = 9;
  EXPECT_EQ(refusal(spec), "EV profile: EV 1 is on port 9, which port_mask does not allow");
  spec.evs[1] = {ev_bytes(2), 1};
  EXPECT_EQ(refusal(spec), "");
  spec.evs[1].value[4] = std::byte{1};
  EXPECT_EQ(refusal(spec),
            "EV profile: entry 1: EV: a bit is set beyond the 32 that the profile uses");
  spec.format.widths = {};
  EXPECT_EQ(refusal(spec), "EV format: it has no fields");
  spec.format.widths = {66};
  EXPECT_EQ(refusal(spec), "EV format field 0: width 66 is not in 1..32");
}

TEST(EvProfile, RefusesCountsPortsAndModesOutOfRange) {
  EvProfileSpec spec = generated(10);
  spec.count = 0;
  EXPECT_EQ(refusal(spec), "EV profile: count 0 is not in 1..65536");
  spec.count = kEvCountMax + 1;
  EXPECT_EQ(refusal(spec), "EV profile: count 65537 is not in 1..65536");
  spec = generated(10);
  spec.min_active = 11;
  EXPECT_EQ(refusal(spec), "EV profile: min_active 11 is more than count 10");
  spec = generated(10);
  spec.port_mask = 0;
  EXPECT_EQ(refusal(spec), "EV profile: port_mask has no port");
  spec = generated(10);
  spec.evs.resize(10);
  EXPECT_EQ(refusal(spec), "EV profile: EVs are given, but only an explicit profile takes them");
  spec = generated(10);
  spec.mode = static_cast<EvMode>(3);
  EXPECT_EQ(refusal(spec), "EV profile: unknown mode 3");
}

}  // namespace
}  // namespace weft::fabric
