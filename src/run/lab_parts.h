// LabParts: the processes that share the hosts of `weft lab run`. Process p drives the hosts h with
// h modulo the number of processes = p. Each process has the whole fleet and leaves the hosts of
// the others idle.
//
// They are forked when the fleet is complete and before any socket is open. They share memory for
// their progress and their reports. The first process is the one that the user started: it waits
// for the others, and ends them if it fails. If one dies, all the others stop.
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

// The results of one process: those of its own hosts.
struct PartReport {
  std::vector<scenario::FlowRecord> flows{};  // by FlowIndex; empty for flows of other hosts
  std::vector<std::uint64_t> series{};        // bytes delivered in each step
  CounterTable counters{}, world{};           // of endpoints and of sockets
  std::uint64_t bytes_wrong = 0;
  Fleet::QpErrors errors{};
  bool ev_floor_reached = false;
  std::vector<std::string> stuck{};
};

class LabParts {
 public:
  static constexpr std::uint32_t kProcessesMax = 16;

  // REQUIRES 1 <= processes <= kProcessesMax. Errors: kSystem.
  static Result<std::unique_ptr<LabParts>> make(const Fleet& fleet,
                                                std::uint32_t processes);
  // Kills the processes that still run.
  ~LabParts();
  LabParts(const LabParts&) = delete;
  LabParts& operator=(const LabParts&) = delete;

  // Forks; from here on there are several processes. Errors: kSystem.
  Result<void> split();
  bool is_first() const { return part_ == 0; }
  bool is_mine(fabric::HostIndex host) const { return host % processes_ == part_; }

  // say_done: all flows of this process's hosts are over. all_done: those of all processes are.
  void say_done();
  bool all_done() const;
  // Something failed somewhere, or a process died: all processes stop.
  void give_up();
  bool given_up();

  // For all but the first process: stores the report and ends this process.
  [[noreturn]] void leave(const PartReport& report);
  // For the first process: adds the reports of the others to its own. Errors: kSystem if a process
  // died.
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
  Time look_next_;  // next look for processes that died
};

}  // namespace weft::run
