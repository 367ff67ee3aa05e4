// Runs programs inside a lab. LabEntry says how to enter the lab's namespaces. run() does one job
// in a child process there.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/lab_keeper.h"

namespace weft::lab {

struct LabEntry {
  std::optional<LabKeeper> keeper{};  // nullopt: the namespaces have names in /run/netns
  // A lock that child processes inherit, so that it is held until they have finished; -1: none.
  int lock = -1;
};

struct LabJob {
  std::string netns{};  // the namespace of a node; empty: none
  // Files, and the text to write to each.
  std::vector<std::pair<std::string, std::string>> writes{};
  std::vector<std::string> command{};  // empty: none
  std::string input{};                 // the command's stdin
  std::string show{};                  // a file whose text is returned
};

// Does the job and returns its output. Errors: kSystem, in one line with the step, the place and
// the reason.
Result<std::string> run(const LabEntry& lab_entry, const LabJob& job);

// Moves the calling process into the namespace `netns` of the lab; if it is empty, to where the
// names of the namespaces are valid. REQUIRES a process without threads.
Result<void> enter(const LabEntry& lab_entry, const std::string& netns);

// The tools that a lab needs.
inline constexpr const char* kLabTools[] = {"ip", "tc", "nft"};
// The absolute path of a tool. Errors: kNotFound, with the name of the package that contains the
// tool.
Result<std::string> find_tool(const std::string& name);
// Those of kLabTools that are not installed.
std::vector<std::string> missing_tools();

}  // namespace weft::lab
