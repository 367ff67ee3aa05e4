// LabParts: the processes that share the hosts of `weft lab run`. With n processes, process p
// drives each host h with h % n == p. Every process has the whole fleet, but drives only its own
// hosts.
//
// The processes are forked when the fleet is complete and before any socket is open. Progress and
// reports are in shared memory. The first process is the one that the user started: it waits for
// the others, and kills them if it fails. If any process dies, all the others stop.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "run/fleet.h"

namespace weft::run {

// The results of one process, for the hosts that it drives.
struct PartReport {
  // by FlowIndex; empty for flows that hosts of other processes send
  std::vector<scenario::FlowRecord> flows{};
  std::vector<std::uint64_t> series{};  // bytes delivered in each interval
  CounterTable counters{}, world{};     // counters: of endpoints; world: of sockets
  std::uint64_t bytes_wrong = 0;
  Fleet::QpErrors errors{};
  bool ev_floor_reached = false;
  std::vector<std::string> stuck{};
};

class LabParts {
 public:
  static constexpr std::uint32_t kProcessesMax = 16;

  // REQUIRES 1 <= processes <= kProcessesMax. Errors: kSystem.
  static Result<std::unique_ptr<LabParts>> make(const Fleet& fleet, std::uint32_t processes);
  // Kills the processes that still run.
  ~LabParts();
  LabParts(const LabParts&) = delete;
  LabParts& operator=(const LabParts&) = delete;

  // Forks the other processes; they all return from this call. Errors: kSystem.
  Result<void> split();
  bool is_first() const { return part_ == 0; }
  bool is_mine(fabric::HostIndex host) const { return host % processes_ == part_; }

  // say_done(): all flows of this process's hosts have ended. all_done(): the flows of all
  // processes have.
  void say_done();
  bool all_done() const;
  // Something failed in some process, or a process died: all processes must stop.
  void give_up();
  bool given_up();

  // Only in processes other than the first: stores the report and ends the process.
  [[noreturn]] void leave(const PartReport& report);
  // Only in the first process: adds the reports of the others to `own`. Errors: kSystem if a
  // process died.
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
  Time look_next_;  // when to check again for processes that died
};

}  // namespace weft::run
