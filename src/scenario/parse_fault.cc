// Parses the tables [[fault]] and [random_faults].
#include "scenario/parse_tables.h"

namespace weft::scenario {
namespace {

using Kind = FaultKind;

constexpr std::int64_t kFlapCountMax = 100'000;

// Faults that affect a share of the packets.
bool has_share(Kind kind) {
  return kind == Kind::kLoss || kind == Kind::kBurstLoss || kind == Kind::kReorder ||
         kind == Kind::kDuplicate || kind == Kind::kCorrupt || kind == Kind::kEvLoss;
}
// Faults that can affect named links only.
bool is_of_link(Kind kind) {
  return kind == Kind::kLinkDown || kind == Kind::kLinkFlap || kind == Kind::kLinkSlow;
}
bool has_where(Kind kind) { return is_of_link(kind) || (has_share(kind) && kind != Kind::kEvLoss); }
bool is_of_host(Kind kind) { return kind == Kind::kHostPause || kind == Kind::kHostCrash; }

void refuse_other_kinds_keys(config::Reader& in, const FaultSpec& spec) {
  const Kind kind = spec.kind;
  const bool at_link = has_where(kind) && spec.where >= LinkWhere::kHostLink;
  const bool switch_down = kind == Kind::kSwitchDown;
  const bool host_link = at_link && spec.where == LinkWhere::kHostLink;
  const bool t0_t1 = at_link && spec.where == LinkWhere::kT0T1;
  const bool t1_t2 = at_link && spec.where == LinkWhere::kT1T2;
  in.only_if(kind != Kind::kHostCrash, "until", "a kind other than \"host-crash\"");
  in.only_if(has_where(kind), "where", "a kind that acts on links");
  in.only_if(at_link, "direction", "where = \"host-link\", \"t0-t1\" or \"t1-t2\"");
  in.only_if(host_link || kind == Kind::kPlaneDown, "silent",
             "where = \"host-link\" or kind = \"plane-down\"");
  in.only_if(at_link || switch_down || kind == Kind::kPlaneDown, "plane",
             "a named link, or kind = \"plane-down\" or \"switch-down\"");
  in.only_if(host_link || is_of_host(kind), "host",
             "where = \"host-link\" or kind = \"host-pause\" or \"host-crash\"");
  in.only_if(t0_t1, "t0", "where = \"t0-t1\"");
  in.only_if(t0_t1 || t1_t2, "t1", "where = \"t0-t1\" or \"t1-t2\"");
  in.only_if(t1_t2, "t2", "where = \"t1-t2\"");
  in.only_if(switch_down, "tier", "kind = \"switch-down\"");
  in.only_if(switch_down, "switch", "kind = \"switch-down\"");
  in.only_if(at_link || switch_down || is_of_host(kind) || kind == Kind::kPlaneDown, "count",
             "links, hosts, planes or switches to count");
  in.only_if(spec.count > 1, "spacing", "count of at least 2");
  in.only_if(has_share(kind), "share", "a kind that acts on a share of the packets");
  in.only_if(kind == Kind::kBurstLoss, "burst", "kind = \"burst-loss\"");
  in.only_if(kind == Kind::kReorder, "delay", "kind = \"reorder\"");
  in.only_if(kind == Kind::kLinkFlap, "period", "kind = \"link-flap\"");
  in.only_if(kind == Kind::kLinkSlow, "rate", "kind = \"link-slow\"");
  in.only_if(kind == Kind::kEvLoss, "evs", "kind = \"ev-loss\"");
  in.only_if(kind == Kind::kControlLoss, "control", "kind = \"control-loss\"");
}

void require_own_keys(config::Reader& in, const FaultSpec& spec) {
  if (has_share(spec.kind)) in.require("share", config::kShareExpected);
  if (is_of_link(spec.kind)) in.require("where", "\"host-link\", \"t0-t1\" or \"t1-t2\"");
  if (spec.kind == Kind::kReorder) in.require("delay", "the longest delay, as \"10us\"");
  if (spec.kind == Kind::kLinkFlap) {
    in.require("period", "the time from one failure to the next, as \"100us\"");
    in.require("until", "when the flapping ends");
  }
  if (spec.kind == Kind::kLinkSlow) in.require("rate", "the share of its rate, as \"25%\"");
  if (spec.kind == Kind::kEvLoss)
    in.require("evs", "positions in the first flow's EV list, as [0]");
  if (spec.kind == Kind::kControlLoss) {
    in.require("control", "\"first-transport-ack\" or \"first-nak\"");
  }
}

struct Bound {
  const char* key;
  std::uint32_t value, count;
};

void check_bound(config::Reader& in, const Bound& bound) {
  if (bound.value < bound.count) return;
  const std::string key = bound.key;
  if (bound.count == 0) return in.fail_at(key, "the topology has no " + key + "; see its shape");
  in.fail_at(key, key + " = " + std::to_string(bound.value) + " does not exist; expected 0 to " +
                      std::to_string(bound.count - 1));
}

// Checks that `count` things exist, beginning with the named one, of the `there` that remain.
// `what` names the thing in the message.
void check_count(config::Reader& in, const FaultSpec& spec, std::uint64_t there, const char* what) {
  if (spec.count <= there) return;
  in.fail_at("count", "count = " + std::to_string(spec.count) + " goes beyond the last " + what +
                          "; expected at most " + std::to_string(there));
}

void check_link(config::Reader& in, const FaultSpec& spec, const fabric::Topology& topology) {
  const std::uint32_t hosts = topology.host_count();
  const std::uint32_t t0s = topology.switch_count(fabric::Tier::kT0);
  const std::uint32_t t1s = topology.switch_count(fabric::Tier::kT1);
  const std::uint32_t t0_up = topology.uplinks_of_t0(), t1_up = topology.uplinks_of_t1();
  check_bound(in, {"plane", spec.plane, topology.plane_count()});
  switch (spec.where) {
    case LinkWhere::kHostLink:
      check_bound(in, {"host", spec.host, hosts});
      // For a host link, `count` counts ports of one host, plane after plane.
      return check_count(in, spec, topology.plane_count() - spec.plane, "plane");
    case LinkWhere::kT0T1:
      check_bound(in, {"t0", spec.t0, t0s});
      check_bound(in, {"t1", spec.t1, t0_up});
      return check_count(in, spec, std::uint64_t{t0s - spec.t0} * t0_up - spec.t1, "link");
    case LinkWhere::kT1T2:
      check_bound(in, {"t1", spec.t1, t1_up == 0 ? 0 : t1s});
      check_bound(in, {"t2", spec.t2, t1_up});
      return check_count(in, spec, std::uint64_t{t1s - spec.t1} * t1_up - spec.t2, "link");
    case LinkWhere::kNicReceive:
    case LinkWhere::kAllLinks:
      return;
  }
}

}  // namespace

void read_fault(config::Reader& in, FaultSpec& out) {
  in.choice("kind", out.kind, kFaultNames);
  in.duration("from", out.from);
  in.duration("until", out.until);
  in.choice("where", out.where, kWhereNames);
  in.choice("direction", out.direction, kDirectionNames);
  in.boolean("silent", out.silent);
  in.number("plane", out.plane);
  in.number("host", out.host);
  in.number("t0", out.t0);
  in.number("t1", out.t1);
  in.number("t2", out.t2);
  in.choice("tier", out.tier, kSwitchTierNames);
  in.number("switch", out.switch_index);
  in.number("count", out.count, {1, 4096});
  in.duration("spacing", out.spacing);
  in.ppm("share", out.share_ppm);
  in.number("burst", out.burst, {1, 65536});
  in.duration("delay", out.delay);
  in.duration("period", out.period, Duration::ns(100));
  in.percent("rate", out.rate_percent, {1, 100});
  in.numbers("evs", out.evs);
  in.choice("control", out.control, kControlNames);

  in.require("kind", "what fails, as \"link-down\"");
  refuse_other_kinds_keys(in, out);
  require_own_keys(in, out);
  if (is_of_link(out.kind) && out.where < LinkWhere::kHostLink) {
    in.fail_at("where", "a link must be named; expected \"host-link\", \"t0-t1\" or \"t1-t2\"");
  }
  if (out.until && *out.until <= out.from) {
    in.fail_at("until", "until is not after from; expected a later time");
  }
  if (out.kind == Kind::kLinkFlap && out.until && out.period > Duration() &&
      (*out.until - out.from).ps() / out.period.ps() * out.count > kFlapCountMax) {
    in.fail_at("period", "more than " + std::to_string(kFlapCountMax) +
                             " flaps; expected a longer period or fewer links");
  }
}

void check_fault(config::Reader& in, const FaultSpec& spec, const fabric::Topology& topology,
                 const TransportSpec& transport) {
  const std::uint32_t planes = topology.plane_count();
  switch (spec.kind) {
    case Kind::kPlaneDown:
      check_bound(in, {"plane", spec.plane, planes});
      return check_count(in, spec, planes - spec.plane, "plane");
    case Kind::kSwitchDown: {
      const std::uint32_t switches = topology.switch_count(spec.tier);
      check_bound(in, {"plane", spec.plane, planes});
      check_bound(in, {"switch", spec.switch_index, switches});
      return check_count(in, spec, switches - spec.switch_index, "switch");
    }
    case Kind::kHostPause:
    case Kind::kHostCrash:
      check_bound(in, {"host", spec.host, topology.host_count()});
      return check_count(in, spec, topology.host_count() - spec.host, "host");
    case Kind::kEvLoss:
      for (const std::uint32_t ev : spec.evs) {
        check_bound(in, {"evs", ev, transport.evs + transport.backup_evs});
      }
      return;
    case Kind::kControlLoss:
      return;
    default:
      return check_link(in, spec, topology);
  }
}

void read_random_faults(config::Reader& in, RandomFaultSpec& out) {
  in.number("count_max", out.count_max, {1, 64});
  in.duration("window", out.window);
  in.duration("duration_max", out.duration_max, Duration::us(1));
  in.choices("kinds", out.kinds, kFaultNames);
  if (!in.present()) return;
  in.require("count_max", "how many faults a run draws at most");
  in.require("window", "the time within which they start, as \"2ms\"");
  in.require("duration_max", "how long one lasts at most, as \"1ms\"");
  in.require("kinds", "a list of fault kinds, as [\"loss\", \"link-down\"]");
  if (out.kinds.empty()) in.fail_at("kinds", "kinds is empty; expected at least one fault kind");
}

}  // namespace weft::scenario
