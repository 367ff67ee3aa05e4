// Qp: what state are we in, what may happen next? A switch and calls; the work is the requestor's
// and the responder's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/ring.h"
#include "transport/requestor.h"
#include "transport/responder.h"
#include "transport/work.h"

namespace weft::transport {

struct Qp {
  struct Options {
    const QpParams* params = nullptr;
    Requestor::Options requestor;
    Responder::Options responder;
    std::uint32_t receive_queue_max = 16;
    Qpn qpn = 0;
    Psn first_psn;
  };
  Qp(const Options& options, std::span<const fabric::Ev> evs)
      : qpn(options.qpn),
        params(options.params),
        first_psn(options.first_psn),
        receives(options.receive_queue_max),
        responder(options.responder),
        requestor(options.requestor, evs) {}

  bool may_send() const { return state == QpState::kReadyToSend; }
  bool may_receive() const {
    return state == QpState::kReadyToReceive || state == QpState::kReadyToSend;
  }

  // What every packet looks at.
  world::Node::Part head() const { return {.at = this, .bytes = 8}; }
  // What the next data packet will touch, of this object.
  world::Node::Part responder_part() const {
    const auto* begin = reinterpret_cast<const char*>(this);
    const auto* end = reinterpret_cast<const char*>(&responder + 1);
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }

  // What every packet looks at comes first.
  Qpn qpn;
  QpState state = QpState::kInit;
  bool ready = false;    // in the endpoint's ready list
  bool silent = false;   // its requestor waits for a silent peer: any packet is a word
  bool touched = false;  // in this batch: its responder has something to flush
  bool watched = false;  // received something lately: the endpoint looks whether it was reported
  static constexpr std::uint32_t kNoPeer = 0xffff'ffff;
  std::uint32_t peer = kNoPeer;  // index of the peer; none before it is connected
  std::uint32_t peer_qpn = 0;
  const QpParams* params;
  std::uint32_t next_of_peer = 0xffff'ffff;  // list of the peer's QPs
  Psn first_psn, peer_first_psn;
  std::uint32_t budget_epoch = 0;  // when it last received, to the receive budget
  Time received_at;                // when it last received
  Ring<std::uint64_t> receives;    // ids of posted receives
  Responder responder;
  Requestor requestor;
  // Its peer was said to be gone (endpoint_refused.cc): how often it was asked since, when next.
  struct Refused {
    bool active = false;
    std::uint8_t asked = 0;
    Time since, next;
  } refused;
  // Where answers are put off: data before the one shows that the peer waited for the last of them;
  // until the other they go at once.
  Time waited_if_before, at_once_until;
  std::uint8_t waits = 0;  // so shown, one after the other
};

// A place for a QP. Whether one lives there stands before it, on the cache line that every packet
// looks at anyway; std::optional has it behind the QP.
class alignas(64) QpSlot {
 public:
  QpSlot() {}
  ~QpSlot() { reset(); }
  QpSlot(const QpSlot&) = delete;
  QpSlot& operator=(const QpSlot&) = delete;

  explicit operator bool() const { return used_; }
  // REQUIRES that one lives here.
  Qp& operator*() { return qp_; }
  Qp* operator->() { return &qp_; }

  // REQUIRES that none lives here.
  void emplace(const Qp::Options& options, std::span<const fabric::Ev> evs) {
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

}  // namespace weft::transport
