// All tests in the order in which they run, and the selection of tests by glob.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/test.h"

namespace weft::conformance {

// One table of tests for each area. X_tests() is at the end of X_tests.cc.
std::span<const Test> library_tests();
std::span<const Test> device_tests();
std::span<const Test> cq_tests();
std::span<const Test> hint_tests();
std::span<const Test> qp_create_tests();
std::span<const Test> qp_state_tests();
std::span<const Test> qp_attribute_tests();
std::span<const Test> post_tests();
std::span<const Test> transfer_tests();
std::span<const Test> completion_tests();
std::span<const Test> access_tests();
std::span<const Test> event_tests();
std::span<const Test> ctl_device_tests();
std::span<const Test> ctl_format_tests();
std::span<const Test> ctl_ev_tests();
std::span<const Test> ctl_ev_op_tests();
std::span<const Test> ctl_cc_tests();
std::span<const Test> ctl_endpoint_tests();
std::span<const Test> wire_write_tests();
std::span<const Test> wire_stream_tests();
std::span<const Test> wire_loss_tests();
std::span<const Test> wire_verdict_tests();
std::span<const Test> wire_place_tests();
std::span<const Test> wire_sack_tests();
std::span<const Test> wire_refuse_tests();
std::span<const Test> wire_hostile_tests();
std::span<const Test> wire_probe_tests();

std::vector<const Test*> all_tests();

// In `glob`, `*` stands for any characters and `?` for one character.
bool matches_glob(std::string_view text, std::string_view glob);

struct Choice {
  std::vector<std::string> only;  // empty: all tests
  std::vector<std::string> skip;
};
std::vector<const Test*> chosen_tests(const Choice& choice);

}  // namespace weft::conformance
