// LiveFabricLoop: a LiveFabric between its hosts, in real time.
//
// It sleeps until a packet comes, the next packet is due, or somebody asks over the control socket:
//
//   counters              what it did, as one line of JSON
//   links                 one line a link: its number, then what it connects
//   fault EVENT           carries out an event of fault_text.h, now; "ok", or "error: ..."
//   heal                  ends every impairment, whoever began it
//   delay link=N us=N     adds a delay to all packets on that link
//   rate link=N bps=N     holds it to that rate, from 1 Mb/s on
//   traffic               one line a link: number, packets, bytes, trims, marks, drops
//
// A link towards a host that goes down takes the host's carrier; where the event says carrier=0 the
// host has it, then and later. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/control_socket.h"
#include "softswitch/fabric_edge.h"
#include "softswitch/live_fabric.h"

namespace weft::softswitch {

struct LiveFabricLoopOptions {
  // Looks instead of sleeping when a packet is due within that: exact to microseconds, and a core.
  Duration spin{};
};

class LiveFabricLoop {
 public:
  // `control`: where it is asked; without it nobody can.
  LiveFabricLoop(const LiveFabricConfig& config, std::unique_ptr<FabricEdge> edge,
                 std::optional<os::ControlSocket> control,
                 const LiveFabricLoopOptions& options = {});

  // Until `stop_fd` can be read.
  void run(int stop_fd);

  // The fabric's counters and how late packets left, as one line of JSON.
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
  void take_precedence();

  LiveFabricLoopOptions options_;
  std::string_view precedence_ = "none";  // over other processes: realtime, nice or none
  LiveFabric fabric_;
  std::unique_ptr<FabricEdge> edge_;
  std::optional<os::ControlSocket> control_;
  std::array<FabricEdge::Incoming, FabricEdge::kBatch> in_;
  std::array<LiveFabric::Delivery, FabricEdge::kBatch> out_;
  // Between a packet's time and its sending.
  struct Lateness {
    std::uint64_t packets = 0, above_1ms = 0;
    Duration sum, most;
  } late_;
};

}  // namespace weft::softswitch
