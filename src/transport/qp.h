// Qp: what state are we in, what may happen next? A switch and calls; the work is the requestor's
// and the responder's.
#pragma once

#include <cstdint>
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

  // What the next packet of each kind will touch: the responder's part, the requestor's part.
  world::Node::Part responder_part() const {
    const auto* begin = reinterpret_cast<const char*>(this);
    const auto* end = reinterpret_cast<const char*>(&responder + 1);
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }
  world::Node::Part requestor_part() const {
    return {.at = &requestor, .bytes = sizeof(requestor)};
  }

  // What every packet looks at comes first.
  Qpn qpn;
  QpState state = QpState::kInit;
  bool ready = false;    // in the endpoint's ready list
  bool silent = false;   // its requestor waits for a silent peer: any packet is a word
  bool touched = false;  // in this batch: its responder has something to flush
  static constexpr std::uint32_t kNoPeer = 0xffff'ffff;
  std::uint32_t peer = kNoPeer;  // index of the peer; none before it is connected
  std::uint32_t peer_qpn = 0;
  const QpParams* params;
  std::uint32_t next_of_peer = 0xffff'ffff;  // list of the peer's QPs
  Psn first_psn;
  Ring<std::uint64_t> receives;  // ids of posted receives
  Responder responder;
  Requestor requestor;
};

}  // namespace weft::transport
