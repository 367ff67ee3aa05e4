#include "transport/qp_table.h"

#include <bit>

namespace weft::transport {

QpTable::QpTable(const Options& options)
    : first_qpn_(options.first_qpn),
      mask_(std::bit_ceil(options.qp_count_max) - 1),
      slots_(std::make_unique<QpSlot[]>(mask_ + 1)),
      qp_count_max_(options.qp_count_max),
      qpn_bits_(options.qpn_bits) {
  WEFT_ASSERT(qpn_bits_ <= 24 && mask_ >> qpn_bits_ == 0);
}

Qpn QpTable::next_number() {
  WEFT_ASSERT(!full());
  const std::uint32_t low = (1u << qpn_bits_) - 1;
  for (;;) {
    const Qpn qpn = (first_qpn_ & ~low) | ((first_qpn_ + numbered_) & low);
    const bool is_free = !slots_[numbered_ & mask_];
    if (is_free && qpn > wire::kEndpointQpn) {
      ++numbered_;
      return qpn;
    }
    ++numbered_;
  }
}

Qp& QpTable::emplace(const Qp::Options& options, std::span<const fabric::Ev> evs) {
  QpSlot& slot = slots_[index_of(options.qpn)];
  slot.emplace(options, evs);
  ++count_;
  return *slot;
}

void QpTable::erase(std::uint32_t index) {
  WEFT_ASSERT(slots_[index] && count_ > 0);
  slots_[index].reset();
  --count_;
}

void QpTable::link(Peer& peer, Qp& qp) const {
  WEFT_ASSERT(qp.next_of_peer == Peer::kNobody);
  qp.next_of_peer = peer.first_qp;
  peer.first_qp = index_of(qp);
}

void QpTable::unlink(Peer& peer, const Qp& qp) const {
  std::uint32_t* link = &peer.first_qp;
  while (*link != index_of(qp)) {
    WEFT_ASSERT(*link != Peer::kNobody && slots_[*link]);  // asserts that the QP is in the list
    link = &slots_[*link]->next_of_peer;
  }
  *link = qp.next_of_peer;
}

}  // namespace weft::transport
