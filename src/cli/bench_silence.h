// Silence: notices that no packet of the other end has arrived over the planes. The usual cause is
// a filter that drops UDP; without this message the user would only see a program that waits.
//
// Made for one connection, and called during its measurements. It prints its message to stderr
// once.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/bench_end.h"

namespace weft::cli {

class Silence {
 public:
  // `end` outlives this object. Over shared memory it does nothing.
  Silence(BenchEnd& end, const BenchLink& link);
  // Costs little after the first seconds.
  void look(Time now);
  // The error as the user shall see it: if no packet ever arrived, it also says what to check.
  Error explain(const Error& error) const;

 private:
  bool is_silent() const;

  BenchEnd& end_;
  std::string peer_;  // the address that our packets go to; empty: the planes are not used
  Time look_at_{};    // kNever: the message is printed, or there is nothing to print
};

}  // namespace weft::cli
