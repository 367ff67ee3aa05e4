// Qp: one queue pair, with its state, its requestor and its responder. Also holds what other parts
// of the endpoint keep for each QP. Owned by the QpTable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/ring.h"
#include "transport/answer_scheduler.h"
#include "transport/peer.h"
#include "transport/refused_peers.h"
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

  // The first members, which every packet reads; for prefetching.
  world::Node::Part head() const { return {.at = this, .bytes = 8}; }
  // The part of this object that the next data packet will touch; for prefetching.
  world::Node::Part responder_part() const {
    const auto* begin = reinterpret_cast<const char*>(this);
    const auto* end = reinterpret_cast<const char*>(&responder + 1);
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }

  // First members: every packet reads them.
  Qpn qpn;
  QpState state = QpState::kInit;
  bool ready = false;           // the QP is in the endpoint's ReadyRing
  bool peer_is_silent = false;  // until any packet of the peer comes
  static constexpr std::uint32_t kNoPeer = 0xffff'ffff;
  std::uint32_t peer = kNoPeer;  // index of the peer; kNoPeer before connect
  std::uint32_t peer_qpn = 0;
  const QpParams* params;
  std::uint32_t next_of_peer = Peer::kNobody;  // next QP in the list of the peer's QPs
  Psn first_psn, peer_first_psn;
  std::uint32_t budget_epoch = 0;  // receive budget epoch in which the QP last received
  AnswerScheduler::OfQp answers;
  Ring<std::uint64_t> receives;  // ids of posted receives
  Responder responder;
  Requestor requestor;
  RefusedPeers::OfQp refused;
};

}  // namespace weft::transport
