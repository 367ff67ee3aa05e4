// One test of the suite, as data: its name, the clause that it checks, and how certain that clause
// is. The *_tests.cc files contain tables of tests, one table per area.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weft::conformance {

class Session;

// A MUST that fails makes the suite fail; a SHOULD is reported.
enum class Level : std::uint8_t { kMust, kShould };

// Where the clause comes from. The text of the specification is not public; docs/conformance.md.
enum class Certainty : std::uint8_t {
  kPublished,  // OCP's headers and examples
  kPaper,      // the paper on MRC
  kReaders,    // several people who read the specification agree
  kOurs,       // our reading, because the sources are silent or differ
};

struct Test {
  const char* id;      // stable: "api.qp.rtr.missing-av"
  const char* clause;  // "mrc.h: mrc_modify_qp", "MRC 7.5.2"
  Certainty certainty = Certainty::kPublished;
  Level level = Level::kMust;
  const char* what;  // one line: the claim
  // Runs in its own process. Throws Failure, Skip or SuiteError (checks.h); else it passed.
  void (*body)(Session&);
};

std::string_view to_string(Level level);
std::string_view to_string(Certainty certainty);

}  // namespace weft::conformance
