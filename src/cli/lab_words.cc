#include "cli/lab_words.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "base/prng.h"
#include "config/units.h"

namespace weft::cli {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;
using fabric::LinkId;
using fabric::Topology;

using Words = std::span<const std::string>;

constexpr const char* kSelectorExpected =
    "`link host H [plane P]`, `link t0 A t1 B [plane P]`, `link t1 A t2 B [plane P]`, `plane P` or "
    "`nics`";
constexpr const char* kEffectExpected = "`down`, `silent`, `loss 1%` or `rate 100Mbps`";

Error wrong(std::string message) { return {ErrorKind::kInvalid, "lab: " + std::move(message)}; }

bool take_word(Words& words, const char* word) {
  if (words.empty() || words.front() != word) return false;
  words = words.subspan(1);
  return true;
}

// A kind of thing that is numbered from 0 to `count` - 1.
struct Numbered {
  const char* name;
  std::uint32_t count;
};
Result<std::uint32_t> take_number(Words& words, Numbered what) {
  if (words.empty()) return wrong(fmt::format("a number is missing behind `{}`", what.name));
  const std::string& text = words.front();
  std::uint32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value >= what.count) {
    if (what.count == 0) return wrong(fmt::format("{} {}: this fabric has none", what.name, text));
    return wrong(fmt::format("{} {}: expected 0 to {}", what.name, text, what.count - 1));
  }
  words = words.subspan(1);
  return value;
}

// The selected planes: all, or the one that the user names.
struct Planes {
  std::uint32_t first = 0, end = 0;
};
Result<Planes> take_planes(Words& words, const Topology& topology) {
  if (!take_word(words, "plane")) return Planes{0, topology.plane_count()};
  WEFT_TRY(const auto plane, take_number(words, {"plane", topology.plane_count()}));
  return Planes{plane, plane + 1};
}

class Picker {
 public:
  Picker(const Topology& topology, LinkDirection way) : topology_(topology), way_(way) {}
  void add(LinkId up) {
    if (way_ != LinkDirection::kDown) links_.push_back(up);
    if (way_ != LinkDirection::kUp) links_.push_back(topology_.reverse(up));
  }
  std::vector<LinkId> take() { return std::move(links_); }

 private:
  const Topology& topology_;
  LinkDirection way_;
  std::vector<LinkId> links_;
};

Result<std::vector<LinkId>> take_link(const Topology& topology, Words& words, LinkDirection way) {
  Picker picker(topology, way);
  if (take_word(words, "host")) {
    WEFT_TRY(const auto host, take_number(words, {"host", topology.host_count()}));
    WEFT_TRY(const auto planes, take_planes(words, topology));
    for (auto p = planes.first; p < planes.end; ++p) picker.add(topology.host_up(p, host));
    return picker.take();
  }
  const bool t0 = take_word(words, "t0");
  if (!t0 && !take_word(words, "t1")) return wrong(fmt::format("expected {}", kSelectorExpected));
  const auto tier = t0 ? fabric::Tier::kT0 : fabric::Tier::kT1;
  WEFT_TRY(const auto lower, take_number(words, {t0 ? "t0" : "t1", topology.switch_count(tier)}));
  if (!take_word(words, t0 ? "t1" : "t2"))
    return wrong(
        fmt::format("expected `{}` behind `{} {}`", t0 ? "t1" : "t2", t0 ? "t0" : "t1", lower));
  const std::uint32_t uplinks = t0 ? topology.uplinks_of_t0() : topology.uplinks_of_t1();
  WEFT_TRY(const auto uplink, take_number(words, {t0 ? "t1" : "t2", uplinks}));
  WEFT_TRY(const auto planes, take_planes(words, topology));
  for (auto p = planes.first; p < planes.end; ++p)
    picker.add(t0 ? topology.t0_up(p, lower, uplink) : topology.t1_up(p, lower, uplink));
  return picker.take();
}

FaultEvent event_on(LinkId link, FaultAction action) {
  FaultEvent event;
  event.action = action;
  event.link = link;
  // no scenario's fault has this id; a heal of the link ends the fault
  event.id = 0x8000'0000u | link;
  return event;
}

}  // namespace

Result<std::vector<LinkId>> take_links(const Topology& topology, Words& words, LinkDirection way) {
  if (take_word(words, "link")) return take_link(topology, words, way);
  if (take_word(words, "nics")) {
    if (way == LinkDirection::kUp)
      return wrong("--way up: `nics` are what hosts receive, which is down");
    Picker picker(topology, LinkDirection::kDown);
    for (std::uint32_t p = 0; p < topology.plane_count(); ++p) {
      for (fabric::HostIndex h = 0; h < topology.host_count(); ++h)
        picker.add(topology.host_up(p, h));
    }
    return picker.take();
  }
  if (take_word(words, "plane")) {
    WEFT_TRY(const auto plane, take_number(words, {"plane", topology.plane_count()}));
    Picker picker(topology, way);
    for (fabric::HostIndex h = 0; h < topology.host_count(); ++h)
      picker.add(topology.host_up(plane, h));
    return picker.take();
  }
  return wrong(fmt::format("{}: expected {}",
                           words.empty() ? "nothing is named" : "`" + words.front() + "`",
                           kSelectorExpected));
}

Result<LabEffect> effect_on(std::span<const LinkId> links, Words words, LinkDirection way) {
  LabEffect effect;
  const bool down = !words.empty() && words.front() == "down";
  if (words.size() == 1 && (down || words.front() == "silent")) {
    if (down && way != LinkDirection::kBoth)
      return wrong("--way: a link goes down both ways; `silent` and `loss` can be one way");
    for (const LinkId link : links) {
      effect.events.push_back(event_on(link, FaultAction::kLinkDown));
      effect.events.back().carrier = down;
    }
    return effect;
  }
  if (words.size() == 2 && words.front() == "loss") {
    const auto ppm = config::ppm_from(words[1]);
    if (!ppm) return wrong(fmt::format("loss: {}", ppm.error()));
    for (const LinkId link : links) {
      // A new loss replaces the previous loss of the link.
      effect.events.push_back(event_on(link, FaultAction::kHeal));
      if (*ppm == 0) continue;
      effect.events.push_back(event_on(link, FaultAction::kImpair));
      effect.events.back().impairment.share_of_2_32 = chance_from_ppm(*ppm);
    }
    return effect;
  }
  if (words.size() == 2 && words.front() == "rate") {
    const auto rate = config::rate_from(words[1]);
    if (!rate) return wrong(fmt::format("rate: {}", rate.error()));
    effect.slowed.assign(links.begin(), links.end());
    effect.rate = *rate;
    return effect;
  }
  const std::size_t wanted = words.empty()                                        ? 0
                             : down || words.front() == "silent"                  ? 1
                             : words.front() == "loss" || words.front() == "rate" ? 2
                                                                                  : 0;
  if (wanted > 0 && words.size() > wanted)
    return wrong(fmt::format("`{}`: nothing was expected behind `{}`; one fault at a time",
                             words[wanted], words[wanted - 1]));
  return wrong(fmt::format("{}: expected {}",
                           words.empty() ? "nothing is to happen" : "`" + words.front() + "`",
                           kEffectExpected));
}

}  // namespace weft::cli
