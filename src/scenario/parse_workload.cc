// Parses the tables [workload] and [[workload.flow]].
#include "scenario/parse_tables.h"
#include "scenario/workload.h"

namespace weft::scenario {
namespace {

using Kind = WorkloadKind;

bool is_all_reduce(Kind kind) {
  return kind == Kind::kRingAllReduce || kind == Kind::kTreeAllReduce;
}

// Workloads in which no flow waits for another flow.
bool is_free(Kind kind) {
  return kind == Kind::kPairs || kind == Kind::kPermutation || kind == Kind::kIncast ||
         kind == Kind::kFlows;
}

void refuse_other_kinds_keys(config::Reader& in, Kind kind) {
  const bool grouped = is_all_reduce(kind) || kind == Kind::kAllToAll;
  in.only_if(kind == Kind::kIncast, "senders", "kind = \"incast\"");
  in.only_if(kind == Kind::kIncast, "victim", "kind = \"incast\"");
  in.only_if(kind == Kind::kPairs, "cross", "kind = \"pairs\"");
  in.only_if(kind == Kind::kPairs || kind == Kind::kFlows, "bidirectional",
             "kind = \"pairs\" or \"flows\"");
  in.only_if(grouped, "group", "kind = \"ring-all-reduce\", \"tree-all-reduce\" or \"all-to-all\"");
  in.only_if(kind == Kind::kAllToAll, "parallel", "kind = \"all-to-all\"");
  in.only_if(is_free(kind), "repeat_for",
             "kind = \"pairs\", \"permutation\", \"incast\" or \"flows\"");
  in.only_if(!is_all_reduce(kind), "immediate",
             "a kind other than all-reduce, which always has it");
  in.only_if(kind == Kind::kFlows, "flow", "kind = \"flows\"");
  in.only_if(kind != Kind::kFlows, "hosts", "a kind other than \"flows\"");
}

void read_flow(config::Reader& in, FlowSpec& out) {
  in.number("from", out.from);
  in.number("to", out.to);
  in.size("bytes", out.bytes, {1, config::Reader::kSizeMax});
  in.duration("start", out.start);
  in.number("qp", out.qp, {0, 1023});
  in.boolean("bad_rkey", out.bad_rkey);
  in.numbers("paths", out.paths);
  in.require("from", "the host that sends");
  in.require("to", "the host that receives");
  in.finish();
  if (out.from == out.to) in.fail_at("to", "a flow from a host to itself; expected two hosts");
}

}  // namespace

void read_workload(config::Reader& in, config::Report& report, WorkloadSpec& out) {
  in.choice("kind", out.kind, kWorkloadNames);
  in.size("bytes", out.bytes, {1, config::Reader::kSizeMax});
  in.size("message", out.message_bytes, {1, 1u << 31});
  in.number("qps_per_peer", out.qps_per_peer, {1, 256});
  in.number("outstanding", out.outstanding, {1, 1024});
  in.number("hosts", out.hosts, {2, 1u << 24});
  in.number("senders", out.senders, {1, 1u << 24});
  in.boolean("victim", out.victim);
  in.boolean("cross", out.cross);
  in.boolean("bidirectional", out.bidirectional);
  in.number("group", out.group, {2, 1u << 24});
  in.number("parallel", out.parallel, {1, 65536});
  in.boolean("immediate", out.immediate);
  in.duration("repeat_for", out.repeat_for);
  for (const config::Value& table : in.tables("flow")) {
    config::Reader flow(report, &table, "[[workload.flow]]");
    out.flows.emplace_back();
    read_flow(flow, out.flows.back());
  }
  in.require("kind", "what the hosts do, as \"permutation\"");
  refuse_other_kinds_keys(in, out.kind);
  const bool repeats = out.repeat_for > Duration();
  in.only_if(!repeats, "bytes", "a workload without repeat_for, which says how long instead");
  if (repeats) {
    in.require("message", "the size of the messages that are repeated");
  } else if (out.kind != Kind::kFlows) {
    in.require("bytes", "how much a flow carries, as \"16MiB\"");
  }
  if (out.message_bytes > 0 && out.bytes / out.message_bytes > 0xffff'ffff) {
    in.fail_at("message", "more than 4294967295 messages a flow; expected larger ones");
  }
}

namespace {

void check_flows(config::Reader& in, const Scenario& scenario, const fabric::Topology& topology) {
  const WorkloadSpec& spec = scenario.workload;
  if (spec.flows.empty()) {
    in.fail_at("kind", "kind = \"flows\" without a flow; expected [[workload.flow]] tables");
  }
  for (std::size_t i = 0; i < spec.flows.size(); ++i) {
    const FlowSpec& flow = spec.flows[i];
    const std::string which = "flow " + std::to_string(i);
    const std::uint32_t hosts = topology.host_count();
    if (flow.from >= hosts || flow.to >= hosts) {
      return in.fail_at("flow", which + " names host " +
                                    std::to_string(std::max(flow.from, flow.to)) +
                                    "; expected hosts 0 to " + std::to_string(hosts - 1));
    }
    if (flow.bytes == 0 && spec.bytes == 0 && spec.repeat_for == Duration()) {
      return in.fail_at("flow", which + " has no bytes; expected bytes there or in [workload]");
    }
    if (!flow.paths.empty() && scenario.forwarding == fabric::Forwarding::kHashed) {
      return in.fail_at("flow", which +
                                    " has paths, which hashed forwarding cannot choose; "
                                    "expected forwarding = \"srv6\" or \"stev\"");
    }
    const std::uint64_t evs = flow.paths.size() * topology.plane_count();
    if (evs > scenario.transport.evs) {
      return in.fail_at("flow", which + " has " + std::to_string(evs) +
                                    " paths over all planes; expected at most evs = " +
                                    std::to_string(scenario.transport.evs));
    }
    for (const std::uint32_t path : flow.paths) {
      const std::uint32_t paths = topology.path_count(flow.from, flow.to);
      if (path < paths) continue;
      return in.fail_at("flow", which + " names path " + std::to_string(path) +
                                    "; expected paths 0 to " + std::to_string(paths - 1));
    }
  }
}

void check_incast(config::Reader& in, const WorkloadSpec& spec, std::uint32_t hosts) {
  const std::uint32_t others = spec.victim ? 3 : 1;
  if (hosts <= others) {
    in.fail_at("kind", "an incast with " + std::to_string(hosts) + " hosts; expected at least " +
                           std::to_string(others + 1));
  } else if (spec.senders > hosts - others) {
    in.fail_at("senders", "senders = " + std::to_string(spec.senders) + " of " +
                              std::to_string(hosts) + " hosts; expected at most " +
                              std::to_string(hosts - others));
  }
}

}  // namespace

void check_workload(config::Reader& in, const Scenario& scenario,
                    const fabric::Topology& topology) {
  const WorkloadSpec& spec = scenario.workload;
  const std::uint32_t there = topology.host_count();
  if (spec.hosts > there) {
    return in.fail_at("hosts", "hosts = " + std::to_string(spec.hosts) + " of " +
                                   std::to_string(there) + " in the topology; expected at most " +
                                   std::to_string(there));
  }
  const std::uint32_t hosts = spec.hosts == 0 ? there : spec.hosts;
  const std::uint32_t group = spec.group == 0 ? hosts : spec.group;
  switch (spec.kind) {
    case Kind::kFlows:
      return check_flows(in, scenario, topology);
    case Kind::kIncast:
      return check_incast(in, spec, hosts);
    case Kind::kPairs:
      if (hosts % 2 != 0) in.fail_at("hosts", "an odd number of hosts; expected pairs");
      if (spec.cross && (topology.switch_count(fabric::Tier::kT0) < 2)) {
        in.fail_at("cross", "cross with one T0 switch; expected a topology with at least two");
      }
      return;
    case Kind::kPermutation:
      if (hosts < 2) in.fail_at("hosts", "a permutation of one host; expected at least 2");
      return;
    case Kind::kRingAllReduce:
    case Kind::kTreeAllReduce:
    case Kind::kAllToAll:
      break;
  }
  if (group < 2 || hosts % group != 0) {
    in.fail_at("group", "groups of " + std::to_string(group) + " do not divide " +
                            std::to_string(hosts) + " hosts; expected a divisor of at least 2");
  } else if (std::uint64_t{hosts} * 2 * (group - 1) >= kFlowCountMax) {
    in.fail_at("group", "more than " + std::to_string(kFlowCountMax) +
                            " flows; expected smaller groups or fewer hosts");
  }
}

}  // namespace weft::scenario
