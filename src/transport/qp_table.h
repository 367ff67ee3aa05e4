// QpTable: the QPs of an endpoint, found by number or index, and listed by peer.
//
// The QPs lie in one array, and the low bits of a QPN are the index: no search is needed. QPNs
// count up in their low bits and wrap around, so that a number is used again only after all others.
// Bounded; owned by the endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.h"
#include "transport/peer.h"
#include "transport/qp.h"
#include "wire/packet.h"

namespace weft::transport {

// Room for one QP. The flag that says whether a QP lives here comes first, on the cache line that
// every packet reads anyway; std::optional has the flag behind its value.
class alignas(64) QpSlot {
 public:
  QpSlot() {}
  ~QpSlot() { reset(); }
  QpSlot(const QpSlot&) = delete;
  QpSlot& operator=(const QpSlot&) = delete;

  explicit operator bool() const { return used_; }
  // REQUIRES that a QP lives here; unchecked, as every packet passes here.
  Qp& operator*() { return qp_; }
  Qp* operator->() { return &qp_; }

  // REQUIRES that no QP lives here.
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

  // Null if there is no such QP.
  Qp* find(Qpn qpn) const {
    QpSlot& qp = slots_[index_of(qpn)];
    return qp && qp->qpn == qpn ? &*qp : nullptr;
  }
  std::uint32_t index_of(Qpn qpn) const { return (qpn - first_qpn_) & mask_; }
  std::uint32_t index_of(const Qp& qp) const { return index_of(qp.qpn); }
  // REQUIRES that a QP has this index.
  Qp& operator[](std::uint32_t index) const {
    WEFT_ASSERT(slots_[index]);  // no list or timer names a destroyed QP
    return *slots_[index];
  }

  bool full() const { return count_ >= qp_count_max_; }
  // All indices are below this.
  std::uint32_t size() const { return mask_ + 1; }
  // A number for a new QP. REQUIRES !full().
  Qpn next_number();
  // REQUIRES that `options` has a number from next_number() that no QP has.
  Qp& emplace(const Qp::Options& options, std::span<const fabric::Ev> evs);
  // REQUIRES that the QP is in no list.
  void erase(std::uint32_t index);

  // Calls f(Qp&) for each QP, in the order of indices.
  template <typename F>
  void for_each(F f) const {
    for (std::uint32_t i = 0; i <= mask_; ++i) {
      if (slots_[i]) f(*slots_[i]);
    }
  }
  // Calls f(Qp&) for each QP to that peer, newest first. `f` must not link or unlink QPs.
  template <typename F>
  void for_each_of(const Peer& peer, F f) const {
    for (std::uint32_t i = peer.first_qp; i != Peer::kNobody;) {
      Qp& qp = (*this)[i];
      i = qp.next_of_peer;
      f(qp);
    }
  }
  // Puts the QP into the list of its peer, or takes it out.
  void link(Peer& peer, Qp& qp) const;
  void unlink(Peer& peer, const Qp& qp) const;

  std::size_t bytes() const { return size() * sizeof(QpSlot); }

 private:
  // First members: every packet reads them.
  std::uint32_t first_qpn_, mask_;
  std::unique_ptr<QpSlot[]> slots_;  // by index
  std::uint32_t qp_count_max_, qpn_bits_;
  std::uint32_t count_ = 0;
  std::uint32_t numbered_ = 0;  // numbers that next_number() has looked at
};

}  // namespace weft::transport
