// CaptureFile: writes the packets that simulated hosts sent, as a pcap file of Ethernet/IPv6/UDP
// frames. Payload that has no real bytes is replaced by a pattern computed from its address.
#pragma once

#include <fstream>
#include <span>
#include <string>

#include "scenario/scenario.h"
#include "sim/sim_world.h"
#include "wire/pcap.h"

namespace weft::run {

class CaptureFile {
 public:
  CaptureFile(const std::string& path, const scenario::Scenario& scenario);
  bool is_open() const { return file_.is_open() && file_.good(); }
  void write(std::span<const sim::SimWorld::Captured> packets);

 private:
  std::ofstream file_;
  wire::Pcap pcap_;
  bool srv6_;
};

}  // namespace weft::run
