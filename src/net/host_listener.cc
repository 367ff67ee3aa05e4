#include "net/host_listener.h"

#include <unistd.h>

#include <utility>

#include "wire/process_ports.h"

namespace weft::net {
namespace {

constexpr Duration kTryEvery = Duration::ms(500);
// The port is kept at least this long, whatever packets arrive.
constexpr Duration kStay = Duration::s(1);
// Requests are few; those that do not fit are lost, as any datagram may be.
constexpr std::uint32_t kBufferBytes = 64u << 10;

}  // namespace

void HostListener::start(Time now, std::vector<Ipv6> addresses) {
  addresses_ = std::move(addresses);
  sockets_.reserve(addresses_.size());
  next_try_ = now + kTryEvery;
}

bool HostListener::open(Time now) {
  for (const Ipv6& address : addresses_) {
    auto socket = os::UdpSocket::open({.address = address,
                                       .port = wire::listen_port(0),
                                       .receive_bytes = kBufferBytes,
                                       .receives = true});
    if (!socket) {
      close(now);
      return false;
    }
    sockets_.push_back(std::move(socket).value());
  }
  next_try_ = kNever;
  opened_at_ = now;
  return true;
}

void HostListener::close(Time now) {
  sockets_.clear();
  next_try_ = now + kTryEvery;
}

void HostListener::on_strays(Time now) {
  if (now - opened_at_ >= kStay) close(now);
}

void HostListener::abandon() const {
  for (const os::UdpSocket& socket : sockets_) ::close(socket.fd());
}

}  // namespace weft::net
