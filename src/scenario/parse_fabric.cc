// Parses the tables [topology], [switch] and [transport].
#include "scenario/parse_tables.h"

namespace weft::scenario {

void read_topology(config::Reader& in, fabric::TopologySpec& out) {
  constexpr config::Range kCount{1, 1u << 22};
  in.choice("shape", out.shape, kShapeNames);
  in.number("hosts", out.hosts, kCount);
  in.number("planes", out.planes, {1, fabric::kPlaneCountMax});
  in.number("hosts_per_t0", out.hosts_per_t0, kCount);
  in.number("t1_count", out.t1_count, kCount);
  in.number("t0_per_pod", out.t0_per_pod, kCount);
  in.number("t1_per_pod", out.t1_per_pod, kCount);
  in.number("t2_per_t1", out.t2_per_t1, kCount);
  in.choice("layout", out.layout, kLayoutNames);
  in.number("rails", out.rails, kCount);
  in.rate("host_rate", out.host_rate);
  out.fabric_rate = out.host_rate;
  in.rate("fabric_rate", out.fabric_rate);
  in.duration("link_delay", out.link_delay);
  in.duration("switch_delay", out.switch_delay);

  in.require("shape", "\"single\", \"two-tier\" or \"three-tier\"");
  in.require("hosts", "how many hosts there are");
  in.require("host_rate", "the rate of a host's link in each plane, as \"100Gbps\"");
  const bool two = out.shape == fabric::Shape::kTwoTier;
  const bool three = out.shape == fabric::Shape::kThreeTier;
  in.only_if(two || three, "hosts_per_t0", "shape = \"two-tier\" or \"three-tier\"");
  in.only_if(two || three, "fabric_rate", "shape = \"two-tier\" or \"three-tier\"");
  in.only_if(two, "t1_count", "shape = \"two-tier\"");
  for (const char* key : {"t0_per_pod", "t1_per_pod", "t2_per_t1"}) {
    in.only_if(three, key, "shape = \"three-tier\"");
  }
  in.only_if(out.layout == fabric::Layout::kRail, "rails", "layout = \"rail\"");
}

void read_switch(config::Reader& in, SwitchSpec& out, fabric::Forwarding& forwarding) {
  in.choice("forwarding", forwarding, kForwardingNames);
  in.size("queue", out.queue_bytes);
  in.size("last_hop_queue", out.last_hop_queue_bytes);
  in.size("ecn_min", out.ecn_min_bytes);
  in.size("ecn_max", out.ecn_max_bytes);
  in.boolean("ecn", out.ecn);
  in.boolean("last_hop_ecn", out.last_hop_ecn);
  in.boolean("trimming", out.trimming);
  out.trimming_given = in.has("trimming");
  in.size("control_queue", out.control_queue_bytes);
  in.size("shared_buffer", out.shared_buffer_bytes);
  in.percent("shared_alpha", out.shared_alpha_percent, {1, 100});
  for (const auto& [key, bytes] : {std::pair{"queue", out.queue_bytes},
                                   {"last_hop_queue", out.last_hop_queue_bytes},
                                   {"control_queue", out.control_queue_bytes},
                                   {"shared_buffer", out.shared_buffer_bytes}}) {
    if (in.has(key) && bytes == 0)
      in.fail_at(key, std::string(key) + " = 0 holds no packet; expected a size, or leave it out");
  }
  in.only_if(out.ecn, "ecn_min", "ecn = true");
  in.only_if(out.ecn, "ecn_max", "ecn = true");
  in.only_if(out.shared_buffer_bytes > 0, "shared_alpha", "shared_buffer");
  if (in.has("ecn_min") != in.has("ecn_max")) {
    in.fail_at(in.has("ecn_min") ? "ecn_min" : "ecn_max",
               "only one of ecn_min and ecn_max is given; expected both or none");
  } else if (out.ecn_min_bytes > out.ecn_max_bytes) {
    in.fail_at("ecn_min", "ecn_min is above ecn_max; expected ecn_min <= ecn_max");
  }
}

void read_transport(config::Reader& in, config::Report& report, TransportSpec& out) {
  in.size("mtu", out.mtu, {256, 9000});
  in.number("evs", out.evs, {1, 4096});
  in.number("backup_evs", out.backup_evs, {0, 4096});
  in.percent("ev_min_active", out.ev_min_active_percent, {0, 100});
  in.choice("policy", out.policy, kPolicyNames);
  in.choice("condemn", out.condemn, kCondemnNames);
  in.boolean("share_path_health", out.share_path_health);
  in.boolean("congestion_control", out.congestion_control);
  in.boolean("trim_nack", out.trim_nack);
  in.size("cwnd_max", out.cwnd_max_bytes, {0, 1u << 30});
  in.duration("base_rtt", out.base_rtt);
  in.number("mpr", out.mpr, {1, 255});
  in.boolean("dynamic_mpr", out.dynamic_mpr);
  in.number("wimm_max", out.wimm_max, {1, 4096});
  in.size("sack_every", out.sack_bytes, {1, 1u << 24});
  in.number("burst", out.burst, {1, 64});
  in.boolean("extra_header_srv6", out.extra_header_srv6);

  config::Reader retry(report, in.table("retry"), "[transport.retry]");
  retry.number("timeout", out.retry.timeout, {0, 31});
  retry.number("linear_count", out.retry.linear_count, {0, 255});
  retry.number("exponential_count", out.retry.exponential_count, {0, transport::kRetryForever});
  retry.finish();

  if (out.mtu % 4 != 0) in.fail_at("mtu", "mtu is not a multiple of 4; expected one, as 4096");
}

void check_transport(config::Reader& in, TransportSpec& spec, const fabric::Topology& topology) {
  const std::uint32_t planes = topology.plane_count();
  // Default numbers of EVs are rounded up to a multiple of the planes, so that planes get equal
  // numbers of EVs.
  const auto rounded = [planes](std::uint32_t evs) { return (evs + planes - 1) / planes * planes; };
  if (!in.has("evs")) spec.evs = rounded(spec.evs);
  if (!in.has("backup_evs")) spec.backup_evs = rounded(spec.backup_evs);
  const std::string each = "; expected a multiple of planes = " + std::to_string(planes);
  if (spec.evs % planes != 0) {
    in.fail_at("evs", "evs = " + std::to_string(spec.evs) + " do not spread evenly" + each);
  } else if (spec.backup_evs % planes != 0) {
    in.fail_at("backup_evs",
               "backup_evs = " + std::to_string(spec.backup_evs) + " do not spread evenly" + each);
  }
}

}  // namespace weft::scenario
