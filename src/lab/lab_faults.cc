#include "lab/lab_faults.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "fabric/fault_words.h"

namespace weft::lab {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;
using fabric::FaultPlace;
using fabric::ImpairmentKind;
using fabric::LinkId;

constexpr std::size_t kLossesALinkMax = 16;
constexpr std::size_t kImpairmentsMax = 64;

Error unsupported(std::string_view what) {
  return {ErrorKind::kUnsupported,
          fmt::format("lab: {} cannot be done by the kernel's network; expected link down or up, "
                      "silent or not, loss, or rate (`weft sim run` has the others)",
                      what)};
}

// Rounded, but a share above zero stays above zero.
std::uint32_t ppm_of(std::uint64_t share_of_2_32) {
  if (share_of_2_32 == 0) return 0;
  const std::uint64_t ppm = (share_of_2_32 * 1'000'000 + (1ull << 31)) >> 32;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(ppm, 1, 1'000'000));
}

std::vector<LinkId> links_of(const LabPlan& plan, const FaultEvent& event) {
  if (event.place == FaultPlace::kLink) return {event.link};
  std::vector<LinkId> links;
  for (LinkId link = 0; link < plan.topology().link_count(); ++link) {
    if (event.place == FaultPlace::kAllLinks || plan.topology().is_last_hop(link))
      links.push_back(link);
  }
  return links;
}

Result<void> slow_down(LabFaults& faults, const LabPlan& plan, const FaultEvent& event) {
  if (event.percent >= 100) {
    faults.rates.erase(event.link);
    return {};
  }
  const Rate full = plan.topology().rate(event.link);
  return faults.set_rate(plan, event.link, fabric::slowed(full, event.percent));
}

Result<void> add_loss(LabFaults& faults, const LabPlan& plan, const FaultEvent& event) {
  const auto links = links_of(plan, event);
  if (faults.losses.size() + links.size() > kLossesALinkMax * plan.topology().link_count()) {
    return Error{ErrorKind::kExhausted,
                 fmt::format("lab: more than {} losses on a link; heal some", kLossesALinkMax)};
  }
  const std::uint32_t ppm = ppm_of(event.impairment.share_of_2_32);
  for (const LinkId link : links)
    faults.losses.push_back({.id = event.id, .link = link, .ppm = ppm});
  return {};
}

Result<void> add_impairment(LabFaults& faults, const LabPlan& plan, const FaultEvent& event) {
  if (!plan.is_software()) return unsupported(fabric::word_of(event.impairment.kind));
  if (faults.impairments.size() == kImpairmentsMax) {
    return Error{ErrorKind::kExhausted,
                 fmt::format("lab: more than {} impairments; heal some", kImpairmentsMax)};
  }
  faults.impairments.push_back(event);
  faults.impairments.back().at = {};
  return {};
}

}  // namespace

Result<void> LabFaults::apply(const LabPlan& plan, const FaultEvent& event) {
  if (fabric::names_link(event) && event.link >= plan.topology().link_count()) {
    return Error{ErrorKind::kInvalid, fmt::format("lab: link {}; expected one below {}", event.link,
                                                  plan.topology().link_count())};
  }
  switch (event.action) {
    case FaultAction::kLinkDown:
      event.carrier ? cut.insert(plan.upward(event.link)) : silent.insert(event.link);
      return {};
    case FaultAction::kLinkUp:
      silent.erase(event.link);
      if (event.carrier) cut.erase(plan.upward(event.link));
      return {};
    case FaultAction::kLinkRate:
      return slow_down(*this, plan, event);
    case FaultAction::kImpair:
      return event.impairment.kind == ImpairmentKind::kLoss ? add_loss(*this, plan, event)
                                                            : add_impairment(*this, plan, event);
    case FaultAction::kHeal:
      std::erase_if(losses, [&](const Loss& loss) { return loss.id == event.id; });
      std::erase_if(impairments, [&](const FaultEvent& other) { return other.id == event.id; });
      return {};
    case FaultAction::kPause:
    case FaultAction::kResume:
      return unsupported("pausing a host");
    case FaultAction::kCrash:
      return unsupported("a host's crash");
  }
  return {};
}

Result<void> LabFaults::set_rate(const LabPlan& plan, LinkId link, Rate rate) {
  WEFT_ASSERT(link < plan.topology().link_count());
  if (rate.bits_per_second() > kLabRateMaxBps) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("lab: {} at {} Mbps; a lab holds links to at most {} Mbps",
                             plan.topology().describe(link), rate.bits_per_second() / 1'000'000,
                             kLabRateMaxBps / 1'000'000)};
  }
  rates[link] = rate;
  return {};
}

void LabFaults::heal(const LabPlan& plan, LinkId link) {
  cut.erase(plan.upward(link));
  silent.erase(link);
  rates.erase(link);
  std::erase_if(losses, [&](const Loss& loss) { return loss.link == link; });
  std::erase_if(impairments, [&](const FaultEvent& other) {
    return other.place == FaultPlace::kLink && other.link == link;
  });
}

}  // namespace weft::lab
