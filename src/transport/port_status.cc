#include "transport/port_status.h"

#include "base/assert.h"

namespace weft::transport {
namespace {

constexpr std::uint8_t kQuickTries = 3;
constexpr Duration kResendQuickly = Duration::us(100), kResendSlowly = Duration::ms(10);
// Request ids are shared with probes and wrap around. For this long they tell which update is
// newer.
constexpr Duration kIdsTellOrder = Duration::ms(10);

PortMask with_bit(PortMask mask, PortIndex port, bool set) {
  const auto bit = static_cast<PortMask>(1u << port);
  return static_cast<PortMask>(set ? mask | bit : mask & ~bit);
}

}  // namespace

PortStatus::PortStatus(const Options& options)
    : unlisted_(options.unlisted), count_(options.port_count) {
  WEFT_ASSERT(count_ >= 1 && count_ <= world::kPortsMax);
  up_ = carrier_ = all();
}

bool PortStatus::set_carrier(PortIndex port, bool carrier) {
  WEFT_ASSERT(port < count_);
  carrier_ = with_bit(carrier_, port, carrier);
  return refresh();
}

bool PortStatus::set_disabled(PortIndex port, bool disabled) {
  WEFT_ASSERT(port < count_);
  disabled_ = with_bit(disabled_, port, disabled);
  return refresh();
}

bool PortStatus::refresh() {
  const PortMask before = up_;
  up_ = static_cast<PortMask>(carrier_ & ~disabled_);
  return up_ != before;
}

void PortStatus::start_update(Time now, std::uint32_t index, OfPeer& peer, RequestIds& ids,
                              ControlQueue& out) {
  peer.tries = 0;
  peer.id = ids.next();
  send(now, index, peer, out);
}

void PortStatus::resend_if_due(Time now, std::uint32_t index, OfPeer& peer, ControlQueue& out) {
  if (peer.resend_at <= now) {
    send(now, index, peer, out);
  } else {
    resend_at_ = std::min(resend_at_, peer.resend_at);
  }
}

// An update that finds the queue full is sent when it is due next.
void PortStatus::send(Time now, std::uint32_t index, OfPeer& peer, ControlQueue& out) {
  WEFT_ASSERT(peer.id != 0);
  peer.resend_at = now + (peer.tries < kQuickTries ? kResendQuickly : kResendSlowly);
  resend_at_ = std::min(resend_at_, peer.resend_at);
  if (peer.tries < 0xff) ++peer.tries;
  peer.was_updated = true;
  ControlPacket* const packet = out.add();
  if (packet == nullptr) return;
  ++updates_sent_;
  packet->peer = index;
  const auto listed = static_cast<std::uint32_t>(up_ & ~unlisted_);
  write_header(
      *packet,
      {.opcode = wire::Opcode::kEndpointRequest,
       .dest_qpn = wire::kEndpointQpn,
       .psn = Psn(peer.id)},
      wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = listed << 1});
}

bool PortStatus::on_answer(OfPeer& peer, std::uint16_t id) {
  if (id == 0 || peer.id != id) return false;
  peer.id = 0;
  peer.resend_at = kNever;
  return true;
}

PortStatus::Change PortStatus::on_update(Time now, OfPeer& peer, std::uint16_t id,
                                         std::uint32_t status) {
  const auto ahead = static_cast<std::int16_t>(id - peer.applied_id);
  const bool is_recent = peer.has_applied && now - peer.applied_at < kIdsTellOrder;
  if (is_recent && ahead < 0) return {};
  peer.has_applied = true;
  peer.applied_at = now;
  peer.applied_id = id;
  const auto before = peer.reachable;
  peer.reachable = static_cast<PortMask>(status >> 1 | unlisted_);
  return {.lost = static_cast<PortMask>(before & ~peer.reachable),
          .back = static_cast<PortMask>(~before & peer.reachable)};
}

}  // namespace weft::transport
