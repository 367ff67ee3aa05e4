// The arguments of `weft bench write`, and the terms that its two ends exchange: the leading end
// decides what is measured, and the following end accepts that.
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

// The interface that the benchmark uses: the engine itself, or mrc.h like other programs.
enum class BenchApi : std::uint8_t { kEngine, kMrc };

struct BenchArguments {
  BenchApi api = BenchApi::kEngine;
  std::string host;
  bool listen = false, latency = false, bidirectional = false, json = false;
  bool completions = false;  // `latency` also waits for completions
  bool to_itself = false;    // both ends in one process, on one thread
  std::string idle;
  std::vector<std::string> sizes;
  std::string fabric;  // a scenario file: this end is a host in the lab of that scenario
  std::uint32_t fabric_host = 0;
  std::uint64_t iterations = 0;
  double seconds = 0;
  std::uint32_t qps = 1, clients = 1;
  // of the socket of each plane; 0: as large as the system permits
  std::uint32_t receive_buffer = 0;
  std::uint16_t control_port = 18'515;
  SettingFlags flags;
};

// One run of the benchmark: the arguments, and what follows from them on this host.
struct Bench {
  BenchArguments arguments;
  NetSettings settings;
  std::vector<os::PlaneChoice> planes;
  std::vector<std::byte> secret;               // read from the secret file
  std::optional<scenario::Scenario> fabric{};  // read from arguments.fabric
};

// What is measured. The leading end sends it to the following end.
struct Terms {
  std::uint64_t largest = 0;
  std::uint32_t qps = 1, burst = 15;
  bool latency = false, bidirectional = false;
};

inline constexpr std::uint64_t kSizeMax = 1ull << 30;
inline constexpr std::uint32_t kQpsMax = 1024;

Result<void> propose(os::Stream& stream, const Terms& terms);
// Errors: kSystem, also if the terms are outside the bounds.
Result<Terms> accept_terms(os::Stream& stream, Duration patience = os::Stream::kPatience);

// A leading end that has connected to this end and sent its terms.
struct Client {
  os::Stream stream;
  Terms terms;
  std::string from{};  // the client's address; empty: a child process of this process
};
// Waits until as many clients have connected as --clients says. A connection that is not from a
// client is closed with a warning; one that sends nothing delays the clients by only a few seconds.
// `more`: text for the end of the message that this end waits.
Result<std::vector<Client>> accept_clients(const BenchArguments& arguments,
                                           const std::string& more);

}  // namespace weft::cli
