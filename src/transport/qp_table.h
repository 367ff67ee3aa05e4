// QpTable: the QPs of an endpoint, by number, by index, and as lists by peer.
//
// They lie in one array, so that a QPN leads to its QP without a search: the index is the QPN's low
// bits. QPNs go round in their low bits; a number is used again only after all others. Bounded;
// owned by the endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.h"
#include "transport/peer.h"
#include "transport/qp.h"
#include "wire/packet.h"

namespace weft::transport {

// A place for a QP. Whether one lives there stands before it, on the cache line that every packet
// looks at anyway; std::optional has it behind the QP.
class alignas(64) QpSlot {
 public:
  QpSlot() {}
  ~QpSlot() { reset(); }
  QpSlot(const QpSlot&) = delete;
  QpSlot& operator=(const QpSlot&) = delete;

  explicit operator bool() const { return used_; }
  // REQUIRES that one lives here; unchecked, as every packet passes here.
  Qp& operator*() { return qp_; }
  Qp* operator->() { return &qp_; }

  // REQUIRES that none lives here.
  void emplace(const Qp::Options& options, std::span<const fabric::Ev> evs) {
    WEFT_ASSERT(!used_);
    std::construct_at(&qp_, options, evs);
    used_ = true;
  }
  void reset() {
    if (used_) std::destroy_at(&qp_);
    used_ = false;
  }

 private:
  bool used_ = false;
  union {
    Qp qp_;
  };
};

class QpTable {
 public:
  struct Options {
    std::uint32_t qp_count_max = 16;
    std::uint32_t first_qpn = 0x100;
    std::uint32_t qpn_bits = 24;
  };
  explicit QpTable(const Options& options);

  // Null: there is no such QP.
  Qp* find(Qpn qpn) const {
    QpSlot& qp = slots_[index_of(qpn)];
    return qp && qp->qpn == qpn ? &*qp : nullptr;
  }
  std::uint32_t index_of(Qpn qpn) const { return (qpn - first_qpn_) & mask_; }
  std::uint32_t index_of(const Qp& qp) const { return index_of(qp.qpn); }
  // REQUIRES that a QP has this index.
  Qp& operator[](std::uint32_t index) const {
    WEFT_ASSERT(slots_[index]);  // no list or timer names a QP that is gone
    return *slots_[index];
  }

  bool full() const { return count_ >= qp_count_max_; }
  // Indices are below this.
  std::uint32_t size() const { return mask_ + 1; }
  // A number for one more QP. REQUIRES !full().
  Qpn next_number();
  // REQUIRES that no QP has this number, and that it is one of next_number().
  Qp& emplace(const Qp::Options& options, std::span<const fabric::Ev> evs);
  // REQUIRES that the QP is in no list.
  void erase(std::uint32_t index);

  // f(Qp&) for each QP, by index.
  template <typename F>
  void for_each(F f) const {
    for (std::uint32_t i = 0; i <= mask_; ++i) {
      if (slots_[i]) f(*slots_[i]);
    }
  }
  // f(Qp&) for each QP to that peer, newest first. `f` links and unlinks none.
  template <typename F>
  void for_each_of(const Peer& peer, F f) const {
    for (std::uint32_t i = peer.first_qp; i != Peer::kNobody;) {
      Qp& qp = (*this)[i];
      i = qp.next_of_peer;
      f(qp);
    }
  }
  // Puts the QP into, or takes it from, the list of its peer.
  void link(Peer& peer, Qp& qp) const;
  void unlink(Peer& peer, const Qp& qp) const;

  std::size_t bytes() const { return size() * sizeof(QpSlot); }

 private:
  // What every packet looks at comes first.
  std::uint32_t first_qpn_, mask_;
  std::unique_ptr<QpSlot[]> slots_;  // by index
  std::uint32_t qp_count_max_, qpn_bits_;
  std::uint32_t count_ = 0;
  std::uint32_t numbered_ = 0;  // how often a number was looked at
};

}  // namespace weft::transport
