// Draws random faults from a seed.
#include <algorithm>

#include "scenario/faults.h"

namespace weft::scenario {
namespace {

using fabric::Topology;

// Draws the parameters of one fault, depending on its kind, within the limits that parse() checks.
class Drawer {
 public:
  Drawer(const Topology& topology, const TransportSpec& transport, Prng prng)
      : topology_(topology), ev_count_(transport.evs + transport.backup_evs), prng_(prng) {}

  Duration between(Duration min, Duration max) {
    if (max <= min) return min;
    // Only whole nanoseconds, so that the fault can be written to a scenario file.
    const auto steps =
        static_cast<std::uint32_t>(std::min<std::int64_t>((max - min).ns(), 0xffff'fffe));
    return min + Duration::ns(prng_.below(steps + 1));
  }
  std::uint32_t between(std::uint32_t min, std::uint32_t max) {
    return min + prng_.below(max - min + 1);
  }
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[prng_.below(static_cast<std::uint32_t>(values.size()))];
  }

  void fill(FaultSpec& fault) {
    fault.plane = prng_.below(topology_.plane_count());
    fault.host = prng_.below(topology_.host_count());
    switch (fault.kind) {
      case FaultKind::kLoss:
      case FaultKind::kBurstLoss:
      case FaultKind::kReorder:
      case FaultKind::kDuplicate:
      case FaultKind::kCorrupt:
        fault.where = one_of(wheres(true));
        fault.share_ppm = between(1'000, 200'000);
        if (fault.kind == FaultKind::kBurstLoss) fault.burst = between(2, 32);
        if (fault.kind == FaultKind::kReorder)
          fault.delay = between(Duration::ns(100), Duration::us(20));
        return place(fault);
      case FaultKind::kLinkDown:
        fault.where = one_of(wheres(false));
        fault.silent = fault.where == LinkWhere::kHostLink && prng_.below(2) == 0;
        return place(fault);
      case FaultKind::kLinkFlap:
        fault.where = one_of(wheres(false));
        fault.period = between(Duration::us(10), Duration::us(200));
        return place(fault);
      case FaultKind::kLinkSlow:
        fault.where = one_of(wheres(false));
        fault.rate_percent = between(10, 90);
        return place(fault);
      case FaultKind::kPlaneDown:
        fault.silent = prng_.below(2) == 0;
        return;
      case FaultKind::kSwitchDown:
        fault.tier = one_of(tiers());
        fault.switch_index = prng_.below(topology_.switch_count(fault.tier));
        return;
      case FaultKind::kEvLoss:
        fault.share_ppm = between(50'000, 1'000'000);
        for (std::uint32_t i = between(1, 4); i > 0; --i)
          fault.evs.push_back(prng_.below(ev_count_));
        return;
      case FaultKind::kControlLoss:
        fault.control =
            prng_.below(2) == 0 ? ControlKind::kFirstTransportAck : ControlKind::kFirstNak;
        return;
      case FaultKind::kHostPause:
      case FaultKind::kHostCrash:
        return;
    }
  }

 private:
  std::vector<LinkWhere> wheres(bool anywhere) const {
    std::vector<LinkWhere> wheres;
    if (anywhere) wheres = {LinkWhere::kNicReceive, LinkWhere::kAllLinks};
    wheres.push_back(LinkWhere::kHostLink);
    if (topology_.uplinks_of_t0() > 0) wheres.push_back(LinkWhere::kT0T1);
    if (topology_.uplinks_of_t1() > 0) wheres.push_back(LinkWhere::kT1T2);
    return wheres;
  }
  std::vector<fabric::Tier> tiers() const {
    std::vector<fabric::Tier> tiers;
    for (const auto tier : {fabric::Tier::kT0, fabric::Tier::kT1, fabric::Tier::kT2}) {
      if (topology_.switch_count(tier) > 0) tiers.push_back(tier);
    }
    return tiers;
  }
  void place(FaultSpec& fault) {
    if (fault.where == LinkWhere::kT0T1) {
      fault.t0 = prng_.below(topology_.switch_count(fabric::Tier::kT0));
      fault.t1 = prng_.below(topology_.uplinks_of_t0());
    } else if (fault.where == LinkWhere::kT1T2) {
      fault.t1 = prng_.below(topology_.switch_count(fabric::Tier::kT1));
      fault.t2 = prng_.below(topology_.uplinks_of_t1());
    }
    if (fault.where < LinkWhere::kHostLink) return;
    fault.direction = one_of<Direction>({Direction::kBoth, Direction::kUp, Direction::kDown});
  }

  const Topology& topology_;
  std::uint32_t ev_count_;
  Prng prng_;
};

}  // namespace

std::vector<FaultSpec> draw_faults(const RandomFaultSpec& spec, const Topology& topology,
                                   const TransportSpec& transport, Prng prng) {
  std::vector<FaultSpec> faults;
  if (spec.count_max == 0 || spec.kinds.empty()) return faults;
  Drawer draw(topology, transport, prng);
  bool crashed = false;
  for (std::uint32_t left = draw.between(1u, spec.count_max); left > 0; --left) {
    FaultSpec fault;
    fault.kind = draw.one_of(spec.kinds);
    fault.from = draw.between(Duration(), spec.window);
    fault.until = fault.from + draw.between(Duration::us(1), spec.duration_max);
    draw.fill(fault);
    if (fault.kind == FaultKind::kHostCrash) {
      if (crashed) continue;
      crashed = true;
      fault.until.reset();
    }
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace weft::scenario
