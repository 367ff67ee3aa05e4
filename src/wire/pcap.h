// Pcap: turns frames into the bytes of a capture file with nanosecond times, for Wireshark and
// tcpdump.
//
// It opens no file: bytes are collected in a buffer of bounded size, which the owner writes to a
// file and clears.
//
//   Pcap pcap({});
//   while (!pcap.append(now, frame)) { file.write(pcap.pending()); pcap.clear(); }
//   file.write(pcap.pending());
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"

namespace weft::wire {

class Pcap {
 public:
  // The largest frame. The file header states it as the snapshot length.
  static constexpr std::size_t kFrameSizeMax = 65535;

  struct Config {
    std::size_t buffer_bytes_max = 1 << 20;  // must hold at least one frame of kFrameSizeMax
  };

  // After construction the buffer holds the file header.
  explicit Pcap(const Config& config);

  // Adds one frame, without FCS. Returns false and adds nothing if the buffer has no room: write
  // and clear it first. Times are rounded down to nanoseconds. REQUIRES frame.size() <=
  // kFrameSizeMax and at >= 0.
  [[nodiscard]] bool append(Time at, ConstBytes frame);

  // The bytes to write to the file next; valid until the next call of append or clear.
  std::string_view pending() const { return buffer_; }
  void clear() { buffer_.clear(); }

 private:
  void put16(std::uint16_t value);
  void put32(std::uint32_t value);

  std::size_t buffer_bytes_max_;
  std::string buffer_;
};

}  // namespace weft::wire
