// UdpWorld, sealing: packets are sealed and opened here, and hellos sent.
#include <algorithm>

#include "base/assert.h"
#include "net/udp_world.h"
#include "seal/secure_layout.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

std::size_t size_of(const world::Datagram& d) {
  return seal::sealed_size({.header_size = d.header.size(),
                            .payload_size = d.payload.size,
                            .is_write = wire::is_write(static_cast<wire::Opcode>(d.header[0]))});
}

}  // namespace

Result<void> UdpWorld::open_security() {
  if (config_.job_secret.empty()) return {};
  WEFT_TRY(sessions_, seal::SessionTable::create({.job_secret = config_.job_secret,
                                                  .process = process_,
                                                  .qps_max = config_.secured_qps_max,
                                                  .peers_max = config_.secured_qps_max}));
  // The keys are derived; the secret itself is not needed any more.
  std::fill(config_.job_secret.begin(), config_.job_secret.end(), std::byte{0});
  sealed_.resize(os::UdpSocket::kSendBytesMax);
  hello_evs_ = evs();
  return {};
}

Result<void> UdpWorld::secure(std::uint32_t local_qpn, const seal::SecurePeer& peer) {
  if (sessions_ == nullptr) return {};
  WEFT_CHECK(sessions_->secure(clock(), local_qpn, peer));
  send_hellos();
  return {};
}

void UdpWorld::end_session(std::uint32_t local_qpn) {
  if (sessions_ != nullptr) sessions_->close(local_qpn);
}

// Each hello takes another path, so that a dead path delays keys but does not prevent them.
void UdpWorld::send_hellos() {
  while (auto hello = sessions_->poll_hello()) {
    const fabric::Ev ev = hello_evs_[hello_turn_++ % hello_evs_.size()];
    const world::Address& to = hello->to[std::min<std::size_t>(ev.port, hello->to.size() - 1)];
    const Steering::Way way = steering_->way(process_, ev.port, ev.value, to.ip());
    iovec piece{hello->packet.data(), hello->packet.size()};
    ++counters_.hellos_sent;
    // A hello that the kernel does not accept is lost, like any packet.
    send_by(planes_[ev.port], way, to.ip(),
            {.to = way.to,
             .port = wire::listen_port(to.process),
             .traffic_class =
                 static_cast<std::uint8_t>(static_cast<unsigned>(world::Dscp::kControl) << 2),
             .flow_label = way.flow_label},
            {&piece, 1});
  }
}

// As send_run(), but the packets are sealed into one buffer. A packet for which there are no keys
// yet is not sent; a hello goes in its place, and the transport retransmits the packet.
std::size_t UdpWorld::send_sealed_run(std::span<const world::Datagram> out) {
  const world::Datagram& first = out[0];
  const Steering::Way way = steering_->way(process_, first.port, first.entropy, first.peer.ip());
  // The EV as the receiver computes it.
  const std::uint32_t ev = steering_->ev_of({.plane = first.port,
                                             .source_port = wire::source_port(process_, way.socket),
                                             .flow_label = way.flow_label});
  const std::size_t segment = size_of(first);
  std::size_t count = 0, bytes = 0;
  for (bool last = false; count < out.size() && !last; ++count) {
    const world::Datagram& d = out[count];
    const std::size_t size = size_of(d);
    if (!is_same_run(first, d) || size > segment || bytes + size > os::UdpSocket::kSendBytesMax)
      break;
    const std::size_t sealed = sessions_->seal(now_, d, ev, Bytes(sealed_).subspan(bytes));
    if (sealed == 0) {
      send_hellos();
      if (count > 0) break;
      ++counters_.waits_for_keys;
      return 1;
    }
    WEFT_ASSERT(sealed == size);
    last = size < segment;
    bytes += size;
  }
  iovec piece{sealed_.data(), bytes};
  hand_over(out.first(count), way, segment, {&piece, 1});
  return count;
}

Result<UdpWorld::Taken, DropReason> UdpWorld::open_sealed(const os::UdpSocket::Incoming& run,
                                                          std::uint32_t ev, Bytes datagram) {
  const auto dscp = static_cast<world::Dscp>(run.traffic_class >> 2);
  const auto opened =
      sessions_->open(now_,
                      {.from = world::Address::of(run.from, wire::process_of(run.port)),
                       .options = {.ev = ev, .trimmed = world::is_trimmed(dscp)}},
                      datagram);
  send_hellos();
  if (!opened) return opened.error();
  return Taken{.header = opened->header, .payload = opened->payload};
}

}  // namespace weft::net
