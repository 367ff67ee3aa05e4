// The arguments of `weft bench write`, and the terms that its two ends exchange: the leading end
// says what is measured, the following end accepts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/net_settings.h"
#include "os/stream.h"
#include "scenario/scenario.h"

namespace weft::cli {

// The interface under the benchmark: the engine itself, or mrc.h as other programs use it.
enum class BenchApi : std::uint8_t { kEngine, kMrc };

struct BenchArguments {
  BenchApi api = BenchApi::kEngine;
  std::string host;
  bool listen = false, latency = false, bidirectional = false, json = false;
  bool completions = false;  // only with `latency`
  bool to_itself = false;    // both ends in one process, on one thread
  std::string idle;
  std::vector<std::string> sizes;
  std::string fabric;  // a scenario file: this end is in the lab of that scenario
  std::uint32_t fabric_host = 0;
  std::uint64_t iterations = 0;
  double seconds = 0;
  std::uint32_t qps = 1, clients = 1;
  std::uint32_t receive_buffer = 0;  // of each plane's socket; 0: as large as the system permits
  std::uint16_t control_port = 18'515;
  SettingFlags flags;
};

// One run of the benchmark: the arguments, and what they mean on this host.
struct Bench {
  BenchArguments arguments;
  NetSettings settings;
  std::vector<os::PlaneChoice> planes;
  std::vector<std::byte> secret;               // the content of the secret file
  std::optional<scenario::Scenario> fabric{};  // the scenario of the lab that this end is in
};

// The terms of a measurement; the leading end sends them to the following end.
struct Terms {
  std::uint64_t largest = 0;
  std::uint32_t qps = 1, burst = 15;
  bool latency = false, bidirectional = false;
};

inline constexpr std::uint64_t kSizeMax = 1ull << 30;
inline constexpr std::uint32_t kQpsMax = 1024;

Result<void> propose(os::Stream& stream, const Terms& terms);
// Errors: kSystem, also for terms that are impossible.
Result<Terms> accept_terms(os::Stream& stream, Duration patience = os::Stream::kPatience);

// A leading end that connected to this one and sent its terms.
struct Client {
  os::Stream stream;
  Terms terms;
  std::string from{};  // its address; empty: a process started by this one
};
// Waits for as many clients as --clients says. Any other connection to the port is closed with a
// warning; a connection that sends nothing delays the clients by a few seconds only. `more`: text
// that is added to the message that this end is waiting.
Result<std::vector<Client>> accept_clients(const BenchArguments& arguments,
                                           const std::string& more);

}  // namespace weft::cli
