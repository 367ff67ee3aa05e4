// What `weft bench write` is asked for, and what its two ends tell each other of it: the one that leads
// says what is measured, the other follows.
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

// What the benchmark is written against: the engine itself, or mrc.h as other programs are.
enum class BenchApi : std::uint8_t { kEngine, kMrc };

struct BenchArguments {
  BenchApi api = BenchApi::kEngine;
  std::string host;
  bool listen = false, latency = false, bidirectional = false, json = false;
  bool completions = false;  // with latency
  bool to_itself = false;    // both ends in one process, on one thread
  std::string idle;
  std::vector<std::string> sizes;
  std::string fabric;  // a scenario: the lab that this end is in
  std::uint32_t fabric_host = 0;
  std::uint64_t iterations = 0;
  double seconds = 0;
  std::uint32_t qps = 1, clients = 1;
  std::uint32_t receive_buffer = 0;  // of each plane's socket; 0: as much as there is
  std::uint16_t control_port = 18'515;
  SettingFlags flags;
};

// How one run is done: what was asked for, and what it means here.
struct Bench {
  BenchArguments arguments;
  NetSettings settings;
  std::vector<os::PlaneChoice> planes;
  std::vector<std::byte> secret;               // what is in the file of it
  std::optional<scenario::Scenario> fabric{};  // the one of the lab that this end is in
};

// What is measured: the one that leads says it, the other follows.
struct Terms {
  std::uint64_t largest = 0;
  std::uint32_t qps = 1, burst = 15;
  bool latency = false, bidirectional = false;
};

inline constexpr std::uint64_t kSizeMax = 1ull << 30;
inline constexpr std::uint32_t kQpsMax = 1024;

Result<void> propose(os::Stream& stream, const Terms& terms);
// Errors: kSystem, also for terms that cannot be.
Result<Terms> accept_terms(os::Stream& stream, Duration patience = os::Stream::kPatience);

// One that dialled and said what is measured.
struct Client {
  os::Stream stream;
  Terms terms;
  std::string from{};  // its address; empty: a process of our own
};
// Waits for so many as --clients says. Strangers on the port are sent away with a warning: one that
// says nothing holds up the others for some seconds only. `more`: what else the person who waits is
// told.
Result<std::vector<Client>> accept_clients(const BenchArguments& arguments,
                                           const std::string& more);

}  // namespace weft::cli
