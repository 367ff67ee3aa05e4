// The state that a controller has set for one device: EV format profiles, EV profiles, CC profiles
// and the administrative state of ports, as plain values.
//
// Every profile always exists and is named by its number. Initially all profiles are in INIT and no
// port is disabled. Ports count from 1 here, as in the API. Allowed changes: ctl_profiles.h. File
// format: ctl_codec.h. Access: controller_state.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/ev_format.h"
#include "fabric/ev_profile.h"
#include "world/world.h"

namespace weft::control {

// The bounds of a device. They are part of the file format: larger bounds need a new version.
inline constexpr std::uint32_t kFormatProfilesMax = 64;
inline constexpr std::uint32_t kEvProfilesMax = 64;
inline constexpr std::uint32_t kCcProfilesMax = 64;
inline constexpr std::uint32_t kEvsPerProfileMax = 4096;
inline constexpr std::uint32_t kEvsMax = 65'536;  // of all profiles together
inline constexpr std::uint32_t kEvFieldsMax = 32;
inline constexpr std::size_t kVendorBytes = 128;

// All enumerators in this file have the API's values.
enum class ProfileState : std::uint8_t { kInit = 0, kOffline = 1, kOnline = 2 };
enum class EvState : std::uint8_t { kGood = 1, kAssumedBad = 2, kDenied = 4 };
// Bits of an event mask. Controllers can request events of these two states only.
inline constexpr std::uint32_t kEventStates = 1 | 2;

using VendorConfig = std::array<std::byte, kVendorBytes>;  // opaque: stored and returned

struct FormatProfile {
  ProfileState state = ProfileState::kInit;
  std::optional<fabric::EvFormatMode> mode{};
  std::optional<std::vector<std::uint32_t>> widths{};
  VendorConfig vendor{};
  friend bool operator==(const FormatProfile&, const FormatProfile&) = default;
};

// An EV as the API writes it. Two EVs are equal if their values and ports are. Port 0 and value 0:
// the entry is not populated.
struct CtlEv {
  fabric::EvBytes value{};
  std::uint8_t port = 0;
  bool is_populated() const { return port != 0; }
  friend bool operator==(const CtlEv&, const CtlEv&) = default;
};

struct EvEntry {
  CtlEv ev{};
  EvState state = EvState::kGood;  // set by a controller: GOOD or DENIED
  friend bool operator==(const EvEntry&, const EvEntry&) = default;
};

struct EvProfileRecord {
  ProfileState state = ProfileState::kInit;
  std::optional<fabric::EvMode> mode{};
  std::optional<std::uint32_t> format{};  // number of the format profile
  std::optional<std::uint32_t> count{};
  std::optional<std::uint32_t> min_active{};
  std::optional<std::uint32_t> event_mask{};
  std::optional<std::vector<fabric::EvField>> fields{};
  std::vector<EvEntry> evs{};  // has `count` entries if the mode is explicit or generated
  VendorConfig vendor{};
  friend bool operator==(const EvProfileRecord&, const EvProfileRecord&) = default;
};

enum class CcAlgorithm : std::uint8_t { kNone = 0, kNscc = 1 };
inline constexpr const char* kNsccName = "uet-1.0-nscc";

// NSCC's configuration in the API's units. A member that is zero is derived from rate and base RTT.
struct NsccSettings {
  bool disable_qa = false;
  std::uint32_t adjust_bytes = 0;
  std::uint32_t adjust_period_ns = 0;
  std::uint32_t base_rtt_ns = 0;
  float eta = 0, fi = 0;  // bytes
  float fi_scale = 0, gamma = 0, max_md_jump = 0;
  std::uint32_t cwnd_bytes_max = 0;
  std::uint8_t qa_gate = 0;
  std::uint32_t qa_threshold_ns = 0;
  std::uint32_t target_delay_ns = 0;
  friend bool operator==(const NsccSettings&, const NsccSettings&) = default;
};

struct CcProfile {
  ProfileState state = ProfileState::kInit;
  std::optional<CcAlgorithm> algorithm{};
  std::optional<NsccSettings> nscc{};
  VendorConfig vendor{};
  friend bool operator==(const CcProfile&, const CcProfile&) = default;
};

struct CtlModel {
  std::uint64_t generation = 0;  // the number of changes so far
  std::uint64_t seed = 0;        // for generated EVs
  std::array<FormatProfile, kFormatProfilesMax> formats{};
  std::array<EvProfileRecord, kEvProfilesMax> evs{};
  std::array<CcProfile, kCcProfilesMax> ccs{};
  std::uint32_t ports_disabled = 0;  // bit N: port N is disabled
  friend bool operator==(const CtlModel&, const CtlModel&) = default;
};

// Properties of the device that a change is checked against.
struct CtlDevice {
  std::uint32_t port_mask = 0b10;  // bit N: the device has port N, counted from 1
};

// The number of EVs that all profiles together hold.
inline std::uint32_t ev_count(const CtlModel& model) {
  std::uint32_t count = 0;
  for (const EvProfileRecord& profile : model.evs) {
    count += static_cast<std::uint32_t>(profile.evs.size());
  }
  return count;
}

}  // namespace weft::control
