#include "net/srv6_form.h"

#include <fmt/core.h>

#include "fabric/forward.h"
#include "net/plane_facts.h"
#include "net/srv6_socket.h"
#include "os/interfaces.h"

namespace weft::net {

Result<Srv6Form> choose_srv6_form(Srv6Form wanted, std::span<const Ipv6> planes) {
  if (wanted == Srv6Form::kMrc) return Srv6Form::kMrc;
  WEFT_TRY(const auto interfaces, os::list_interfaces());
  for (const Ipv6& plane : planes) {
    const os::Interface* const on = os::interface_of(plane, interfaces);
    if (on == nullptr || on->loopback || driver_of(on->name) == "veth") continue;
    const std::string why = fmt::format(
        "{} ({}) is no veth link: paths by SRv6 carrier are for the lab, since their UDP checksums "
        "do not hold on arrival and a NIC's receiver drops such packets",
        on->name, os::text_of(plane));
    if (wanted == Srv6Form::kCarrier)
      return Error{ErrorKind::kUnsupported, why + "; say --srv6 mrc, or leave --fabric out"};
    const auto tried = Srv6Socket::open({.address = plane, .end = plane});
    if (!tried) return Error{tried.error().kind, why + "; " + tried.error().message};
    return Srv6Form::kMrc;
  }
  return Srv6Form::kCarrier;
}

Ipv6 usids_end(const fabric::Topology& topology, const fabric::HostPort& host) {
  const fabric::NodeId node{.plane = host.plane, .tier = fabric::Tier::kHost, .index = host.host};
  return fabric::address_of(fabric::UsidList{.usid = {fabric::usid_of(topology, node)}});
}

}  // namespace weft::net
