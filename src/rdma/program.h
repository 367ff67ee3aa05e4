// Program: code that uses an Rdma. It is passive: it runs only when its driver calls step().
//
// The driver calls step() after every event and when next_deadline() is due, and checks is_done()
// between a step and a wait. After is_done() the driver must keep serving peers until all peers are
// done, because their writes fail if this process leaves early. Only the owner of all programs
// knows when that is.
#pragma once

#include <algorithm>

#include "base/time.h"
#include "rdma/rdma.h"

namespace weft::rdma {

class Program {
 public:
  virtual ~Program() = default;
  // Polls, does a bounded amount of work, posts what it can. A step without news must change
  // nothing.
  virtual void step(Time now, Rdma& rdma) = 0;
  // kNever: step only when there is news. A time that is not later than now: step again at once.
  virtual Time next_deadline() const = 0;
  virtual bool is_done() const = 0;
};

// Steps a program until it is done or the time is `limit`. `rdma` is an implementation with
// progress(limit), which drives itself. Returns whether the program is done.
template <typename SelfDriven>
bool run_until(SelfDriven& rdma, Program& program, Time limit) {
  // The first call does not wait: it processes what has already arrived, and returns the present
  // time.
  Time now = rdma.progress(Time());
  while (true) {
    program.step(now, rdma);
    if (program.is_done()) return true;
    if (now >= limit) return false;
    now = rdma.progress(std::min(limit, program.next_deadline()));
  }
}

}  // namespace weft::rdma
