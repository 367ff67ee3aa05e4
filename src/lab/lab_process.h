// Running programs inside a lab. LabEntry says where its namespaces have their names and how to
// enter them. run() does one job there in a child process.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/lab_keeper.h"

namespace weft::lab {

struct LabEntry {
  std::optional<LabKeeper> keeper{};  // nullopt: names are in /run/netns of this machine
  // A lock that child processes hold too, so that it is held until they have finished; -1: none.
  int lock = -1;
};

struct LabJob {
  std::string netns{};  // empty: in none of the nodes
  // Files, and the text to write to each.
  std::vector<std::pair<std::string, std::string>> writes{};
  std::vector<std::string> command{};  // empty: none
  std::string input{};                 // the command's stdin
  std::string show{};                  // a file whose text is the result
};

// Returns the output of the job. Errors: kSystem, one line with the step, the place and the reason.
Result<std::string> run(const LabEntry& door, const LabJob& job);

// Moves the calling process into a node of the lab; without a name, to where the nodes have their
// names. REQUIRES a process without threads.
Result<void> enter(const LabEntry& door, const std::string& netns);

// The tools that a lab needs.
inline constexpr const char* kLabTools[] = {"ip", "tc", "nft"};
// The absolute path of a tool. Errors: kNotFound, with the package that contains it.
Result<std::string> find_tool(const std::string& name);
// The tools that are not installed.
std::vector<std::string> missing_tools();

}  // namespace weft::lab
