#include "net/run_receiver.h"

#include <algorithm>

namespace weft::net {

RunReceiver::RunReceiver(const Options& options, const Steering& steering, NetCounters& counters)
    : options_(options),
      steering_(&steering),
      counters_(&counters),
      plain_(options.icrc),
      buffer_(PollOrder::kRunsMax * os::UdpSocket::kRunBytes) {
  datagrams_.reserve(PollOrder::kRunsMax * kRunPacketsMax);
}

std::span<world::Datagram> RunReceiver::datagrams(Time now, const Place& place) {
  datagrams_.clear();
  for (std::size_t i = 0; i < count_; ++i) {
    const os::UdpSocket::Incoming& run = runs_[i];
    const std::uint32_t ev = steering_->ev_of(
        {.plane = place.port, .source_port = run.port, .flow_label = run.flow_label});
    add_run({.now = now, .place = place, .run = run, .ev = ev},
            Bytes(buffer_).subspan(i * os::UdpSocket::kRunBytes, run.size));
  }
  return datagrams_;
}

void RunReceiver::add_run(const Arrival& at, Bytes bytes) {
  if (bytes.empty()) counters_->drop(DropReason::kTooShort);
  const os::UdpSocket::Incoming& run = at.run;
  // With PeerKind::kNic the source port does not identify a process.
  const std::uint16_t process =
      options_.peers == PeerKind::kSoftware ? wire::process_of(run.port) : std::uint16_t{0};
  for (std::size_t from = 0; from < bytes.size(); from += run.segment) {
    const auto packet =
        open(at, bytes.subspan(from, std::min<std::size_t>(run.segment, bytes.size() - from)));
    if (!packet) {
      counters_->drop(packet.error());
      continue;
    }
    if (packet->header.empty()) continue;  // empty for a hello, which open() has handled
    if (datagrams_.size() == datagrams_.capacity()) {
      counters_->drop(DropReason::kNoBuffer);
      continue;
    }
    datagrams_.push_back(
        {.port = at.place.port,
         .ecn = static_cast<world::Ecn>(run.traffic_class & 3),
         .dscp = static_cast<world::Dscp>(run.traffic_class >> 2),
         .intact = packet->intact,
         .entropy = at.ev,
         .received_at = at.now,
         .peer = world::Address::of(run.from, process),
         .header = packet->header,
         .payload = {.at = reinterpret_cast<std::uintptr_t>(packet->payload.data()),
                     .size = static_cast<std::uint32_t>(packet->payload.size())}});
  }
}

Result<IncomingPacket, DropReason> RunReceiver::open(const Arrival& at, Bytes packet) {
  const auto dscp = static_cast<world::Dscp>(at.run.traffic_class >> 2);
  if (options_.sealed == nullptr) {
    return plain_.take_apart(packet, dscp,
                             {.from = at.run.from,
                              .to = at.place.address,
                              .from_port = at.run.port,
                              .to_port = at.place.listen_port});
  }
  auto opened =
      options_.sealed->open(at.now, packet,
                            {.from = world::Address::of(at.run.from, wire::process_of(at.run.port)),
                             .options = {.ev = at.ev, .trimmed = world::is_trimmed(dscp)}});
  options_.sender->send_hellos(at.now);
  return opened;
}

}  // namespace weft::net
