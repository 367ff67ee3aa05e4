#include "cli/bench_terms.h"

#include <fmt/core.h>

#include <array>

#include "base/bytes.h"
#include "engine/net_hello.h"
#include "os/interruption.h"
#include "os/log.h"
#include "os/say.h"

namespace weft::cli {
namespace {

constexpr std::uint32_t kMagic = 0x7765'6600;  // "wef" in ASCII; the last byte is the version
static_assert(engine::kBenchVersion < 0x100);

std::vector<Client> still_there(std::vector<Client> clients) {
  std::vector<Client> out;
  for (Client& client : clients) {
    if (!client.stream.has_ended()) out.push_back(std::move(client));
  }
  if (const std::size_t gone = clients.size() - out.size(); gone > 0) {
    os::log(os::LogLevel::kWarn, "{} of {} clients went before all had come; still waiting", gone,
            clients.size());
  }
  return out;
}

}  // namespace

Result<void> propose(os::Stream& stream, const Terms& terms) {
  std::array<std::byte, 24> bytes{};
  const Bytes out(bytes);
  base::store64(out, 0, terms.largest);
  base::store32(out, 8, terms.qps);
  base::store32(out, 12, kMagic | engine::kBenchVersion);
  base::store32(out, 16, terms.burst);
  base::store32(out, 20, (terms.latency ? 1u : 0u) | (terms.bidirectional ? 2u : 0u));
  return stream.send(bytes);
}

Result<Terms> accept_terms(os::Stream& stream, Duration patience) {
  std::array<std::byte, 24> bytes;
  WEFT_CHECK(stream.receive(bytes, patience));
  const ConstBytes in(bytes);
  const std::uint32_t magic = base::load32(in, 12), flags = base::load32(in, 20);
  if (magic != (kMagic | engine::kBenchVersion)) {
    if ((magic & ~0xffu) != kMagic)
      return Error{ErrorKind::kSystem, "it is not weft, or one of an older version"};
    // its version tells the client which version this end has
    WEFT_CHECK(stream.send(engine::Hello{}.to_bytes()));
    return Error{ErrorKind::kSystem,
                 fmt::format("it speaks version {}, this end {}; install the same weft on both",
                             magic & 0xffu, engine::kBenchVersion)};
  }
  const Terms terms{.largest = base::load64(in, 0),
                    .qps = base::load32(in, 8),
                    .burst = base::load32(in, 16),
                    .latency = (flags & 1) != 0,
                    .bidirectional = (flags & 2) != 0};
  const bool possible = terms.largest >= 1 && terms.largest <= kSizeMax && terms.qps >= 1 &&
                        terms.qps <= kQpsMax && terms.burst >= 1 && terms.burst <= 64;
  if (!possible) return Error{ErrorKind::kSystem, "the other end asks for what cannot be"};
  return terms;
}

Result<std::vector<Client>> accept_clients(const BenchArguments& arguments,
                                           const std::string& more) {
  constexpr Duration kStrangerPatience = Duration::s(3);
  WEFT_TRY(os::Listener listener, os::Listener::open(arguments.control_port, arguments.clients));
  os::say("waiting for `weft bench write HOST` on TCP port {}{}\n", arguments.control_port, more);
  std::vector<Client> clients;
  while (clients.size() < arguments.clients) {
    WEFT_TRY(os::Listener::Caller caller, listener.accept());
    const auto terms = accept_terms(caller.stream, kStrangerPatience);
    if (os::interrupted()) return os::interruption();
    if (terms) {
      clients.push_back({.stream = std::move(caller.stream), .terms = *terms, .from = caller.from});
      clients = still_there(std::move(clients));
      if (arguments.clients > 1)
        os::say("{} has come: {} of {} clients are here\n", caller.from, clients.size(),
                arguments.clients);
    } else {
      os::log(os::LogLevel::kWarn, "{} on TCP port {} is no `weft bench write`: {}; still waiting",
              caller.from, arguments.control_port, terms.error().message);
    }
  }
  return clients;
}

}  // namespace weft::cli
