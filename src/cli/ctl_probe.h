// `weft ctl probe`: sends EV probes and port status updates to another host, from a slot of its
// own. `weft ctl events`: prints EV events as they happen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/ctl_target.h"
#include "control/ctl_model.h"
#include "transport/endpoint_asks.h"

namespace weft::cli {

struct ProbeRequest {
  std::string to{};                    // an address of the host, in any plane
  std::vector<std::uint32_t> ports{};  // from 1; empty: all
  std::uint32_t count = 1;             // probes on each port, each on another EV of the device
  // If not empty: `count` probes on each of these EVs, named as controllers name them.
  std::vector<control::CtlEv> evs{};
  fabric::EvFormatMode format = fabric::EvFormatMode::kUdp;  // the format of `evs`
  std::uint32_t dscp = 0;  // 46: the class of control packets; else the class of data
  std::optional<std::uint32_t> port_status{};  // if set: a port status update, no probes
  Duration timeout = Duration::ms(100);
};
struct ProbeAnswer {
  std::uint16_t id = 0;
  std::uint32_t port = 0;  // the port that sent the request, from 1
  std::uint32_t ev = 0;    // an EV of the device
  std::optional<control::CtlEv> named{};
  std::optional<transport::EndpointAnswer> answer{};
};
// One row for each request, in the order of sending. Errors: kInvalid, kSystem, kExhausted, kBusy.
Result<std::vector<ProbeAnswer>> run_probes(const CtlTarget& target, const ProbeRequest& request);

struct EventRequest {
  std::uint64_t count = 0;  // ends after that many events; 0: never
  std::optional<Duration> timeout{};
  bool json = false;
};
// Prints each event as a line. Errors: kSystem.
Result<void> print_events(CtlTarget& target, const EventRequest& request);

}  // namespace weft::cli
