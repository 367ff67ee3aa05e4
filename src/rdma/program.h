// Program: what runs on top of an Rdma. It is passive: its driver steps it, and nothing else does.
//
// The driver steps it after every event and when next_deadline() is due, and looks at is_done()
// between a step and a wait. After is_done() the driver goes on answering peers until all of them
// are done, which only their owner knows: a process that leaves early fails its peers.
#pragma once

#include <algorithm>

#include "base/time.h"
#include "rdma/rdma.h"

namespace weft::rdma {

class Program {
 public:
  virtual ~Program() = default;
  // Polls, does a bounded piece of work, posts what it can. A step without news changes nothing.
  virtual void step(Time now, Rdma& rdma) = 0;
  // kNever: only news. Not later than now: step again at once.
  virtual Time next_deadline() const = 0;
  virtual bool is_done() const = 0;
};

// Steps a program on an implementation that drives itself by progress(limit): until the program is
// done, or until `limit`. Returns whether it is done.
template <typename SelfDriven>
bool run_until(SelfDriven& rdma, Program& program, Time limit) {
  // The first pass takes what is there and tells the time.
  Time now = rdma.progress(Time());
  while (true) {
    program.step(now, rdma);
    if (program.is_done()) return true;
    if (now >= limit) return false;
    now = rdma.progress(std::min(limit, program.next_deadline()));
  }
}

}  // namespace weft::rdma
