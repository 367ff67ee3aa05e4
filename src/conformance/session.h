// Session: the environment of a test: the options of the run, the library, and the time limit.
//
// The library is loaded at the first call of library(), so that a test may fork before
// (companion.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "conformance/library.h"
#include "wire/icrc.h"

namespace weft::conformance {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

using wire::IcrcCover;

struct Options {
  std::string library;
  std::string device;  // empty: the first MRC device
  int gid_index = 3;
  milliseconds timeout{20'000};  // of one test
  // For wire tests. Empty or 0: chosen to fit the device (docs/conformance.md).
  std::vector<Ipv6> tester_addresses;  // the tester's, one per port of the device
  std::vector<Ipv6> device_addresses;  // the device's, one per port
  std::uint16_t tester_port = 4791;    // destination port of the device's packets
  std::uint16_t device_port = 0;       // port on which the device listens
  std::optional<IcrcCover> icrc;       // none: as observed in the device's first packet
  std::uint8_t dscp_data = 4, dscp_control = 46, dscp_trimmed = 12, dscp_trimmed_last_hop = 16;
};

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options), ends_at_(Clock::now() + options.timeout * 3 / 4) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Options& options() const { return options_; }
  // Throws SuiteError if it cannot be loaded.
  const Library& library();
  // Every wait of the test ends by then, so that it fails with a reason before the runner's time
  // limit.
  Clock::time_point ends_at() const { return ends_at_; }
  bool is_over() const { return Clock::now() > ends_at_; }
  // Two processes of this test use the device at the same time, which not every device permits.
  bool shares_device() const { return shares_device_; }
  void share_device() { shares_device_ = true; }

 private:
  const Options& options_;
  Clock::time_point ends_at_;
  std::optional<Library> library_;
  bool shares_device_ = false;
};

}  // namespace weft::conformance
