#include "cli/ctl_probe.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "cli/ctl_words.h"
#include "control/ctl_agent.h"
#include "control/ctl_events.h"
#include "device/peer_planes.h"
#include "engine/process_config.h"
#include "net/host_memory.h"
#include "net/udp_world.h"
#include "os/address.h"
#include "os/clock.h"
#include "os/interruption.h"
#include "transport/endpoint.h"

namespace weft::cli {
namespace {

constexpr std::uint32_t kRequestsMax = 1024;

// One request, and the EV on which it is sent.
struct RequestOnEv {
  fabric::Ev ev{};
  std::optional<control::CtlEv> named{};
};

Error no_port(const std::string& flag, std::uint32_t port, std::size_t count) {
  return {ErrorKind::kInvalid, fmt::format("{} {}: expected 1 to {}", flag, port, count)};
}

// Requests on several of the device's EVs of each port. If the user names no port: on all enabled
// ports.
Result<std::vector<RequestOnEv>> requests_by_port(const std::vector<fabric::Ev>& evs,
                                                  std::size_t port_count,
                                                  const ProbeRequest& request,
                                                  std::uint32_t disabled) {
  std::vector<std::uint32_t> ports = request.ports;
  for (std::uint32_t port = 1; request.ports.empty() && port <= port_count; ++port) {
    if ((disabled >> port & 1) == 0) ports.push_back(port);
  }
  std::vector<RequestOnEv> out;
  for (const std::uint32_t port : ports) {
    if (port == 0 || port > port_count) return no_port("--port", port, port_count);
    std::vector<fabric::Ev> of_port;
    for (const fabric::Ev& ev : evs) {
      if (ev.port == port - 1) of_port.push_back(ev);
    }
    for (std::uint32_t i = 0; i < request.count; ++i)
      out.push_back({.ev = of_port[i % of_port.size()]});
  }
  return out;
}

// Requests on EVs in the controller's form.
Result<std::vector<RequestOnEv>> requests_by_ev(const std::vector<fabric::Ev>& evs,
                                                std::size_t port_count, const ProbeRequest& request,
                                                control::ControllerState& state) {
  std::vector<RequestOnEv> out;
  for (const control::CtlEv& named : request.evs) {
    const auto ev = control::device_ev(state, evs, request.format, named);
    if (!ev && ev.error().code == EINVAL)
      return no_port("--ev " + text_of(named) + ": port", named.port, port_count);
    if (!ev) return from_ctl(ev.error());
    for (std::uint32_t i = 0; i < request.count; ++i) out.push_back({.ev = *ev, .named = named});
  }
  return out;
}

struct Asked {
  std::vector<transport::EndpointAsk> asks{};
  std::vector<ProbeAnswer> rows{};
};

Result<Asked> plan(const net::UdpWorld& world, const ProbeRequest& request,
                   control::ControllerState& state) {
  const auto ours = world.addresses();
  WEFT_TRY(const Ipv6 to, os::parse_address(request.to));
  WEFT_TRY(const transport::PeerInfo peer,
           device::peer_planes(ours, {.gid = to, .qpn = device::kHostQpn}));
  const auto model = state.snapshot();
  if (!model) return from_ctl(model.error());
  const std::uint32_t disabled = (*model)->ports_disabled;
  WEFT_TRY(const auto ways, request.evs.empty()
                                ? requests_by_port(world.evs(), ours.size(), request, disabled)
                                : requests_by_ev(world.evs(), ours.size(), request, state));
  if (ways.empty())
    return Error{ErrorKind::kSystem, "all ports are disabled; `weft ctl port 1 --enable`"};
  for (const RequestOnEv& way : ways) {
    const std::uint32_t port = way.ev.port + 1u;
    if ((disabled >> port & 1) == 0) continue;
    return Error{ErrorKind::kSystem,
                 fmt::format("port {} is disabled; `weft ctl port {} --enable`, or take others "
                             "(--port)",
                             port, port)};
  }
  if (ways.size() > kRequestsMax) {
    return Error{ErrorKind::kInvalid, fmt::format("at most {} requests at a time", kRequestsMax)};
  }
  const bool control = request.port_status || request.dscp == 46;
  Asked out;
  for (const RequestOnEv& way : ways) {
    const auto id = static_cast<std::uint16_t>(out.asks.size() + 1);
    out.asks.push_back(
        {.id = id,
         .op =
             request.port_status ? wire::EndpointOp::kPortStatusUpdate : wire::EndpointOp::kEvProbe,
         .to = peer.ports[way.ev.port],
         .port = way.ev.port,
         .ev = way.ev.value,
         .port_status = request.port_status.value_or(0),
         .traffic = control ? transport::AskClass::kControl : transport::AskClass::kData});
    out.rows.push_back(
        {.id = id, .port = way.ev.port + 1u, .ev = way.ev.value, .named = way.named});
  }
  return out;
}

}  // namespace

Result<std::vector<ProbeAnswer>> run_probes(const CtlTarget& target, const ProbeRequest& request) {
  if (!target.settings.secret_file.empty()) {
    return Error{
        ErrorKind::kInvalid,
        "with a secret only processes that have QPs with each other answer probes; look at "
        "their EVs instead (weft ctl ev show, weft ctl events)"};
  }
  WEFT_TRY(net::UdpWorldConfig config, engine::world_config(target.settings));
  config.shared_memory = false;
  net::HostMemory memory(1, 1);
  const auto opened = net::UdpWorld::open(config);
  if (!opened && opened.error().kind == ErrorKind::kBusy) {
    return Error{
        ErrorKind::kBusy,
        "a program has the device, which with peers = mrc is for one process at a time; let "
        "it probe itself (mrc_ctl_ep_batch_send_wait), or end it"};
  }
  if (!opened) return opened.error();
  net::UdpWorld* const world = opened->get();
  WEFT_TRY(Asked asked, plan(*world, request, *target.state));
  transport::EndpointConfig endpoint_config;
  endpoint_config.port_count = world->port_count();
  endpoint_config.ask_count_max = kRequestsMax;
  endpoint_config.control_queue_max = kRequestsMax;
  const auto addresses = world->addresses();
  std::copy(addresses.begin(), addresses.end(), endpoint_config.ports.begin());
  transport::Endpoint endpoint(endpoint_config, memory, nullptr);
  WEFT_CHECK(world->attach(addresses, endpoint));
  world->pass();
  const Time limit = world->now() + request.timeout;
  for (const transport::EndpointAsk& ask : asked.asks) {
    WEFT_CHECK(endpoint.post_endpoint_request(world->now(), ask));
  }
  std::size_t missing = asked.asks.size();
  std::array<transport::EndpointAnswer, 64> answers;
  while (missing > 0 && world->now() < limit) {
    world->progress(limit);
    for (std::size_t n; (n = endpoint.poll_endpoint_answers(answers)) > 0; missing -= n) {
      for (std::size_t i = 0; i < n; ++i) asked.rows[answers[i].id - 1u].answer = answers[i];
    }
  }
  return std::move(asked.rows);
}

Result<void> print_events(CtlTarget& target, const EventRequest& request) {
  if (const auto may = target.state->check_permission(); !may) return from_ctl(may.error());
  WEFT_TRY(os::FileDescriptor directory,
           target.state->events_directory(control::ControllerState::Make::kYes));
  WEFT_TRY(const auto queue, control::EvEventQueue::open(std::move(directory)));
  // Processes look for new event listeners when the state's generation changes.
  if (const auto told = target.state->touch(); !told) return from_ctl(told.error());
  os::catch_interruption();
  const Time begin = os::clock_now();
  std::array<control::EvEvent, 64> events;
  for (std::uint64_t seen = 0; request.count == 0 || seen < request.count;) {
    if (os::interrupted()) return {};
    const std::size_t wanted = request.count == 0
                                   ? events.size()
                                   : std::min<std::uint64_t>(events.size(), request.count - seen);
    const std::size_t n = queue->poll(std::span(events).first(wanted));
    for (std::size_t i = 0; i < n; ++i) {
      const control::EvEvent& e = events[i];
      const std::string state(config::name_of(kEvStates, e.state));
      if (request.json) {
        fmt::print("{}\n", nlohmann::json{{"profile", e.profile_id},
                                          {"ev", text_of(e.ev)},
                                          {"state", state},
                                          {"dropped", e.drop_count}}
                               .dump());
      } else {
        fmt::print("profile {}  {}  {}  dropped {}\n", e.profile_id, text_of(e.ev), state,
                   e.drop_count);
      }
    }
    if (n > 0) std::fflush(stdout);
    seen += n;
    if (n > 0) continue;
    std::int64_t wait_ms = 100;
    if (request.timeout) {
      const Duration left = *request.timeout - (os::clock_now() - begin);
      if (left <= Duration()) {
        if (request.count == 0) return {};
        return Error{ErrorKind::kSystem,
                     fmt::format("{} of {} events came in time", seen, request.count)};
      }
      wait_ms = std::min<std::int64_t>(wait_ms, left.us() / 1000 + 1);
    }
    pollfd what{.fd = queue->fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&what, 1, static_cast<int>(wait_ms));
  }
  return {};
}

}  // namespace weft::cli
