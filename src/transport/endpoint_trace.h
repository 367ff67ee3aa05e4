// EndpointTrace: reports an endpoint's events to the trace of a judged run. Without a trace each
// report costs one comparison.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "base/trace.h"
#include "transport/qp.h"
#include "world/world.h"

namespace weft::transport {

class EndpointTrace {
 public:
  // `trace` may be null; `host` is the endpoint's name in it.
  EndpointTrace(Trace* trace, std::uint32_t host) : trace_(trace), host_(host) {}

  Trace* get() const { return trace_; }
  explicit operator bool() const { return trace_ != nullptr; }

  // The QP sends from now on.
  void qp_connected(Time now, const Qp& qp, std::uint32_t peer_host) const;
  void qp_failed(Time now, const Qp& qp, Status status) const;
  void qp_gone(Time now, const Qp& qp) const;
  void port(Time now, world::PortIndex port, bool up) const;
  struct Party {
    Qpn qpn = 0;  // QP that sends the packet; 0: the endpoint sends it, or the packet arrived
    std::uint32_t host = 0xffff'ffff;  // the peer's host
  };
  void sent(Time now, const world::Datagram& datagram, Party party) const;
  void received(Time now, const world::Datagram& datagram, Party party) const;

 private:
  TraceRecord record(Time now, TraceKind kind) const;
  void datagram(Time now, TraceKind kind, const world::Datagram& datagram, Party party) const;

  Trace* trace_;
  std::uint32_t host_;
};

}  // namespace weft::transport
