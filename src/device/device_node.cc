#include "device/device_node.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"

namespace weft::device {
namespace {

// Bit 63 marks a `local_at` that names a write of several pieces: bits 62-48 are the QP's index,
// bits 47-32 the slot, bits 31-0 the offset.
constexpr std::uint64_t kGatherBit = 1ull << 63;

}  // namespace

DeviceNode::DeviceNode(const Options& options, transport::Endpoint& endpoint,
                       net::HostMemory& memory)
    : endpoint_(endpoint),
      memory_(memory),
      options_(options),
      qps_(options.qps_max),
      spare_(std::make_unique_for_overwrite<std::byte[]>(kGatherMax * options.mtu)) {
  WEFT_ASSERT(std::has_single_bit(options.qps_max) && options.qps_max <= 1u << 15);
  stalled_.reserve(options.qps_max);
  retrying_.reserve(options.qps_max);
  pending_.reserve(options.qps_max);
  draining_.reserve(options.qps_max);
  set_prefetch(endpoint_);
}

DeviceQp* DeviceNode::find(transport::Qpn qpn) const {
  DeviceQp* const qp = qps_[qpn & (options_.qps_max - 1)];
  return qp != nullptr && qp->qpn == qpn ? qp : nullptr;
}

void DeviceNode::add(DeviceQp& qp) {
  DeviceQp*& place = qps_[qp.qpn & (options_.qps_max - 1)];
  WEFT_ASSERT(place == nullptr);
  place = &qp;
}

void DeviceNode::remove(DeviceQp& qp) {
  WEFT_ASSERT(find(qp.qpn) == &qp);
  sends_under_way_ -= qp.sends.under_way();
  const std::uint32_t place = qp.qpn & (options_.qps_max - 1);
  std::erase(stalled_, place);
  {
    // Without this, drain() might find another QP at this index.
    const std::lock_guard guard(pending_lock_);
    std::erase(pending_, place);
  }
  qp.queued = qp.stalled = false;
  qps_[place] = nullptr;
}

// --- posts -------------------------------------------------------------------------------------

void DeviceNode::add_to_pending(DeviceQp& qp) {
  const std::lock_guard guard(pending_lock_);
  pending_.push_back(qp.qpn & (options_.qps_max - 1));
  pending_any_ = true;
}

void DeviceNode::drain(Time now) {
  if (!pending_any_.load()) return;
  {
    const std::lock_guard guard(pending_lock_);
    pending_any_ = false;
    std::swap(pending_, draining_);
  }
  for (const std::uint32_t place : draining_) {
    DeviceQp* const qp = qps_[place];
    if (qp == nullptr) continue;
    qp->queued = false;  // set before the posts are read: a later post enlists the QP again
    post_new(now, *qp);
  }
  draining_.clear();
}

// Whether `qp.source`, the region of the QP's last write, holds the piece. If the key differs, or
// if regions have changed, the region is looked up first.
inline bool DeviceNode::find_source(DeviceQp& qp, const Piece& piece) const {
  if (qp.source.key != piece.key || qp.source_epoch != memory_.epoch()) {
    if (!memory_.locate(piece.key, qp.options.domain, qp.source)) return false;
    qp.source_epoch = memory_.epoch();
  }
  return qp.source.holds(piece.at, piece.size);
}

// Applies find_source() to all pieces, and replaces their addresses by addresses in this process's
// memory.
bool DeviceNode::translate(DeviceQp& qp, std::span<Piece> pieces) const {
  std::array<std::uint64_t, kPiecesMax> at;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!find_source(qp, pieces[i])) return false;
    at[i] = pieces[i].at + (qp.source.at - qp.source.named_at);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].at = at[i];
  return true;
}

// Replaces the write's address, as its region was registered, by the address in this process's
// memory. Called once for each write. The keys stay: on_region_gone() finds the writes of a region
// by them. Returns false and changes nothing if a piece is not wholly in a region of the QP's
// domain.
inline bool DeviceNode::locate(DeviceQp& qp, std::uint32_t slot) {
  SendQueue::Work& work = qp.sends.work(slot);
  transport::WriteRequest& request = work.request;
  if (work.inlined) return true;
  if (work.piece_count == 1) {
    if (!find_source(qp, {.at = request.local_at, .size = request.size, .key = work.key}))
      return false;
    request.local_at += qp.source.at - qp.source.named_at;
    return true;
  }
  if (!translate(qp, qp.sends.pieces(slot).first(work.piece_count))) return false;
  request.local_at = gather_address(qp, slot);
  has_gathered_writes_ = true;
  return true;
}

// Hands the next `count` writes to the endpoint. Returns how many the endpoint took; fewer than
// `count` if the QP has just failed.
inline std::uint32_t DeviceNode::post_batch(Time now, DeviceQp& qp, std::uint32_t count) {
  std::array<const transport::WriteRequest*, kHandedMax> requests;
  for (std::uint32_t i = 0; i < count; ++i)
    requests[i] = &qp.sends.work(qp.sends.new_slot(i)).request;
  const auto taken = static_cast<std::uint32_t>(
      endpoint_.post_writes(now, qp.qpn, std::span(requests).first(count)));
  qp.sends.mark_under_way(taken);
  sends_under_way_ += taken;
  return taken;
}

void DeviceNode::post_new(Time now, DeviceQp& qp) {
  if (qp.state.load() == IBV_QPS_ERR) return flush_new(now, qp);
  for (; qp.receives.has_new(); qp.receives.mark_under_way()) {
    // The endpoint refuses only if the QP has just failed; then deliver_completions() flushes the
    // remaining posts.
    if (!endpoint_.post_receive(now, qp.qpn, qp.receives.next_id())) return;
  }
  while (const std::uint32_t posted = qp.sends.new_count()) {
    const std::uint32_t may = std::min({posted, kHandedMax, options_.sends_max - sends_under_way_});
    std::uint32_t count = 0;
    while (count < may && locate(qp, qp.sends.new_slot(count))) ++count;
    if (count > 0) {
      if (post_batch(now, qp, count) < count) return;  // the QP has just failed
    } else if (may == 0 || !qp.sends.is_idle()) {
      // Either the endpoint is full; or the oldest new write has an invalid address, and the valid
      // writes before it must complete first.
      return stall(qp);
    } else {
      return fail_locally(now, qp);
    }
  }
}

void DeviceNode::stall(DeviceQp& qp) {
  if (qp.stalled) return;
  qp.stalled = true;
  stalled_.push_back(qp.qpn & (options_.qps_max - 1));
}

void DeviceNode::fail_locally(Time now, DeviceQp& qp) {
  qp.sends.mark_under_way();
  ++sends_under_way_;
  finish_write(now, qp, IBV_WC_LOC_PROT_ERR, 0);
  [[maybe_unused]] const auto failed = endpoint_.fail_qp(now, qp.qpn);
}

void DeviceNode::on_region_gone(Time now, std::uint32_t key) {
  for (DeviceQp* const qp : qps_) {
    if (qp == nullptr) continue;
    bool used = false;
    const std::uint32_t first = qp->sends.oldest_slot();
    for (std::uint32_t i = 0; i < qp->sends.under_way() && !used; ++i) {
      const std::uint32_t slot = (first + i) & (qp->sends.limits().depth - 1);
      const SendQueue::Work& work = qp->sends.work(slot);
      if (work.inlined) continue;
      used = work.piece_count == 1 && work.key == key;
      if (work.piece_count < 2) continue;
      for (const Piece& piece : qp->sends.pieces(slot).first(work.piece_count))
        used |= piece.key == key;
    }
    if (!used) continue;
    qp->local_error = true;
    [[maybe_unused]] const auto failed = endpoint_.fail_qp(now, qp->qpn);
  }
  deliver_completions(now);
}

// --- world::Node -------------------------------------------------------------------------------

void DeviceNode::on_datagrams(Time now, std::span<const world::Datagram> in) {
  drain(now);
  endpoint_.on_datagrams(now, in);
}

void DeviceNode::on_port(Time now, world::PortIndex port, world::PortState state) {
  const auto bit = static_cast<world::PortMask>(1u << port);
  const auto up = static_cast<world::PortMask>(state.up ? ports_up_ | bit : ports_up_ & ~bit);
  ports_changed_ = static_cast<world::PortMask>(ports_changed_ | (up ^ ports_up_));
  ports_up_ = up;
  endpoint_.on_port(now, port, state);
}

DeviceNode::PortNews DeviceNode::take_port_news() {
  const PortNews news{.changed = ports_changed_, .up = ports_up_};
  ports_changed_ = 0;
  return news;
}

std::size_t DeviceNode::poll_transmit(Time now, std::span<const world::PortRoom> room,
                                      std::span<world::Datagram> out) {
  drain(now);
  const std::size_t count =
      endpoint_.poll_transmit(now, room, out.first(std::min(out.size(), kGatherMax)));
  for (std::size_t i = 0; i < count && has_gathered_writes_; ++i) {
    if ((out[i].payload.at & kGatherBit) != 0) gather(out[i], spare_.get() + i * options_.mtu);
  }
  return count;
}

std::uint64_t DeviceNode::gather_address(const DeviceQp& qp, std::uint32_t slot) const {
  const std::uint64_t place = qp.qpn & (options_.qps_max - 1);
  return kGatherBit | place << 48 | std::uint64_t{slot} << 32;
}

void DeviceNode::gather(world::Datagram& datagram, std::byte* spare) const {
  const std::uint64_t at = datagram.payload.at;
  DeviceQp* const qp = qps_[at >> 48 & (options_.qps_max - 1)];
  WEFT_ASSERT(qp != nullptr);
  const auto slot = static_cast<std::uint32_t>(at >> 32 & 0xffff);
  std::uint64_t skip = at & 0xffff'ffff;
  std::uint32_t left = datagram.payload.size;
  std::byte* to = spare;
  for (const Piece& piece : qp->sends.pieces(slot).first(qp->sends.work(slot).piece_count)) {
    if (skip >= piece.size) {
      skip -= piece.size;
      continue;
    }
    const std::uint64_t from = piece.at + skip;
    const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, piece.size - skip));
    if (size == datagram.payload.size) {
      datagram.payload.at = from;
      return;
    }
    std::memcpy(to, reinterpret_cast<const void*>(from), size);
    to += size;
    left -= size;
    skip = 0;
    if (left == 0) break;
  }
  WEFT_ASSERT(left == 0);
  datagram.payload.at = reinterpret_cast<std::uintptr_t>(spare);
}

}  // namespace weft::device
