// `weft ctl probe`: EV probes and port status updates to another host, from a slot of its own on the
// network. And `weft ctl events`: EV events as they come.
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
  std::uint32_t count = 1;             // of each port, each by another EV of the device
  std::vector<control::CtlEv> evs{};   // or as many by each of these, as controllers name them
  fabric::EvFormatMode format = fabric::EvFormatMode::kUdp;  // of those
  std::uint32_t dscp = 0;                      // 46: with the control packets; else with the data
  std::optional<std::uint32_t> port_status{};  // a port status update instead of probes
  Duration timeout = Duration::ms(100);
};
struct ProbeAnswer {
  std::uint16_t id = 0;
  std::uint32_t port = 0;  // asked over, from 1
  std::uint32_t ev = 0;    // of the device
  std::optional<control::CtlEv> named{};
  std::optional<transport::EndpointAnswer> answer{};
};
// One row a request, in the order they were sent. Errors: kInvalid, kSystem, kExhausted, kBusy.
Result<std::vector<ProbeAnswer>> run_probes(const CtlTarget& target, const ProbeRequest& request);

struct EventRequest {
  std::uint64_t count = 0;  // after so many it ends; 0: never
  std::optional<Duration> timeout{};
  bool json = false;
};
// Prints each event as a line. Errors: kSystem.
Result<void> print_events(CtlTarget& target, const EventRequest& request);

}  // namespace weft::cli
