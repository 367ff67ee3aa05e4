// Judges what on a host costs speed or safety. Pure: facts in, findings out; src/net/host_facts.h
// collects the facts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/host_facts.h"

namespace weft::cli {

// kProblem: something will be slow, be unsafe or fail. kNote: worth knowing, but nothing fails.
enum class FindingLevel : std::uint8_t { kOk, kNote, kProblem };

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string name{};   // stable, such as "receive-buffer" or "mtu 10.0.1.7"
  std::string found{};  // the fact
  std::string cost{};   // its consequence; empty if kOk
  std::string mend{};   // the command that repairs it; empty if none is needed
};

// The user's requirements, and the settings of controllers.
struct DoctorQuestion {
  std::uint32_t payload = 4096;      // the MTU setting; 0: whatever fits
  bool secured = false;              // a job secret is set
  std::uint32_t ports_disabled = 0;  // bit N: `weft ctl` disabled port N; port 1 is plane 0
  std::string device_flags{};        // flags with which `weft ctl` selects the same device
  std::vector<std::string> lab_tools_missing{};  // programs that `weft lab` would call
};

// In a fixed order: buffers, planes, offloads, memory, CPUs, lab.
std::vector<Finding> diagnose(const net::HostFacts& facts, const DoctorQuestion& question);

}  // namespace weft::cli
