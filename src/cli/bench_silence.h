// Silence: detects that no packet of the other end has arrived over the planes. The usual cause is
// a filter that drops UDP. Without this message the program would just wait.
//
// Made for one connection and called during its measurements. The message goes to stderr, at most
// once.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/bench_end.h"

namespace weft::cli {

class Silence {
 public:
  // `end` outlives this object. If the link uses shared memory, this object does nothing.
  Silence(BenchEnd& end, const BenchLink& link);
  // Checks once, two seconds after the start.
  void check_once(Time now);
  // The error for the user: if no packet has ever arrived, a text about what to check is added.
  Error explain(const Error& error) const;

 private:
  bool is_silent() const;

  BenchEnd& end_;
  std::string peer_;  // the addresses that our packets go to; empty: the planes are not used
  Time look_at_{};    // when to check; kNever: the check was made
};

}  // namespace weft::cli
