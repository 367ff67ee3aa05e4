// Session: what a test has to work with: the options of the run, the library, and a clock to wait by.
//
// The library is loaded when it is first asked for, so that a test may fork before (companion.h).
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
  std::string device;  // empty: the first that speaks MRC
  int gid_index = 3;
  milliseconds timeout{20'000};  // of one test
  // The wire half. Empty or 0: as fits the device (docs/conformance.md).
  std::vector<Ipv6> tester_addresses;  // ours, one a port of the device
  std::vector<Ipv6> device_addresses;  // the device's, one a port
  std::uint16_t tester_port = 4791;    // where the device sends to
  std::uint16_t device_port = 0;       // where it listens
  std::optional<IcrcCover> icrc;       // none: as the device's first packet has it
  std::uint8_t dscp_data = 4, dscp_control = 46, dscp_trimmed = 12, dscp_trimmed_last_hop = 16;
};

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options), ends_at_(Clock::now() + options.timeout * 3 / 4) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Options& options() const { return options_; }
  // Throws Trouble when it cannot be loaded.
  const Library& library();
  // A wait that is not over then has failed; before the runner loses patience.
  Clock::time_point ends_at() const { return ends_at_; }
  bool is_over() const { return Clock::now() > ends_at_; }
  // Two processes of this test use the device at once, which not every device allows.
  bool shares_device() const { return shares_device_; }
  void share_device() { shares_device_ = true; }

 private:
  const Options& options_;
  Clock::time_point ends_at_;
  std::optional<Library> library_;
  bool shares_device_ = false;
};

}  // namespace weft::conformance
