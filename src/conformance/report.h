// What is shown of a run: lines for people, and JUnit's XML for machines that collect tests. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner.h"

namespace weft::conformance {

// "1.0.1" of a version number of the API.
std::string version_text(std::uint32_t version);

// What is tested, before the first line.
std::string heading(const std::string& library, const Survey& survey);
// One test, with the reason on a line of its own when there is one.
std::string line_of(const Outcome& outcome, std::size_t id_width);
// "230 passed, 1 MUST and 2 SHOULD failed, 3 skipped, 0 errors".
std::string summary_of(const Count& count);
// One row of `list`.
std::string row_of(const Test& test, std::size_t id_width);

// One test suite an area, one test case a test. A SHOULD that fails is a skipped case with its
// reason: it must not break a build. `cut_short`: why tests are missing, as a test case of its own
// with an error; empty when none are.
std::string junit(const std::string& library, const Survey& survey,
                  const std::vector<Outcome>& outcomes, const std::string& cut_short = "");

}  // namespace weft::conformance
