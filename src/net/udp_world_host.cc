// UdpWorld, for the host: answering on UDP port 4791 when the process of slot 0 has gone.
//
// Requests for a host and not for one of its processes (EV probes, port status) go to port 4791.
// Every other process tries twice a second to bind that port; the one that succeeds answers the
// requests besides its own work. Its own QPs stay on its own port. A new process finds the port
// taken and takes another slot.
//
// While a process holds the port, the kernel refuses nothing there, and peers of the process that
// has gone would wait for long. So a packet for one of its QPs makes the holder release the port
// for a moment, so that the next packet is refused (docs/decisions/0019).
#include <sys/epoll.h>

#include <algorithm>

#include "net/udp_world.h"
#include "os/interfaces.h"
#include "os/log.h"
#include "os/network_namespace.h"

namespace weft::net {
namespace {

constexpr Duration kTryEvery = Duration::ms(500);
// The port is kept at least this long whatever arrives, so that strangers' packets cannot keep it
// closed.
constexpr Duration kStay = Duration::s(1);
// Requests are few; those that do not fit are lost, as any datagram may be.
constexpr std::uint32_t kBufferBytes = 64u << 10;

}  // namespace

// Not with a job secret: only processes that know each other have keys. Not in MRC's SRv6 form:
// there the kernel refuses no single port, so peers of a process that has gone would not learn of
// it.
void UdpWorld::open_host() {
  if (process_ != 0 && sessions_ == nullptr && srv6_form() != Srv6Form::kMrc)
    host_next_ = clock() + kTryEvery;
}

// Binds all planes, in their order: of several processes that try at once, the one that gets the
// first plane gets the others too.
void UdpWorld::try_host() {
  host_next_ = now_ + kTryEvery;
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  if (!scope) return;
  for (std::uint32_t p = 0; p < planes_.size(); ++p) {
    auto socket = os::UdpSocket::open({.address = listen_address(config_, p),
                                       .port = wire::listen_port(0),
                                       .receive_bytes = kBufferBytes,
                                       .receives = true});
    if (!socket || !watch(socket->fd(), EPOLLIN, kHost | p)) return host_.clear();
    host_.push_back(std::move(socket).value());
  }
  host_next_ = kNever;
  host_since_ = now_;
  os::log(os::LogLevel::kInfo, "slot {} answers on UDP port {} for this host: its process is gone",
          process_, wire::listen_port(0));
}

void UdpWorld::leave_host() {
  host_.clear();
  host_next_ = now_ + kTryEvery;
}

// Everything that is not a request counts as a stray, also packets that another job sealed.
bool UdpWorld::receive_for_host(std::uint32_t plane) {
  if (host_.empty()) return false;  // the port was released a moment ago
  std::array<os::UdpSocket::Incoming, kRunsWhenMany> runs;
  const std::size_t count = host_[plane].receive(buffer_, runs);
  std::uint64_t came = 0;
  in_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    came += runs[i].segment == 0 ? 1 : (runs[i].size + runs[i].segment - 1) / runs[i].segment;
    take_run(plane, runs[i], Bytes(buffer_).subspan(i * os::UdpSocket::kRunBytes, runs[i].size),
             wire::listen_port(0));
  }
  const auto strays = std::remove_if(in_.begin(), in_.end(), [](const world::Datagram& d) {
    return d.header[0] != static_cast<std::byte>(wire::Opcode::kEndpointRequest);
  });
  in_.erase(strays, in_.end());
  counters_.host_requests += in_.size();
  counters_.host_strays += came - in_.size();
  if (!in_.empty()) node_->on_datagrams(now_, in_);
  if (came > in_.size() && now_ - host_since_ >= kStay) leave_host();
  return !in_.empty();
}

}  // namespace weft::net
