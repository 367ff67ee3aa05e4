// NetSettings: how a process uses the real network. Each setting has a name in four places and one
// parser. A flag wins over the environment, the environment over the file, the file over the
// default (docs/settings.md).
//
// The file is that of --config; otherwise $WEFT_CONFIG; otherwise the first existing file of
// $XDG_CONFIG_HOME/weft/config.toml (~/.config/weft/config.toml) and /etc/weft.toml. The table
// [net] of the file has the settings of all devices. A table [device.NAME] adds a device and has
// the settings that differ for this device; weft0 always exists.
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
#include "fabric/ev_carrier.h"
#include "os/cpus.h"
#include "os/interfaces.h"
#include "os/log.h"
#include "wire/icrc.h"
#include "wire/peer_kind.h"

namespace weft::settings {

inline constexpr const char* kFirstDevice = "weft0";
// Devices are named weft0 to weft15.
inline constexpr std::uint32_t kDevicesMax = 16;

// kAuto: shared memory is used if the system and the peer allow it. kMust: otherwise it is an
// error.
enum class SharedMemory : std::uint8_t { kAuto, kOff, kMust };

struct NetSettings {
  std::vector<std::string> planes{};      // this process's address in each plane
  std::vector<std::string> interfaces{};  // or the interfaces of the planes; not both
  std::uint32_t mtu = 0;                  // payload of a packet; 0: the largest that fits
  std::uint32_t evs = 4, burst = 15;
  fabric::EvCarrier ev_carrier =
      fabric::EvCarrier::kUdpPort;  // kPortAndLabel for STEVs; a lab uses SRv6
  SharedMemory shared_memory = SharedMemory::kAuto;
  // For devices only: the two ends of `weft bench write` negotiate the kind of peers.
  wire::PeerKind peers = wire::PeerKind::kSoftware;
  std::optional<wire::IcrcCover> icrc{};  // absent: follows from `peers`
  std::string secret_file{};
  std::optional<Duration> spin{};        // absent: os::usual_spin()
  Duration poll_gap = Duration::us(50);  // the device's thread runs after this time without a poll
  os::LogLevel log = os::LogLevel::kWarn;
  std::optional<Rate> rate{};
  fabric::Srv6Form srv6 = fabric::Srv6Form::kAuto;
  std::vector<std::uint32_t> cpus{};  // of the process or the device's thread; empty: any

  friend bool operator==(const NetSettings&, const NetSettings&) = default;
};

// The settings of one source: keys as in the file ("mtu"), and values as text.
using SettingWords = std::map<std::string, std::string>;

// --- pure functions
// Applies the settings of one source. Messages name keys and values in the form of that source.
// Errors: kInvalid.
enum class SettingSource : std::uint8_t { kFlag, kEnvironment };
Result<void> apply_words(const SettingWords& words, SettingSource source, NetSettings& out);
// Applies the settings in the text of a file: first those of all devices, then those of `device`.
// Errors: kInvalid with FILE:LINE:COLUMN.
Result<void> apply_file(std::string_view toml, std::string_view file_name, NetSettings& out,
                        std::string_view device = kFirstDevice);
// The names of the first device and of the devices in the file, sorted by number. Errors: as
// apply_file().
Result<std::vector<std::string>> device_names(std::string_view toml, std::string_view file_name);

// --- the settings of this process
// Settings from the command line; lib_mrc.so has none.
struct SettingFlags {
  SettingWords words{};
  std::string config{};
};
// The settings in the environment, by key.
SettingWords environment_words();
// Combines flags, environment, file and defaults for one device, and sets the log level. Planes in
// the environment are those of the first device. Errors: kInvalid, in one line; also if there is no
// such device.
Result<NetSettings> load_settings(const SettingFlags& flags,
                                  const std::string& device = kFirstDevice);
// The names of all devices of this host, at least one. Errors: as load_settings().
Result<std::vector<std::string>> configured_devices(const SettingFlags& flags);

// For a command without other settings: sets the log level to that of WEFT_LOG, or to `otherwise`
// if it is unset. Errors: kInvalid.
Result<void> set_log_level_or(os::LogLevel otherwise);

// The planes that the settings name by addresses or interfaces; planes of the loopback if neither
// is set. Errors: kInvalid, kSystem.
Result<std::vector<os::PlaneChoice>> planes_of(const NetSettings& settings);

}  // namespace weft::settings
