#include "net/plane.h"

#include <unistd.h>

#include "wire/process_ports.h"

namespace weft::net {

Result<Plane> Plane::listen(const Options& options) {
  Plane plane(options);
  WEFT_TRY(plane.listener_, os::UdpSocket::open({.address = options.listen,
                                                 .port = wire::listen_port(options.process),
                                                 .receive_bytes = options.receive_bytes,
                                                 .receives = true,
                                                 .singly = options.encapsulates,
                                                 .any_checksum = options.any_checksum}));
  return plane;
}

Result<void> Plane::open_senders(std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    WEFT_TRY(os::UdpSocket sender,
             os::UdpSocket::open({.address = options_.address,
                                  .port = wire::source_port(options_.process, i),
                                  .send_bytes = options_.send_bytes,
                                  .hears_refusals = true,
                                  .by_carrier = options_.by_carrier}));
    senders_.push_back(std::move(sender));
  }
  if (!options_.encapsulates) return {};
  WEFT_TRY(tunnel_, Srv6Socket::open({.address = options_.address,
                                      .end = options_.usids_end,
                                      .port = wire::listen_port(options_.process),
                                      .receive_bytes = options_.receive_bytes,
                                      .send_bytes = options_.send_bytes}));
  return {};
}

std::uint32_t Plane::receive_bytes() const {
  return tunnel_ ? tunnel_->receive_bytes() : listener_.receive_bytes();
}

std::vector<int> Plane::receive_fds() const {
  std::vector<int> fds = {listener_.fd()};
  if (tunnel_) fds.push_back(tunnel_->receive_fd());
  return fds;
}

std::size_t Plane::receive(std::span<std::byte> buffer, std::span<os::UdpSocket::Incoming> runs) {
  std::size_t count = tunnel_ ? tunnel_->receive(buffer, runs) : 0;
  const bool by_tunnel = count > 0;
  if (!by_tunnel) count = listener_.receive(buffer, runs);
  overflows_new_ = 0;
  // Losses of a plane with a tunnel are counted at the tunnel only.
  if (count == 0 || by_tunnel != tunnel_.has_value()) return count;
  overflows_new_ = runs[count - 1].overflow - overflows_;
  overflows_ = runs[count - 1].overflow;
  return count;
}

os::UdpSocket::Sent Plane::send(const Steering::Fields& fields, const Ipv6& peer,
                                const os::UdpSocket::Outgoing& what, std::span<iovec> pieces) {
  if (!tunnel_) return senders_[fields.socket].send(what, pieces);
  return tunnel_->send({.carrier = peer == options_.address ? options_.usids_end : what.to,
                        .to = peer,
                        .from_port = wire::source_port(options_.process, fields.socket),
                        .to_port = what.port,
                        .traffic_class = what.traffic_class,
                        .flow_label = what.flow_label,
                        .segment = what.segment},
                       pieces);
}

void Plane::abandon() const {
  close(listener_.fd());
  for (const os::UdpSocket& sender : senders_) close(sender.fd());
  if (tunnel_) close(tunnel_->receive_fd()), close(tunnel_->send_fd());
}

}  // namespace weft::net
