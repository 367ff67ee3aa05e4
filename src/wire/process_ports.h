// The UDP ports of Weft's processes. Several processes share the addresses of a host. Each has a
// slot, a number on that host from which its ports follow; so the ports of a packet name the
// sending and the receiving process (docs/decisions/0008).
#pragma once

#include <cstdint>
#include <optional>

#include "wire/frame.h"

namespace weft::wire {

inline constexpr std::uint32_t kProcessesMax = 256;
inline constexpr std::uint32_t kSourcePortsMax = 64;  // per process

// Slot 0 listens on MRC's port. The others listen on ports below the range from which the system
// assigns ports. Each process sends from ports of its own.
constexpr std::uint16_t listen_port(std::uint16_t process) {
  return process == 0 ? kUdpPort : static_cast<std::uint16_t>(14'791 + process);
}
// The process that listens on that port, if any.
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
// The process that sends from that port; 0 if no process of ours does.
constexpr std::uint16_t process_of(std::uint16_t source_port) {
  const int process = (source_port - kSourcePortsFrom) / static_cast<int>(kSourcePortsMax);
  const bool ours = source_port >= kSourcePortsFrom && process < static_cast<int>(kProcessesMax);
  return ours ? static_cast<std::uint16_t>(process) : std::uint16_t{0};
}

}  // namespace weft::wire
