// Finds what on a host reduces speed or safety. Pure: facts in, findings out. net/host_facts.h
// collects the facts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/host_facts.h"

namespace weft::cli {

// kProblem: something will be slow or unsafe, or will fail. kNote: worth knowing, but nothing
// fails.
enum class FindingLevel : std::uint8_t { kOk, kNote, kProblem };

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string name{};   // fixed names, such as "receive-buffer" or "mtu 10.0.1.7"
  std::string found{};  // the fact, as text
  std::string cost{};   // the fact's consequence; empty if kOk
  std::string mend{};   // a command that repairs it; empty if none is needed
};

// What the user wants to run, and what controllers have set.
struct DoctorQuestion {
  std::uint32_t payload = 4096;      // the setting `mtu`; 0: whatever fits
  bool secured = false;              // a job secret is set
  std::uint32_t ports_disabled = 0;  // bit N: a controller disabled port N; port 1 is in plane 0
  std::string device_flags{};        // flags for `weft ctl` that select the same device
  // programs that `weft lab` needs and that are missing
  std::vector<std::string> lab_tools_missing{};
};

// Findings in this order: buffers, planes, offloads, memory, CPUs, lab.
std::vector<Finding> diagnose(const net::HostFacts& facts, const DoctorQuestion& question);

}  // namespace weft::cli
