#include "conformance/registry.h"

#include <algorithm>

namespace weft::conformance {

std::string_view to_string(Level level) { return level == Level::kMust ? "MUST" : "SHOULD"; }

std::string_view to_string(Certainty certainty) {
  switch (certainty) {
    case Certainty::kPublished:
      return "published";
    case Certainty::kPaper:
      return "from the paper";
    case Certainty::kReaders:
      return "readers agree";
    case Certainty::kOurs:
      return "our reading";
  }
  return "";
}

std::vector<const Test*> all_tests() {
  using Area = std::span<const Test> (*)();
  static constexpr Area kAreas[] = {
      library_tests,     device_tests,       cq_tests,           hint_tests,
      qp_create_tests,   qp_state_tests,     qp_attribute_tests, post_tests,
      transfer_tests,    completion_tests,   access_tests,       event_tests,
      ctl_device_tests,  ctl_format_tests,   ctl_ev_tests,       ctl_ev_op_tests,
      ctl_cc_tests,      ctl_endpoint_tests, wire_write_tests,   wire_stream_tests,
      wire_loss_tests,   wire_verdict_tests, wire_place_tests,   wire_sack_tests,
      wire_refuse_tests, wire_hostile_tests, wire_probe_tests};
  std::vector<const Test*> out;
  for (const Area area : kAreas) {
    for (const Test& test : area()) out.push_back(&test);
  }
  return out;
}

// Greedy matching with two positions: after a mismatch, the last `*` takes one character more.
bool matches_glob(std::string_view text, std::string_view glob) {
  std::size_t t = 0, g = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t]) && glob[g] != '*') {
      ++t;
      ++g;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++;
      taken = t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

std::vector<const Test*> chosen_tests(const Choice& choice) {
  const auto any_of = [](const std::vector<std::string>& globs, std::string_view id) {
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return matches_glob(id, glob); });
  };
  std::vector<const Test*> out;
  for (const Test* test : all_tests()) {
    if (!choice.only.empty() && !any_of(choice.only, test->id)) continue;
    if (any_of(choice.skip, test->id)) continue;
    out.push_back(test);
  }
  return out;
}

}  // namespace weft::conformance
