// Session: what a test runs with: the options of the run, the library, and the time limit.
//
// The library is loaded at the first call of library(), so that a test can fork before that
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
  std::string device;  // empty: the first device that supports MRC
  int gid_index = 3;
  milliseconds timeout{20'000};  // for each test
  // For wire tests. If empty or 0, values that fit the device are chosen (docs/conformance.md).
  std::vector<Ipv6> tester_addresses;  // one for each port of the device
  std::vector<Ipv6> device_addresses;  // one for each port of the device
  std::uint16_t tester_port = 4791;    // UDP port to which the device sends
  std::uint16_t device_port = 0;       // UDP port at which the device receives
  std::optional<IcrcCover> icrc;       // not set: as found in the device's first packet
  std::uint8_t dscp_data = 4, dscp_control = 46, dscp_trimmed = 12, dscp_trimmed_last_hop = 16;
};

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options), ends_at_(Clock::now() + options.timeout * 3 / 4) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Options& options() const { return options_; }
  // Throws SuiteError if the library cannot be loaded.
  const Library& library();
  // When every wait of the test must end. This is earlier than the runner's time limit, so that the
  // test can fail with a reason.
  Clock::time_point ends_at() const { return ends_at_; }
  bool is_over() const { return Clock::now() > ends_at_; }
  // True if two processes of this test use the device at the same time. Not every device permits
  // that.
  bool shares_device() const { return shares_device_; }
  void share_device() { shares_device_ = true; }

 private:
  const Options& options_;
  Clock::time_point ends_at_;
  std::optional<Library> library_;
  bool shares_device_ = false;
};

}  // namespace weft::conformance
