#include "cli/bench_silence.h"

#include <fmt/core.h>

#include "net/steering.h"
#include "os/clock.h"
#include "os/interfaces.h"
#include "os/say.h"

namespace weft::cli {
namespace {

constexpr Duration kQuietFor = Duration::s(2);

// "UDP port 4791 of 10.0.1.7, 10.0.2.7": a process has the same port number in all planes.
std::string text_of_ports(const std::vector<world::Address>& ports) {
  std::string out = fmt::format("UDP port {} of", wire::listen_port(ports[0].process));
  for (const world::Address& port : ports)
    out += (&port == &ports[0] ? " " : ", ") + os::text_of(port.ip());
  return out;
}

}  // namespace

Silence::Silence(BenchEnd& end, const BenchLink& link)
    : end_(end), look_at_(os::clock_now() + kQuietFor) {
  if (!link.over_shared_memory) peer_ = text_of_ports(link.peer_ports);
}

bool Silence::is_silent() const {
  return !peer_.empty() && value_of(end_.counters(), "net.packets_received") == 0;
}

void Silence::check_once(Time now) {
  if (now < look_at_) return;
  look_at_ = kNever;
  if (is_silent()) os::say("nothing answers by UDP yet; tried: {}\n", peer_);
}

Error Silence::explain(const Error& error) const {
  if (!is_silent()) return error;
  return {error.kind, fmt::format("{}: no packet came from {}; a filter may drop them: UDP 4791 "
                                  "and 14792 to 31487 must pass at both ends (`nft list ruleset`)",
                                  error.message, peer_)};
}

}  // namespace weft::cli
