#include "transport/write_queue.h"

#include <algorithm>

#include "wire/framing.h"

namespace weft::transport {

void WriteQueue::post(const WriteRequest& request) {
  Entry& entry = queue_.push_slot();
  entry = {};
  entry.request = request;
}

void WriteQueue::on_sent(Psn psn) {
  WEFT_ASSERT(has_unsent());
  Entry& entry = queue_[sent_count_];
  if (entry.packets_sent == 0) {
    entry.first = psn;
    entry.last = psn + static_cast<std::int32_t>(packet_count(entry) - 1);
    entry.msn = next_msn_++;
    if (entry.request.with_immediate) {
      entry.rqmsn = next_rqmsn_++;
      ++immediates_under_way_;
    }
  }
  WEFT_ASSERT(psn.since(entry.first) == static_cast<std::int32_t>(entry.packets_sent));
  ++entry.packets_sent;
  if (psn == entry.last) ++sent_count_;
}

void WriteQueue::retire() {
  WEFT_ASSERT(has_under_way());
  if (oldest().request.with_immediate) {
    WEFT_ASSERT(immediates_under_way_ > 0);
    --immediates_under_way_;
  }
  ++done_count_;
}

// Finds the write by a binary search: writes in progress are in PSN order.
std::size_t WriteQueue::index_of(Psn psn) const {
  std::size_t low = done_count_, high = queue_.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    const Entry& entry = queue_[middle];
    if (entry.packets_sent > 0 && psn.since(entry.first) >= 0) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

WriteQueue::Piece WriteQueue::piece(const Entry& entry, std::uint32_t index) const {
  WEFT_ASSERT(index < packet_count(entry));
  const std::uint32_t size = entry.request.size;
  Piece p;
  p.offset = index * mtu_;
  p.size = std::min(size - p.offset, mtu_);
  const bool first = index == 0, last = p.offset + p.size == size;
  const bool immediate = entry.request.with_immediate;
  if (last) {
    p.opcode = first ? (immediate ? wire::Opcode::kWriteOnlyImm : wire::Opcode::kWriteOnly)
                     : (immediate ? wire::Opcode::kWriteLastImm : wire::Opcode::kWriteLast);
  } else {
    p.opcode = first ? wire::Opcode::kWriteFirst : wire::Opcode::kWriteMiddle;
  }
  return p;
}

std::int64_t WriteQueue::nominal_size(const Piece& piece) {
  return wire::nominal_size(
      {.header_size = wire::header_size({.opcode = piece.opcode, .has_timestamp = true}),
       .payload_size = piece.size});
}

bool WriteQueue::poll_completion(Qpn qpn, Completion& out) {
  while (done_count_ > 0) {
    WEFT_ASSERT(done_count_ <= sent_count_ && sent_count_ <= queue_.size());
    const Entry entry = queue_.front();
    queue_.pop();
    --done_count_;
    --sent_count_;
    if (!entry.request.signalled && entry.status == Status::kOk) {
      ++unsignalled_done_;
      continue;
    }
    out = {.id = entry.request.id,
           .qpn = qpn,
           .kind = CompletionKind::kWrite,
           .status = entry.status,
           .size = entry.request.size};
    return true;
  }
  return false;
}

void WriteQueue::fail(Status status, const Psn* refused) {
  if (!has_incomplete()) return;
  const std::size_t blamed = refused != nullptr ? index_of(*refused) : done_count_;
  for (std::size_t i = done_count_; i < queue_.size(); ++i)
    queue_[i].status = i == blamed ? status : Status::kFlushed;
  sent_count_ = done_count_ = size();
  immediates_under_way_ = 0;
}

}  // namespace weft::transport
