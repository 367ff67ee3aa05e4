// Running things inside a lab: LabDoor says where its namespaces are named and how to get there,
// run() does one piece of work there in a child process.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/lab_keeper.h"

namespace weft::lab {

struct LabDoor {
  std::optional<LabKeeper> keeper{};  // nothing: /run/netns of this machine
  // A lock that children hold too, so that it outlives us as long as they work; -1: none.
  int lock = -1;
};

struct LabJob {
  std::string netns{};                                        // empty: outside all nodes
  std::vector<std::pair<std::string, std::string>> writes{};  // file, what is written to it
  std::vector<std::string> command{};                         // empty: none
  std::string input{};                                        // the command's stdin
  std::string show{};                                         // a file whose text is the result
};

// The output of the job. Errors: kSystem, one line that says which step, where, and why.
Result<std::string> run(const LabDoor& door, const LabJob& job);

// Moves the calling process into a node of the lab, or without a name to where the nodes are named.
// REQUIRES a process without threads.
Result<void> enter(const LabDoor& door, const std::string& netns);

// What a lab calls.
inline constexpr const char* kLabTools[] = {"ip", "tc", "nft"};
// One of them as an absolute path. Errors: kNotFound, with the package that has it.
Result<std::string> find_tool(const std::string& name);
// Those that are not installed.
std::vector<std::string> missing_tools();

}  // namespace weft::lab
