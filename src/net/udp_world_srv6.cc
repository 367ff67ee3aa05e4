// UdpWorld, SRv6: the choice of the form of uSIDs, and MRC's form.
#include <fmt/core.h>

#include <algorithm>

#include "fabric/address.h"
#include "net/plane_facts.h"
#include "net/udp_world.h"
#include "os/interfaces.h"

namespace weft::net {

// In the carrier form the UDP checksum is computed for the carrier address, and the packet arrives
// with another address. So it only works on links that never verify checksums.
Result<Srv6Form> UdpWorld::choose_srv6_form(const UdpWorldConfig& config) {
  if (config.srv6 == Srv6Form::kMrc) return Srv6Form::kMrc;
  WEFT_TRY(const auto interfaces, os::list_interfaces());
  for (const Ipv6& plane : config.planes) {
    const os::Interface* const on = os::interface_of(plane, interfaces);
    if (on == nullptr || on->loopback || driver_of(on->name) == "veth") continue;
    const std::string why = fmt::format(
        "{} ({}) is no veth link: paths by SRv6 carrier are for the lab, since their UDP checksums "
        "do not hold on arrival and a NIC's receiver drops such packets",
        on->name, os::text_of(plane));
    if (config.srv6 == Srv6Form::kCarrier)
      return Error{ErrorKind::kUnsupported, why + "; say --srv6 mrc, or leave --fabric out"};
    const auto tried = Srv6Socket::open({.address = plane, .end = plane});
    if (!tried) return Error{tried.error().kind, why + "; " + tried.error().message};
    return Srv6Form::kMrc;
  }
  return Srv6Form::kCarrier;
}

// On arrival only the last uSID of the list is left.
Ipv6 UdpWorld::end_of_usids(const UdpWorldConfig& config, std::uint32_t plane) {
  const FabricPlace& place = *config.place;
  const fabric::NodeId self{.plane = plane, .tier = fabric::Tier::kHost, .index = place.self};
  return fabric::address_of(fabric::UsidList{.usid = {fabric::usid_of(place.topology, self)}});
}

// The UDP sockets stay open. They hold the slot, and receive packets whose outer header was removed
// by this host's kernel or by the last switch.
Result<void> UdpWorld::open_tunnels() {
  if (srv6_form() != Srv6Form::kMrc) return {};
  for (std::uint32_t p = 0; p < planes_.size(); ++p) {
    WEFT_TRY(planes_[p].tunnel, Srv6Socket::open({.address = planes_[p].address,
                                                  .end = end_of_usids(config_, p),
                                                  .port = wire::listen_port(process_),
                                                  .receive_bytes = config_.receive_buffer_bytes,
                                                  .send_bytes = config_.send_buffer_bytes}));
  }
  return {};
}

std::uint32_t UdpWorld::receive_bytes(const Plane& plane) const {
  return plane.tunnel ? plane.tunnel->receive_bytes() : plane.listen.receive_bytes();
}

os::UdpSocket::Sent UdpWorld::send_by(Plane& plane, const Steering::Way& way, const Ipv6& peer,
                                      const os::UdpSocket::Outgoing& what,
                                      std::span<iovec> pieces) {
  sent_at_ = now_;
  refusals_next_ = std::min(refusals_next_, now_ + kHearEvery);
  if (!plane.tunnel) return plane.senders[way.socket].send(what, pieces);
  const auto index = static_cast<std::uint32_t>(&plane - planes_.data());
  return plane.tunnel->send(
      {.carrier = peer == plane.address ? end_of_usids(config_, index) : what.to,
       .to = peer,
       .from_port = wire::source_port(process_, way.socket),
       .to_port = what.port,
       .traffic_class = what.traffic_class,
       .flow_label = what.flow_label,
       .segment = what.segment},
      pieces);
}

}  // namespace weft::net
