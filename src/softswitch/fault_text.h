// A fault event as one line of text, and back. `weft lab fault` sends it to the software switch.
//
//   link-down link=12 carrier=0
//   link-up link=12
//   link-rate link=12 percent=25
//   impair id=3 link=12 kind=loss share=42949673
//   impair id=4 place=nic-receive kind=ev-loss share=858993459 evs=989855744,989921280
//   impair id=5 place=all-links kind=reorder share=429496730 delay_ps=50000000
//   heal id=3
//
// The first word is the kind of the event. The other words are key=value, in any order, each key
// once. `share` is in units of 2^-32. A missing key means the default of that member of FaultEvent.
// There is no time: an event takes effect when the switch gets it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "fabric/fault.h"

namespace weft::softswitch {

inline constexpr std::size_t kFaultTextMax = 4096;
inline constexpr std::size_t kFaultEvsMax = 256;

// A word in the form in which error messages show it: shortened, and printable whatever it holds.
std::string shown(std::string_view word);

std::string to_text(const fabric::FaultEvent& event);
// Accepts any text. Errors: kInvalid with the invalid word and what was expected.
Result<fabric::FaultEvent> parse_fault_event(std::string_view text);

}  // namespace weft::softswitch
