// `weft ctl probe`: sends EV probes and port status updates to another host; it joins the network
// as a process of its own. `weft ctl events`: prints EV events as they arrive.
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
  std::string to{};                    // any address of the host
  std::vector<std::uint32_t> ports{};  // counted from 1; empty: all
  std::uint32_t count = 1;             // probes on each port; each uses another EV of the device
  // If not empty: `count` probes on each of these EVs, which are in the controller's form.
  std::vector<control::CtlEv> evs{};
  fabric::EvFormatMode format = fabric::EvFormatMode::kUdp;  // the format of `evs`
  // 46: send in the class of control packets; otherwise in the class of data
  std::uint32_t dscp = 0;
  // if set: send a port status update with this value instead of probes
  std::optional<std::uint32_t> port_status{};
  Duration timeout = Duration::ms(100);
};
struct ProbeAnswer {
  std::uint16_t id = 0;
  std::uint32_t port = 0;  // the sending port, counted from 1
  std::uint32_t ev = 0;    // one of the device's EVs
  std::optional<control::CtlEv> named{};
  std::optional<transport::EndpointAnswer> answer{};
};
// One entry for each request, in the order of sending. Errors: kInvalid, kSystem, kExhausted,
// kBusy.
Result<std::vector<ProbeAnswer>> run_probes(const CtlTarget& target, const ProbeRequest& request);

struct EventRequest {
  std::uint64_t count = 0;  // end after so many events; 0: do not end
  std::optional<Duration> timeout{};
  bool json = false;
};
// Prints each event as a line. Errors: kSystem.
Result<void> print_events(CtlTarget& target, const EventRequest& request);

}  // namespace weft::cli
