#include "scenario/parse.h"

#include <string>

#include "scenario/parse_tables.h"

namespace weft::scenario {
namespace {

std::string stem(std::string_view file_name) {
  const std::size_t slash = file_name.rfind('/');
  if (slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  constexpr std::string_view kSuffix = ".toml";
  if (file_name.size() > kSuffix.size() && file_name.ends_with(kSuffix)) {
    file_name.remove_suffix(kSuffix.size());
  }
  return std::string(file_name);
}

// The tables of the file. A table that is not in the file is null or empty.
struct Tables {
  const config::Value *topology, *switches, *transport, *workload, *random_faults, *expect, *run;
  std::span<const config::Value> faults;
};

Tables tables_of(config::Reader& root) {
  return {.topology = root.table("topology"),
          .switches = root.table("switch"),
          .transport = root.table("transport"),
          .workload = root.table("workload"),
          .random_faults = root.table("random_faults"),
          .expect = root.table("expect"),
          .run = root.table("run"),
          .faults = root.tables("fault")};
}

void read_fabric(config::Report& report, const Tables& tables, Scenario& out) {
  config::Reader topology(report, tables.topology, "[topology]");
  read_topology(topology, out.topology);
  topology.finish();
  config::Reader switches(report, tables.switches, "[switch]");
  read_switch(switches, out.switches, out.forwarding);
  switches.finish();
  out.topology.needs_usids = out.forwarding == fabric::Forwarding::kSrv6;
}

void read_traffic(config::Report& report, const Tables& tables, const fabric::Topology& topology,
                  Scenario& out) {
  config::Reader transport(report, tables.transport, "[transport]");
  read_transport(transport, report, out.transport);
  transport.finish();
  check_transport(transport, out.transport, topology);
  config::Reader workload(report, tables.workload, "[workload]");
  read_workload(workload, report, out.workload);
  workload.finish();
  if (!report.failed()) check_workload(workload, out, topology);
}

void read_faults(config::Report& report, const Tables& tables, const fabric::Topology& topology,
                 Scenario& out) {
  for (const config::Value& table : tables.faults) {
    config::Reader in(report, &table, "[[fault]]");
    FaultSpec fault;
    read_fault(in, fault);
    in.finish();
    if (!report.failed()) check_fault(in, fault, topology, out.transport);
    out.faults.push_back(std::move(fault));
  }
  config::Reader random(report, tables.random_faults, "[random_faults]");
  read_random_faults(random, out.random_faults);
  random.finish();
}

void read_outcome(config::Report& report, const Tables& tables, Scenario& out) {
  config::Reader expect(report, tables.expect, "[expect]");
  read_expect(expect, out.expect);
  expect.finish();
  config::Reader run(report, tables.run, "[run]");
  read_run(run, out.run);
  run.finish();
}

}  // namespace

Result<Scenario> parse(std::string_view toml, std::string_view file_name) {
  WEFT_TRY(const config::Value document, config::parse_document(toml, file_name));
  config::Report report(file_name);
  Scenario out;
  out.name = stem(file_name);

  config::Reader root(report, &document, "the file");
  root.text("description", out.description);
  const Tables tables = tables_of(root);
  root.finish();
  root.require("topology", "a table [topology] with shape, hosts and host_rate");
  root.require("workload", "a table [workload] with kind and bytes");
  if (!report.failed()) read_fabric(report, tables, out);
  if (report.failed()) return report.error();

  const auto topology = fabric::Topology::make(out.topology);
  if (!topology) {
    report.fail(tables.topology->at, topology.error().message);
    return report.error();
  }
  read_traffic(report, tables, *topology, out);
  read_faults(report, tables, *topology, out);
  read_outcome(report, tables, out);
  if (report.failed()) return report.error();
  return out;
}

}  // namespace weft::scenario
