// LiveFabricLoop: runs a LiveFabric between its hosts, in real time.
//
// It sleeps until a packet arrives, the next packet is due, or a request comes over the control
// socket:
//
//   counters              its counters, as one line of JSON
//   links                 one line per link: its number, then its two ends
//   fault EVENT           carries out an event of fault_text.h now; "ok", or "error: ..."
//   heal                  ends every impairment, whichever client started it
//   delay link=N us=N     adds a delay to all packets on that link
//   rate link=N bps=N     limits the link to that rate, at least 1 Mb/s
//   traffic               one line per link: number, packets, bytes, trims, marks, drops
//
// A link down towards a host takes the host's carrier away. With carrier=0 the host keeps its
// carrier, and gets it back if it had none. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/control_socket.h"
#include "os/waiter.h"
#include "softswitch/fabric_edge.h"
#include "softswitch/live_fabric.h"

namespace weft::softswitch {

struct LiveFabricLoopOptions {
  // If a packet is due within this time, the loop spins instead of sleeping. Spinning is exact to
  // microseconds, but uses a whole core.
  Duration spin{};
};

class LiveFabricLoop {
 public:
  // `control` is the socket for requests; if absent, no requests are accepted.
  LiveFabricLoop(const LiveFabricConfig& config, std::unique_ptr<FabricEdge> edge,
                 std::optional<os::ControlSocket> control,
                 const LiveFabricLoopOptions& options = {});

  // Runs until `stop_fd` is readable.
  void run(int stop_fd);

  // The fabric's counters and the lateness of sent packets, as one line of JSON.
  std::string counters_json();

 private:
  void take_packets();
  void give_packets();
  void answer_requests();
  std::string answer_to(std::string_view request);
  Result<void> carry_out(std::string_view event);
  Result<void> set_delay(std::string_view arguments);
  Result<void> set_rate(std::string_view arguments);
  bool wait(int stop_fd);
  void raise_priority();

  LiveFabricLoopOptions options_;
  os::Waiter waiter_;
  std::string_view precedence_ = "none";  // over other processes: "realtime", "nice" or "none"
  LiveFabric fabric_;
  std::unique_ptr<FabricEdge> edge_;
  std::optional<os::ControlSocket> control_;
  std::array<FabricEdge::Incoming, FabricEdge::kBatch> in_;
  std::array<LiveFabric::Delivery, FabricEdge::kBatch> out_;
  // How late packets were sent: the time between a packet's due time and its sending.
  struct Lateness {
    std::uint64_t packets = 0, above_1ms = 0;
    Duration sum, most;
  } late_;
};

}  // namespace weft::softswitch
