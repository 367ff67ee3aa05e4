#include "net/sealed_packets.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "os/udp_socket.h"
#include "seal/secure_layout.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

std::size_t packet_size(const world::Datagram& d) {
  return seal::sealed_size({.header_size = d.header.size(),
                            .payload_size = d.payload.size,
                            .is_write = wire::is_write(static_cast<wire::Opcode>(d.header[0]))});
}

}  // namespace

SealedPackets::SealedPackets(std::unique_ptr<seal::SessionTable> sessions, const Options& options)
    : sessions_(std::move(sessions)), run_(os::UdpSocket::kSendBytesMax), evs_(options.evs) {
  WEFT_ASSERT(!evs_.empty());
}

Result<std::unique_ptr<SealedPackets>> SealedPackets::make(const Options& options) {
  WEFT_TRY(auto sessions, seal::SessionTable::create({.job_secret = options.job_secret,
                                                      .process = options.process,
                                                      .qps_max = options.qps_max,
                                                      .peers_max = options.qps_max}));
  return std::unique_ptr<SealedPackets>(new SealedPackets(std::move(sessions), options));
}

OutgoingRun SealedPackets::join(Time now, std::span<const world::Datagram> out, std::uint32_t ev) {
  const std::size_t segment = packet_size(out[0]);
  std::size_t count = 0, bytes = 0;
  for (bool last = false; count < out.size() && !last; ++count) {
    const world::Datagram& d = out[count];
    const std::size_t size = packet_size(d);
    if (!have_one_path(out[0], d) || size > segment || bytes + size > os::UdpSocket::kSendBytesMax)
      break;
    const std::size_t sealed = sessions_->seal(now, d, ev, Bytes(run_).subspan(bytes));
    if (sealed == 0) break;  // there are no keys yet
    WEFT_ASSERT(sealed == size);
    last = size < segment;
    bytes += size;
  }
  piece_ = {run_.data(), bytes};
  return {.count = count, .segment = segment, .pieces = {&piece_, 1}};
}

Result<IncomingPacket, DropReason> SealedPackets::open(Time now, Bytes packet,
                                                       const seal::SessionTable::Arrival& arrival) {
  const auto opened = sessions_->open(now, arrival, packet);
  if (!opened) return opened.error();
  return IncomingPacket{.header = opened->header, .payload = opened->payload};
}

std::optional<SealedPackets::Hello> SealedPackets::poll_hello() {
  auto hello = sessions_->poll_hello();
  if (!hello) return std::nullopt;
  const fabric::Ev ev = evs_[turn_++ % evs_.size()];
  return Hello{.ev = ev,
               .to = hello->to[std::min<std::size_t>(ev.port, hello->to.size() - 1)],
               .packet = hello->packet};
}

}  // namespace weft::net
