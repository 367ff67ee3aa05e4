// ReverseEvs: chooses the EV that carries control packets to a peer in each plane, and checks that
// it works.
//
// A plane starts with an EV of the first QP to the peer. Whenever a control packet goes to a peer,
// one plane drawn at random is checked: an EV that nothing has confirmed for a while is probed. A
// probe without a prompt answer is repeated on another EV of the plane. A plane is in doubt when
// later probes of other planes are answered first (Peer::kFailuresMax).
//
// Probes have a budget: one per 100 packets that the endpoint sends, and 1,000 per second. Owned by
// the endpoint; the state of each plane is in Peer::Reverse.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "base/time.h"
#include "fabric/ev.h"
#include "transport/control_queue.h"
#include "transport/path_set.h"
#include "transport/peer.h"
#include "transport/request_ids.h"

namespace weft::transport {

// Tokens for probes: earned by packets sent and by time, at most 16 at once.
class ProbeTokens {
 public:
  void on_packet_sent() { token_thousandths_ += kMilliPerPacket; }
  bool take(Time now);

 private:
  static constexpr std::int64_t kMilliPerPacket = 10, kMilliPerProbe = 1000, kMilliMax = 16'000;

  std::int64_t token_thousandths_ = kMilliMax;
  Time filled_at_;
};

class ReverseEvs {
 public:
  // `confirm`: a reverse EV that nothing has confirmed for this long is probed.
  explicit ReverseEvs(Duration confirm) : confirm_(confirm) {}

  // Every packet that the endpoint sends adds to the probe budget.
  void on_packet_sent() { tokens_.on_packet_sent(); }

  // A new QP with these paths leads to the peer: each plane without a reverse EV takes one of these
  // EVs.
  static void adopt(Time now, Peer& peer, const PathSet& paths, std::uint32_t port_count,
                    Prng& prng);

  struct Check {
    Time now;
    std::uint32_t index = 0;  // of the peer
    const PathSet& paths;     // paths of a QP to the peer
    PortMask ports_up = 0;
    std::uint32_t port_count = 1;
  };
  // A control packet was sent to the peer.
  void check(const Check& check, Peer& peer, Prng& prng, RequestIds& ids, ControlQueue& out);

  // True: the packet answers a probe of a reverse EV.
  static bool on_answer(Time now, Peer& peer, std::uint32_t port_count, std::uint16_t id);

  // The controller denies an EV of a QP with these paths, or allows it again. Control packets do
  // not use a denied EV either, nor a plane whose EVs are all denied, unless it is the last plane.
  static void deny(Peer& peer, const PathSet& paths, fabric::Ev ev);
  static void allow(Time now, Peer& peer, fabric::Ev ev);

  std::uint64_t probes() const { return probes_; }

 private:
  Duration confirm_;
  ProbeTokens tokens_;
  std::uint64_t probes_ = 0;
};

}  // namespace weft::transport
