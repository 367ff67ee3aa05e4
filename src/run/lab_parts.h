// LabParts: the processes that the hosts of `weft lab run` are divided among. Host h is driven by
// process h modulo their number; each has the whole fleet and lets the others' hosts rest.
//
// They are forked when the fleet stands and before any socket is open, share one page of memory that
// says how far each is, and leave their reports in it. The first is the one that was started: it
// waits for the others and ends them if it fails. One that dies is seen by the rest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "scenario/fleet.h"

namespace weft::run {

// What a process knows of its own hosts at the end.
struct PartReport {
  std::vector<scenario::FlowRecord> flows{};  // by FlowIndex; of other hosts' flows: nothing
  std::vector<std::uint64_t> series{};        // bytes in each step
  CounterTable counters{}, world{};           // of endpoints and of sockets
  std::uint64_t bytes_wrong = 0;
  scenario::Fleet::QpErrors errors{};
  bool ev_floor_reached = false;
  std::vector<std::string> stuck{};
};

class LabParts {
 public:
  static constexpr std::uint32_t kProcessesMax = 16;

  // REQUIRES 1 <= processes <= kProcessesMax. Errors: kSystem.
  static Result<std::unique_ptr<LabParts>> make(const scenario::Fleet& fleet,
                                                std::uint32_t processes);
  // Ends what is left of them.
  ~LabParts();
  LabParts(const LabParts&) = delete;
  LabParts& operator=(const LabParts&) = delete;

  // From here on there are several. Errors: kSystem.
  Result<void> split();
  bool is_first() const { return part_ == 0; }
  bool is_mine(fabric::HostIndex host) const { return host % processes_ == part_; }

  // All flows of my hosts are over; and those of everybody.
  void say_done();
  bool all_done() const;
  // Something went wrong somewhere, or one of them died: nobody goes on.
  void give_up();
  bool given_up();

  // Of all but the first: leaves the report and ends this process.
  [[noreturn]] void leave(const PartReport& report);
  // Of the first: what all have left, added to its own. Errors: kSystem when one died.
  Result<void> gather(PartReport& own);

 private:
  struct Page;
  LabParts(std::uint32_t processes, std::size_t flows, std::size_t steps);
  std::size_t part_bytes() const;
  bool any_died();
  void store(const PartReport& report);
  void add(std::uint32_t part, PartReport& to) const;

  std::uint32_t processes_, part_ = 0;
  std::size_t flows_, steps_, bytes_ = 0;
  Page* page_ = nullptr;
  std::vector<pid_t> children_;
  Time look_next_;  // for those that died
};

}  // namespace weft::run
