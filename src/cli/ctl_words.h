// Conversions between values and text, both ways: EVs, states, modes and fields. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/ctl_model.h"
#include "scenario/names.h"

namespace weft::cli {

using config::Name;

// The largest number of a profile, the same for each kind of profile.
inline constexpr std::uint32_t kProfileIdMax = control::kEvProfilesMax - 1;
static_assert(control::kFormatProfilesMax == control::kEvProfilesMax);
static_assert(control::kCcProfilesMax == control::kEvProfilesMax);

inline constexpr Name<control::ProfileState> kProfileStates[] = {
    {"init", control::ProfileState::kInit},
    {"offline", control::ProfileState::kOffline},
    {"online", control::ProfileState::kOnline}};
inline constexpr Name<fabric::EvFormatMode> kFormatModes[] = {{"stev", fabric::EvFormatMode::kStev},
                                                              {"srv6", fabric::EvFormatMode::kSrv6},
                                                              {"udp", fabric::EvFormatMode::kUdp}};
inline constexpr Name<fabric::EvMode> kEvModes[] = {{"auto", fabric::EvMode::kAutomatic},
                                                    {"explicit", fabric::EvMode::kExplicit},
                                                    {"generated", fabric::EvMode::kGenerated}};
inline constexpr Name<control::EvState> kEvStates[] = {
    {"good", control::EvState::kGood},
    {"assumed-bad", control::EvState::kAssumedBad},
    {"denied", control::EvState::kDenied}};
inline constexpr Name<control::CcAlgorithm> kAlgorithms[] = {
    {control::kNsccName, control::CcAlgorithm::kNscc}, {"none", control::CcAlgorithm::kNone}};

// Reads text such as "f3b04256@1": the EV's bytes in hexadecimal, first byte first, with optional
// ':' between bytes; after '@' the port. Errors: kInvalid.
Result<control::CtlEv> ev_from(std::string_view text);
// The inverse of ev_from(); "-" for an entry that is not populated.
std::string text_of(const control::CtlEv& ev);

// Reads text such as "16:0x100:1:15:0xf": width, init, min, max, mask. Errors: kInvalid.
Result<fabric::EvField> field_from(std::string_view text);
std::string text_of(const fabric::EvField& field);

// Reads text such as "16,16". Errors: kInvalid.
Result<std::vector<std::uint32_t>> widths_from(std::string_view text);

// Reads text such as "good,assumed-bad" or "none". Errors: kInvalid.
Result<std::uint32_t> event_mask_from(std::string_view text);
std::string event_mask_text(std::uint32_t mask);

// Sets one NSCC parameter from text such as "gamma=0.8". Errors: kInvalid; the message lists the
// keys.
Result<void> set_nscc(std::string_view word, control::NsccSettings& out);

// Finds the value with this name. Errors: kInvalid; the message lists the names.
template <typename E, std::size_t N>
Result<E> named(std::string_view what, std::string_view text, const Name<E> (&names)[N]) {
  if (const auto found = config::value_named(names, text)) return *found;
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + std::string(name.name);
  return Error{ErrorKind::kInvalid,
               std::string(what) + " " + std::string(text) + ": expected one of " + list};
}

// Values as JSON objects. `show --json` prints the JSON, `show` prints it as lines of text.
nlohmann::json to_json(const control::FormatProfile& profile);
nlohmann::json to_json(const control::EvProfileRecord& profile);
nlohmann::json to_json(const control::CcProfile& profile);

}  // namespace weft::cli
