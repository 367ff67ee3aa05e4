// UdpWorld, events: reports of the sockets, links and rings, passed to the node.
#include <algorithm>

#include "fabric/address.h"
#include "net/srv6_form.h"
#include "net/udp_world.h"
#include "os/interfaces.h"
#include "os/log.h"
#include "os/network_namespace.h"

namespace weft::net {

bool UdpWorld::handle_events(std::span<const SocketWatch::Event> events) {
  bool moved = false;
  for (const SocketWatch::Event& event : events) {
    switch (event.source) {
      case SocketWatch::Source::kPlane:
        moved |=
            receive(event.plane, events.size() == 1 ? order_.runs_max() : PollOrder::kRunsWhenMany);
        break;
      case SocketWatch::Source::kPlaneHasRoom:
        // The socket reports an error whenever an ICMP error is queued, whether it has room or not.
        if (event.error) poll_refusals(event.plane);
        moved |= sender_->retry_held(now_, event.plane);
        break;
      case SocketWatch::Source::kHostListener:
        moved |= receive_for_host(event.plane);
        break;
      case SocketWatch::Source::kSharedMemory:
        shm_->handle_events();
        moved = true;
        break;
      case SocketWatch::Source::kLinks:
        report_link_changes();
        moved = true;
        break;
      case SocketWatch::Source::kWake:
        moved = true;
        break;
    }
  }
  return moved;
}

// --- packets -----------------------------------------------------------------------------------

bool UdpWorld::receive(std::uint32_t index, std::size_t runs_max) {
  Plane& plane = planes_[index];
  const auto runs = receiver_->receive(plane, runs_max);
  if (runs.empty()) return false;
  const os::UdpSocket::Incoming& first = runs[0];
  const bool answers = static_cast<world::Dscp>(first.traffic_class >> 2) == world::Dscp::kControl;
  order_.note_plane(
      now_, index,
      {.count = runs.size(), .size = first.size, .segment = first.segment, .answers = answers});
  is_from_here_ = first.from == plane.address();
  ++counters_.receives;
  if (plane.overflows_new() != 0) report_overflow(index);
  const auto in = receiver_->datagrams(now_, {.port = static_cast<world::PortIndex>(index),
                                              .address = plane.address(),
                                              .listen_port = wire::listen_port(process_)});
  counters_.packets_received[static_cast<world::PortIndex>(index)] += in.size();
  // The receive buffer holds fewer packets if they arrive singly than if they arrive in runs.
  if (!answers && run_shape_.note({.count = runs.size(), .packets = in.size()})) {
    for (std::uint32_t p = 0; p < planes_.size(); ++p) report_port(p);
  }
  node_->on_datagrams(now_, in);
  return true;
}

// --- ports -------------------------------------------------------------------------------------

void UdpWorld::report_port(std::uint32_t plane) {
  node_->on_port(now_, static_cast<world::PortIndex>(plane),
                 {.up = (links_->up() >> plane & 1) != 0,
                  .receive_bytes = planes_[plane].receive_bytes(),
                  .overflows = planes_[plane].overflows(),
                  .singly = run_shape_.packets_arrive_singly()});
}

void UdpWorld::report_overflow(std::uint32_t index) {
  const Plane& plane = planes_[index];
  if (counters_.drops_host.sum() == 0) {
    os::log(os::LogLevel::kWarn,
            "plane {} ({}): packets come faster than they are taken and are dropped in a receive "
            "buffer of "
            "{} bytes; `weft doctor` says how to enlarge it (said once)",
            index, os::text_of(plane.address()), plane.receive_bytes());
  }
  counters_.drops_host[static_cast<world::PortIndex>(index)] += plane.overflows_new();
  report_port(index);
}

void UdpWorld::report_link_changes() {
  const world::PortMask changed = links_->read_changes();
  for (std::uint32_t plane = 0; plane < planes_.size(); ++plane) {
    if ((changed >> plane & 1) == 0) continue;
    os::log(os::LogLevel::kWarn, "plane {} ({}) is {}", plane,
            os::text_of(planes_[plane].address()),
            (links_->up() >> plane & 1) != 0 ? "up" : "down");
    report_port(plane);
  }
}

// --- refusals ----------------------------------------------------------------------------------

// Tells the node the destination of a refused packet. The node verifies with a probe of its own
// that the peer is gone (docs/decisions/0013).
void UdpWorld::report_refusal(std::uint32_t plane, const world::Address& peer) {
  // ICMP is not authenticated: with sealed packets only refusals by this host count.
  const bool is_here = std::any_of(planes_.begin(), planes_.end(),
                                   [&](const Plane& p) { return p.address() == peer.ip(); });
  if (sealed_ != nullptr && !is_here) return;
  const auto refusal = world::Datagram::refusal(static_cast<world::PortIndex>(plane), peer);
  node_->on_datagrams(now_, {&refusal, 1});
}

// Finds the process of a refused port and tells the node. Ports that belong to no Weft process are
// ignored.
void UdpWorld::report_refused_port(std::uint32_t plane, const os::IpPort& refused) {
  const auto process = wire::process_listening(refused.port);
  if (!process) return;
  if (srv6_form() != Srv6Form::kCarrier)
    return report_refusal(plane, world::Address::of(refused.ip, *process));
  // The destination of the refused packet was its last uSID, which hosts under several leaves
  // share. So the refusal is reported for each of these hosts.
  const fabric::Topology& topology = config_.place->topology;
  for (fabric::HostIndex host = 0; host < topology.host_count(); ++host) {
    const fabric::HostPort port{.host = host, .plane = plane};
    if (usids_end(topology, port) == refused.ip)
      report_refusal(plane, world::Address::of(fabric::address_of(port), *process));
  }
}

// True if the plane's sockets have no more refusals.
bool UdpWorld::poll_refusals(std::uint32_t plane) {
  return planes_[plane].poll_refusals(
      counters_.refusals, [&](const os::IpPort& refused) { report_refused_port(plane, refused); });
}

void UdpWorld::poll_next_refusals() {
  const bool all = poll_refusals(refusals_.plane());
  refusals_.note_poll(now_, all ? RefusalPolls::Left::kNone : RefusalPolls::Left::kSome);
}

// --- requests for the host, at port 4791 --------------------------------------------------------

void UdpWorld::try_host_port() {
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  if (!scope) return host_.close(now_);
  if (!host_.open(now_)) return;
  std::uint8_t plane = 0;
  for (const os::UdpSocket& socket : host_.sockets()) {
    if (!watch_->add(socket.fd(), {.source = SocketWatch::Source::kHostListener, .plane = plane++}))
      return host_.close(now_);
  }
  os::log(os::LogLevel::kInfo, "slot {} answers on UDP port {} for this host: its process is gone",
          process_, wire::listen_port(0));
}

// All packets that are not requests count as strays, even packets that another job sealed.
bool UdpWorld::receive_for_host(std::uint32_t plane) {
  if (!host_.is_open()) return false;  // the port was released a moment ago
  std::size_t came = 0;
  for (const os::UdpSocket::Incoming& run :
       receiver_->receive(host_.sockets()[plane], PollOrder::kRunsWhenMany))
    came += run.segment == 0 ? 1 : (run.size + run.segment - 1) / run.segment;
  auto requests = receiver_->datagrams(now_, {.port = static_cast<world::PortIndex>(plane),
                                              .address = planes_[plane].address(),
                                              .listen_port = wire::listen_port(0)});
  const auto strays =
      std::remove_if(requests.begin(), requests.end(), [](const world::Datagram& d) {
        return d.header[0] != static_cast<std::byte>(wire::Opcode::kEndpointRequest);
      });
  requests = {requests.begin(), strays};
  counters_.host_requests += requests.size();
  counters_.host_strays += came - requests.size();
  if (!requests.empty()) node_->on_datagrams(now_, requests);
  if (came > requests.size()) host_.on_strays(now_);
  return !requests.empty();
}

}  // namespace weft::net
