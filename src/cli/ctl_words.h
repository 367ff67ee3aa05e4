// The textual forms of EVs, states, modes and fields, in both directions. Pure.
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

// Every kind of profile has the same number of them.
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

// "f3b04256@1": hexadecimal bytes, first byte first, optionally separated by ':', and the port.
// Errors: kInvalid.
Result<control::CtlEv> ev_from(std::string_view text);
// The inverse of ev_from(); "-" for an entry that is not populated.
std::string text_of(const control::CtlEv& ev);

// "16:0x100:1:15:0xf": width, init, min, max, mask. Errors: kInvalid.
Result<fabric::EvField> field_from(std::string_view text);
std::string text_of(const fabric::EvField& field);

// "16,16". Errors: kInvalid.
Result<std::vector<std::uint32_t>> widths_from(std::string_view text);

// "good,assumed-bad", "none". Errors: kInvalid.
Result<std::uint32_t> event_mask_from(std::string_view text);
std::string event_mask_text(std::uint32_t mask);

// Sets a parameter of NSCC from "gamma=0.8". Errors: kInvalid, with the list of keys.
Result<void> set_nscc(std::string_view word, control::NsccSettings& out);

// Finds a name in a list. Errors: kInvalid, with the names.
template <typename E, std::size_t N>
Result<E> named(std::string_view what, std::string_view text, const Name<E> (&names)[N]) {
  if (const auto found = config::value_named(names, text)) return *found;
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + std::string(name.name);
  return Error{ErrorKind::kInvalid,
               std::string(what) + " " + std::string(text) + ": expected one of " + list};
}

// JSON objects; `show --json` prints them and `show` prints them as lines.
nlohmann::json to_json(const control::FormatProfile& profile);
nlohmann::json to_json(const control::EvProfileRecord& profile);
nlohmann::json to_json(const control::CcProfile& profile);

}  // namespace weft::cli
