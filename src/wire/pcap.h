// Pcap: turns frames into the bytes of a capture file with nanosecond times, which Wireshark and
// tcpdump read.
//
// Opens no file: the bytes collect in a buffer of fixed size that the owner writes out and clears.
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
  // The most that one frame may hold; the file header promises it.
  static constexpr std::size_t kFrameSizeMax = 65535;

  struct Config {
    std::size_t buffer_bytes_max = 1 << 20;  // at least one frame of kFrameSizeMax
  };

  // The buffer holds the file header already.
  explicit Pcap(const Config& config);

  // Adds one frame, without FCS. False, and nothing added, when the buffer has no room for it:
  // clear first. Times below a nanosecond are cut off. REQUIRES frame.size() <= kFrameSizeMax and
  // at >= 0.
  [[nodiscard]] bool append(Time at, ConstBytes frame);

  // What is to be written to the file next; valid until the next call of append or clear.
  std::string_view pending() const { return buffer_; }
  void clear() { buffer_.clear(); }

 private:
  void put16(std::uint16_t value);
  void put32(std::uint32_t value);

  std::size_t buffer_bytes_max_;
  std::string buffer_;
};

}  // namespace weft::wire
