// What on a host costs speed or safety: facts in, findings out. Pure; src/net/host_facts.h finds the
// facts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/host_facts.h"

namespace weft::cli {

// kProblem: something will be slow, unsafe or fail. kNote: worth knowing, nothing fails.
enum class FindingLevel : std::uint8_t { kOk, kNote, kProblem };

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string name{};   // stable, as "receive-buffer", "mtu 10.0.1.7"
  std::string found{};  // what there is
  std::string cost{};   // what it costs; empty when ok
  std::string mend{};   // the command that mends it; empty where there is nothing to do
};

// What is wanted of the host, and what a controller said of it.
struct DoctorQuestion {
  std::uint32_t payload = 4096;      // the MTU setting; 0: whatever fits
  bool secured = false;              // there is a job secret
  std::uint32_t ports_disabled = 0;  // bit N: port N, by `weft ctl port`; port 1 is the first plane
  std::string device_flags{};        // what `weft ctl` needs besides to mean the same device
  std::vector<std::string> lab_tools_missing{};  // programs that `weft lab` calls
};

// In a fixed order: buffers, planes, offloads, memory, CPUs, lab.
std::vector<Finding> diagnose(const net::HostFacts& facts, const DoctorQuestion& question);

}  // namespace weft::cli
