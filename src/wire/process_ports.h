// The UDP ports of Weft's processes. Several processes share the addresses of a host, each in a slot
// of its own; which process a packet is for or from follows from its ports (docs/decisions/0008).
#pragma once

#include <cstdint>
#include <optional>

#include "wire/frame.h"

namespace weft::wire {

inline constexpr std::uint32_t kProcessesMax = 256;
inline constexpr std::uint32_t kSourcePortsMax = 64;  // of a process

// Slot 0 listens on MRC's port, the others below the ports that the system gives out; each sends
// from ports of its own.
constexpr std::uint16_t listen_port(std::uint16_t process) {
  return process == 0 ? kUdpPort : static_cast<std::uint16_t>(14'791 + process);
}
// Which process listens on that port, if it is one of these.
constexpr std::optional<std::uint16_t> process_listening(std::uint16_t port) {
  if (port == kUdpPort) return std::uint16_t{0};
  const int process = port - 14'791;
  if (process < 1 || process >= static_cast<int>(kProcessesMax)) return std::nullopt;
  return static_cast<std::uint16_t>(process);
}
inline constexpr std::uint16_t kSourcePortsFrom = 15'104;
constexpr std::uint16_t source_port(std::uint16_t process, std::uint32_t index) {
  return static_cast<std::uint16_t>(kSourcePortsFrom + process * kSourcePortsMax + index);
}
// Which process sends from that port; 0 for one that is no process of ours.
constexpr std::uint16_t process_of(std::uint16_t source_port) {
  const int process = (source_port - kSourcePortsFrom) / static_cast<int>(kSourcePortsMax);
  const bool ours = source_port >= kSourcePortsFrom && process < static_cast<int>(kProcessesMax);
  return ours ? static_cast<std::uint16_t>(process) : std::uint16_t{0};
}

}  // namespace weft::wire
