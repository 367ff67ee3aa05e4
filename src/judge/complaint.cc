#include "judge/complaint.h"

namespace weft::judge {

std::string_view name(Rule rule) {
  switch (rule) {
    case Rule::kMemory:
      return "memory";
    case Rule::kCompletion:
      return "completion";
    case Rule::kWimmOrder:
      return "wimm-order";
    case Rule::kWimmLimit:
      return "wimm-limit";
    case Rule::kEv:
      return "ev";
    case Rule::kPsnWindow:
      return "psn-window";
    case Rule::kCwnd:
      return "cwnd";
    case Rule::kInflight:
      return "inflight";
    case Rule::kStuck:
      return "stuck";
    case Rule::kConservation:
      return "conservation";
    case Rule::kPacket:
      return "packet";
    case Rule::kAck:
      return "ack";
    case Rule::kError:
      return "error";
    case Rule::kTrace:
      return "trace";
  }
  return "unknown";
}

std::string to_string(const Complaint& complaint) {
  const std::string where = complaint.qpn == 0
                                ? fmt::format("host {}", complaint.host)
                                : fmt::format("host {}, qp {:#08x}", complaint.host, complaint.qpn);
  return fmt::format("{:.6f} us, {}: {}: {}", complaint.at.since_start().to_us(), where,
                     complaint.rule, complaint.text);
}

bool Complaints::count(Rule rule) {
  ++total_;
  std::size_t& of_rule = kept_per_rule_[static_cast<std::size_t>(rule)];
  if (kept_.size() >= limits_.kept_max || of_rule >= limits_.kept_per_rule_max) return false;
  ++of_rule;
  return true;
}

}  // namespace weft::judge
