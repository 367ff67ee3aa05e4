// The output of a run: text for users, and JUnit XML for CI systems. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner.h"

namespace weft::conformance {

// Text such as "1.0.1" for a version number of the API.
std::string version_text(std::uint32_t version);

// The first line: the tested library and device.
std::string heading(const std::string& library, const Survey& survey);
// The line of one test. If there is a reason, it is on a second line.
std::string line_of(const Outcome& outcome, std::size_t id_width);
// Text such as "230 passed, 1 MUST and 2 SHOULD failed, 3 skipped, 0 errors".
std::string summary_of(const Count& count);
// One row of the output of `weft conformance list`.
std::string row_of(const Test& test, std::size_t id_width);

// JUnit XML with one test suite for each area and one test case for each test. A SHOULD that fails
// is a skipped case with its reason, because it must not break a build. `cut_short` says why tests
// are missing, and becomes an extra test case with an error. Empty: no test is missing.
std::string junit(const std::string& library, const Survey& survey,
                  const std::vector<Outcome>& outcomes, const std::string& cut_short = "");

}  // namespace weft::conformance
