// Any text as a scenario file. Parsing must give a scenario for which a plan can be made, or one
// line that names the mistake.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/prng.h"
#include "fabric/topology.h"
#include "scenario/faults.h"
#include "scenario/parse.h"
#include "scenario/settings.h"
#include "scenario/workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = scenario::parse(text, "fuzz.toml");
  if (!parsed) {
    const std::string& message = parsed.error().message;
    WEFT_ASSERT(message.starts_with("fuzz.toml:"));
    WEFT_ASSERT(message.find('\n') == std::string::npos);
    return 0;
  }
  const auto topology = fabric::Topology::make(parsed->topology);
  WEFT_ASSERT(topology.has_value());
  // Only for small scenarios: also make the plan.
  if (topology->host_count() > 64 || topology->link_count() > 10'000) return 0;
  const scenario::Plan plan = scenario::make_plan(*parsed, *topology, Prng(1));
  WEFT_ASSERT(plan.ends.size() == 2 * plan.connections.size());
  for (fabric::HostIndex host = 0; host < plan.host_count(); ++host) {
    WEFT_ASSERT(scenario::endpoint_config(*parsed, plan, host, 1).qp_count_max > 0);
  }
  std::uint64_t faults = 0;
  for (const auto& fault : parsed->faults) {
    faults += fault.count;
    // may have 100,000 flaps, which takes too long
    if (fault.kind == scenario::FaultKind::kLinkFlap) return 0;
  }
  if (faults <= 1000) (void)scenario::make_fault_plan(parsed->faults, *topology, {});
  (void)scenario::draw_faults(parsed->random_faults, *topology, parsed->transport, Prng(1));
  return 0;
}
