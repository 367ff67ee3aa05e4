// One test of the suite, as data: its name, the clause that it checks, and how certain that clause
// is. Each *_tests.cc file has a table of such tests for one area.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weft::conformance {

class Session;

// A MUST that fails makes the suite fail. A SHOULD that fails is only reported.
enum class Level : std::uint8_t { kMust, kShould };

// The source of the clause. The text of the specification is not public; see docs/conformance.md.
enum class Certainty : std::uint8_t {
  kPublished,  // OCP's headers and examples
  kPaper,      // the paper on MRC
  kReaders,    // several people who read the specification agree
  kOurs,       // our own reading: the sources are silent or contradict each other
};

struct Test {
  const char* id;      // never changes: "api.qp.rtr.missing-av"
  const char* clause;  // such as "mrc.h: mrc_modify_qp" or "MRC 7.5.2"
  Certainty certainty = Certainty::kPublished;
  Level level = Level::kMust;
  const char* what;  // one line that says what must be true
  // Runs the test, in its own process. The test passes if this returns; otherwise it throws Failure,
  // Skip or SuiteError (checks.h).
  void (*body)(Session&);
};

std::string_view to_string(Level level);
std::string_view to_string(Certainty certainty);

}  // namespace weft::conformance
