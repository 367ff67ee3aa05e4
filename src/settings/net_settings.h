// NetSettings: how a process uses the real network. Each setting has a name in four places, and one
// parser: a flag wins over the environment, that over the file, that over the default
// (docs/settings.md).
//
// The file is the one of --config, else $WEFT_CONFIG, else the first that exists of
// $XDG_CONFIG_HOME/weft/config.toml (~/.config/weft/config.toml) and /etc/weft.toml; settings stand
// in its table [net]. A table [device.NAME] says what is different for one device, and that there is
// it; weft0 is always there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rate.h"
#include "base/result.h"
#include "base/time.h"
#include "net/udp_world.h"
#include "os/cpus.h"
#include "os/interfaces.h"
#include "os/log.h"

namespace weft::settings {

inline constexpr const char* kFirstDevice = "weft0";
// weft0 to weft15.
inline constexpr std::uint32_t kDevicesMax = 16;

// kAuto: where it can be.
enum class SharedMemory : std::uint8_t { kAuto, kOff, kMust };

struct NetSettings {
  std::vector<std::string> planes{};      // this end's address in each
  std::vector<std::string> interfaces{};  // or what they are on; at most one of the two
  std::uint32_t mtu = 0;                  // payload of a packet; 0: the largest that fits
  std::uint32_t evs = 4, burst = 15;
  net::EvMode ev_mode = net::EvMode::kUdpPort;  // or port and label; a lab's is SRv6
  SharedMemory shared_memory = SharedMemory::kAuto;
  // Devices only: ends of `weft bench write` agree on what they are.
  net::Peers peers = net::Peers::kWeft;
  std::optional<net::IcrcCover> icrc{};  // none: as the peers want it
  std::string secret_file{};
  std::optional<Duration> spin{};        // none: net::usual_spin()
  Duration poll_gap = Duration::us(50);  // of programs that poll a device
  os::LogLevel log = os::LogLevel::kWarn;
  std::optional<Rate> rate{};
  net::Srv6Form srv6 = net::Srv6Form::kAuto;
  std::vector<std::uint32_t> cpus{};  // of the process, or the progress thread; empty: as it is

  friend bool operator==(const NetSettings&, const NetSettings&) = default;
};

// What one source says: keys of the file ("mtu") and their values as text.
using SettingWords = std::map<std::string, std::string>;

// --- pure
// Takes over what a source says. Messages name keys and values as that source writes them. Errors:
// kInvalid.
enum class SettingSource : std::uint8_t { kFlag, kEnvironment };
Result<void> apply_words(const SettingWords& words, SettingSource source, NetSettings& out);
// The same for the text of a file: what it says of all devices, then what of this one. Errors: kInvalid
// with FILE:LINE:COLUMN.
Result<void> apply_file(std::string_view toml, std::string_view file_name, NetSettings& out,
                        std::string_view device = kFirstDevice);
// The devices that a file speaks of and the first one, by number. Errors: as apply_file.
Result<std::vector<std::string>> device_names(std::string_view toml, std::string_view file_name);

// --- of this process
// What the command line said; a library has none.
struct SettingFlags {
  SettingWords words{};
  std::string config{};
};
// What is in the environment, by key.
SettingWords environment_words();
// Flags, environment, file, defaults, for one device; sets the log level. Planes of the environment are
// the first device's. Errors: kInvalid, in one line: also when there is no such device.
Result<NetSettings> load_settings(const SettingFlags& flags,
                                  const std::string& device = kFirstDevice);
// The names of all devices of this host, never none. Errors: as load_settings.
Result<std::vector<std::string>> configured_devices(const SettingFlags& flags);

// For a command that has no other settings: the log level of WEFT_LOG, or this one. Errors: kInvalid.
Result<void> set_log_level_or(os::LogLevel otherwise);

// The planes that the settings mean, by addresses or interfaces; the loopback's where neither is
// said. Errors: kInvalid, kSystem.
Result<std::vector<os::PlaneChoice>> planes_of(const NetSettings& settings);

}  // namespace weft::settings
