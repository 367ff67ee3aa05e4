// Silence: notices that not one packet of the other end has come over the planes. Most often a filter
// drops UDP, and nothing but waiting would be seen of that for long.
//
// Made for one connection and asked during its measurements. What it says to people goes to stderr,
// once.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/bench_end.h"

namespace weft::cli {

class Silence {
 public:
  // `end` outlives it. Over shared memory nothing is noticed.
  Silence(BenchEnd& end, const BenchQp& qp, engine::NetEnd::Carrier carrier);
  // Cheap but for the first seconds.
  void look(Time now);
  // What is to be said of a failure: where nothing ever came, also what to look at.
  Error explain(const Error& error) const;

 private:
  bool is_silent() const;

  BenchEnd& end_;
  std::string peer_;  // where packets go to; empty: not over the planes
  Time look_at_{};    // kNever: it has been said, or there is nothing to say
};

}  // namespace weft::cli
