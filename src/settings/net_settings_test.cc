#include "settings/net_settings.h"

#include <gtest/gtest.h>

namespace weft::settings {
namespace {

// load_settings() with its sources as arguments, in the same order.
Result<NetSettings> settle(std::string_view file, const SettingWords& environment,
                           const SettingWords& flags) {
  NetSettings out;
  WEFT_CHECK(apply_file(file, "weft.toml", out));
  WEFT_CHECK(apply_words(environment, SettingSource::kEnvironment, out));
  WEFT_CHECK(apply_words(flags, SettingSource::kFlag, out));
  return out;
}

std::string wrong(std::string_view file, const SettingWords& environment = {},
                  const SettingWords& flags = {}) {
  const auto out = settle(file, environment, flags);
  return out ? "nothing is wrong" : out.error().message;
}

TEST(NetSettings, AFlagWinsOverEnvironmentOverFileOverDefault) {
  const char* const file = "[net]\nmtu = 2048\n";
  EXPECT_EQ(settle("", {}, {})->mtu, 0u);
  EXPECT_EQ(settle(file, {}, {})->mtu, 2048u);
  EXPECT_EQ(settle(file, {{"mtu", "auto"}}, {})->mtu, 0u);
  EXPECT_EQ(settle(file, {{"mtu", "1024"}}, {})->mtu, 1024u);
  EXPECT_EQ(settle(file, {{"mtu", "1024"}}, {{"mtu", "4096"}})->mtu, 4096u);
}

TEST(NetSettings, EverySettingCanBeGivenInTheFile) {
  const auto out = settle(
      "[net]\nplanes = [\"10.0.1.7\", \"10.0.2.7\"]\nmtu = 1024\nevs = 8\nev_mode = "
      "\"stev\"\nburst = 1\n"
      "shared_memory = false\npeers = \"mrc\"\nicrc = \"full\"\nsecret_file = \"/a/b\"\nspin = "
      "\"0us\"\nlog = \"debug\"\n"
      "rate = \"2Gbps\"\nsrv6 = \"mrc\"\ncpus = \"0-1,3\"\n",
      {}, {});
  ASSERT_TRUE(out) << out.error().message;
  const NetSettings expected{.planes = {"10.0.1.7", "10.0.2.7"},
                             .mtu = 1024,
                             .evs = 8,
                             .burst = 1,
                             .ev_carrier = fabric::EvCarrier::kPortAndLabel,
                             .shared_memory = SharedMemory::kOff,
                             .peers = wire::PeerKind::kNic,
                             .icrc = wire::IcrcCover::kFull,
                             .secret_file = "/a/b",
                             .spin = Duration(),
                             .log = os::LogLevel::kDebug,
                             .rate = Rate::gbps(2),
                             .srv6 = fabric::Srv6Form::kMrc,
                             .cpus = {0, 1, 3}};
  EXPECT_EQ(*out, expected);
  // The environment and flags can reverse settings of the file.
  const auto back = settle("[net]\nrate = \"2Gbps\"\nshared_memory = \"must\"\n",
                           {{"shared_memory", "1"}}, {{"rate", "none"}});
  EXPECT_EQ(*back, NetSettings{});
}

constexpr const char* kTwoDevices = R"([device.weft2]
interfaces = "eth2,eth3"
[net]
mtu = 2048
evs = 8
planes = "10.0.1.7"
[device.weft10]
planes = "10.0.9.7"
mtu = 1024
[device.weft0]
evs = 2
)";

TEST(NetSettings, SettingsOfOneDeviceWinOverSettingsOfAll) {
  const auto of = [](std::string_view device) {
    NetSettings out;
    EXPECT_TRUE(apply_file(kTwoDevices, "weft.toml", out, device));
    return out;
  };
  EXPECT_EQ(of("weft0"), (NetSettings{.planes = {"10.0.1.7"}, .mtu = 2048, .evs = 2}));
  EXPECT_EQ(of("weft2"), (NetSettings{.interfaces = {"eth2", "eth3"}, .mtu = 2048, .evs = 8}));
  EXPECT_EQ(of("weft10"), (NetSettings{.planes = {"10.0.9.7"}, .mtu = 1024, .evs = 8}));
  const std::vector<std::string> names = {"weft0", "weft2", "weft10"};
  EXPECT_EQ(*device_names(kTwoDevices, "weft.toml"), names);
  EXPECT_EQ(*device_names("", "weft.toml"), std::vector<std::string>{"weft0"});
}

TEST(NetSettings, WrongDeviceNamesAndDevicesWithoutPlanesAreRefused) {
  EXPECT_EQ(wrong("[device.weft1]\nmtu = 1024\n"),
            "weft.toml:1:9: weft1 has no planes of its own; expected planes or interfaces in "
            "[device.weft1]");
  for (const char* const name : {"eth0", "weft", "weft16", "weft01", "weft1x"}) {
    const std::string file = "[device." + std::string(name) + "]\nplanes = \"10.0.1.7\"\n";
    EXPECT_NE(wrong(file).find("expected weft0 to weft15"), std::string::npos) << wrong(file);
  }
  // Mistakes are reported in tables of other devices too.
  EXPECT_EQ(wrong("[device.weft1]\nplanes = \"10.0.1.7\"\nmtu = 5\n"),
            "weft.toml:3:7: mtu = 5: expected 1024, 2048, 4096 or auto");
}

TEST(NetSettings, PlanesAndInterfacesReplaceEachOther) {
  const auto out = settle("[net]\nplanes = \"10.0.1.7\"\n", {{"interfaces", "eth0,eth1"}}, {});
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->planes.empty());
  EXPECT_EQ(out->interfaces, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(settle("", {{"interfaces", "eth0"}}, {{"planes", "10.0.1.7"}})->interfaces.size(), 0u);
  EXPECT_EQ(wrong("", {}, {{"planes", "10.0.1.7"}, {"interfaces", "eth0"}}),
            "--planes and --ifname exclude each other; leave one out");
  EXPECT_EQ(wrong("[net]\nplanes = \"10.0.1.7\"\ninterfaces = \"eth0\"\n"),
            "weft.toml:3:1: planes and interfaces exclude each other; leave one out");
}

TEST(NetSettings, MistakesNameTheirPlace) {
  EXPECT_EQ(wrong("[net]\n\nmtu = 1500\n"),
            "weft.toml:3:7: mtu = 1500: expected 1024, 2048, 4096 or auto");
  EXPECT_EQ(wrong("[net]\nmut = 1024\n"), "weft.toml:2:1: mut is not a setting; did you mean mtu?");
  EXPECT_EQ(wrong("[nett]\n"), "weft.toml:1:2: nett is not known; expected [net] or [device.NAME]");
  EXPECT_EQ(wrong("mtu = 1024\n"),
            "weft.toml:1:1: mtu stands in no table; expected a line [net] above it");
  EXPECT_EQ(wrong("[net]\nplanes = [1, 2]\n"),
            "weft.toml:2:10: planes: expected 1 to 8 addresses, as 10.0.1.7,10.0.2.7 or fd00:1::7");
  EXPECT_EQ(wrong("[net\n").substr(0, 13), "weft.toml:1:5");
  EXPECT_EQ(wrong("", {{"log", "loud"}}), "WEFT_LOG=loud: expected error, warn, info or debug");
  EXPECT_EQ(wrong("", {}, {{"rate", "fast"}}),
            "--rate fast: expected a rate from 1Mbps to 100Tbps, as 500Mbps or 2Gbps, or none");
}

TEST(NetSettings, WrongValuesAreRefused) {
  for (const auto& [key, text] :
       std::vector<std::pair<std::string, std::string>>{{"planes", "300.1.1.1"},
                                                        {"planes", "10.0.1.7,"},
                                                        {"planes", ",10.0.1.7"},
                                                        {"planes",
                                                         "1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,"
                                                         "1.1.1.5,1.1.1.6,1.1.1.7,1.1.1.8,"
                                                         "1.1.1.9"},
                                                        {"interfaces", "^"},
                                                        {"mtu", "5"},
                                                        {"evs", "0"},
                                                        {"evs", "4097"},
                                                        {"burst", "61"},
                                                        {"burst", "-1"},
                                                        {"shared_memory", "maybe"},
                                                        {"peers", "nics"},
                                                        {"icrc", "none"},
                                                        {"secret_file", ""},
                                                        {"spin", "soon"},
                                                        {"rate", "0Gbps"},
                                                        {"rate", "10"}}) {
    EXPECT_NE(wrong("", {{key, text}}), "nothing is wrong") << key << " " << text;
  }
}

}  // namespace
}  // namespace weft::settings
