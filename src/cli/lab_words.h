// The textual forms of the links and faults of a lab. Numbers count from 0, as in scenario files:
//
//   SELECTOR  link host H [plane P]       a host's link, in all planes without `plane`
//             link t0 A t1 B [plane P]    a T0 and its uplink B
//             link t1 A t2 B [plane P]    a T1 and its uplink B
//             plane P                     every host's link in the plane
//             nics                        what hosts receive, in all planes
//   EFFECT    down | silent | loss SHARE | rate RATE
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rate.h"
#include "base/result.h"
#include "fabric/fault.h"
#include "fabric/topology.h"

namespace weft::cli {

enum class LinkDirection : std::uint8_t { kBoth, kUp, kDown };  // kUp: away from the hosts

// Removes a selector from the front of `words` and returns its links. Errors: kInvalid; the message
// says what was expected.
Result<std::vector<fabric::LinkId>> take_links(const fabric::Topology& topology,
                                               std::span<const std::string>& words,
                                               LinkDirection way);

struct LabEffect {
  std::vector<fabric::FaultEvent> events;  // either these events are set,
  std::vector<fabric::LinkId> slowed;      // or `rate` for these links
  Rate rate{};
};
// The effect on these links that `words` describes. REQUIRES that `words` has the effect and
// nothing else.
Result<LabEffect> effect_on(std::span<const fabric::LinkId> links,
                            std::span<const std::string> words, LinkDirection way);

}  // namespace weft::cli
