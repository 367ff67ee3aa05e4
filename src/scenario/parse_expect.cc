// Parses the tables [expect] and [run].
#include "scenario/parse_tables.h"

namespace weft::scenario {
namespace {

struct Window {
  const char *from, *until;
};

// Reads a time window. Both bounds must be given, or neither.
void read_window(config::Reader& in, Window keys, Duration& from, Duration& until) {
  in.duration(keys.from, from);
  in.duration(keys.until, until);
  if (in.has(keys.from) != in.has(keys.until)) {
    in.fail_at(in.has(keys.from) ? keys.from : keys.until, std::string("only one of ") + keys.from +
                                                               " and " + keys.until +
                                                               " is given; expected both");
  } else if (in.has(keys.until) && until <= from) {
    in.fail_at(keys.until,
               std::string(keys.until) + " is not after " + keys.from + "; expected a later time");
  }
}

}  // namespace

void read_expect(config::Reader& in, ExpectSpec& out) {
  in.boolean("all_completed", out.all_completed);
  in.number("qp_errors_max", out.qp_errors_max);
  in.number("remote_access_errors", out.remote_access_errors);
  in.real("slowest_over_ideal_max", out.slowest_over_ideal_max, 1000);
  in.real("slowest_over_ideal_min", out.slowest_over_ideal_min, 1000);
  in.real("goodput_gbps_min", out.goodput_gbps_min, 1e9);
  in.real("goodput_share_min", out.goodput_share_min, 1);
  in.real("fault_free_share_min", out.fault_free_share_min, 1);
  in.real("jain_min", out.jain_min, 1);
  in.real("victim_share_min", out.victim_share_min, 1);
  in.duration("longest_pause_max", out.longest_pause_max);
  in.number("ev_bad_max", out.ev_bad_max);
  in.number("ev_bad_min", out.ev_bad_min);
  in.boolean("ev_floor_never_reached", out.ev_floor_never_reached);
  read_window(in, {"baseline_from", "baseline_until"}, out.baseline_from, out.baseline_until);
  in.real("settled_share_min", out.settled_share_min, 2);
  in.real("settled_share_max", out.settled_share_max, 2);
  read_window(in, {"settled_from", "settled_until"}, out.settled_from, out.settled_until);
  in.real("recovered_share_min", out.recovered_share_min, 2);
  read_window(in, {"recovered_from", "recovered_until"}, out.recovered_from, out.recovered_until);
  in.real("kb_per_host_max", out.kb_per_host_max, 1e9);

  if (out.settled_share_min || out.settled_share_max) {
    in.require("settled_from", "the window that settled_share_* speaks of");
    in.require("baseline_from", "the window that it is compared with");
  }
  if (out.recovered_share_min) {
    in.require("recovered_from", "the window that recovered_share_min speaks of");
    in.require("baseline_from", "the window that it is compared with");
  }
}

void read_run(config::Reader& in, RunSpec& out) {
  in.duration("time_limit", out.time_limit, Duration::us(1));
  in.choice("memory", out.memory, kMemoryNames);
  in.boolean("judge", out.judge);
  in.number("seed", out.seed, {0, std::uint64_t{1} << 62});
  in.duration("sample", out.sample, Duration::us(1));
}

}  // namespace weft::scenario
