// ReverseEvs: which EV carries control packets to a peer in each plane, and does it still work?
//
// A plane starts with an EV of the first QP to the peer. Whenever a control packet goes to a peer,
// one plane drawn at random is looked at: an EV that nothing has confirmed for a while is probed. A
// probe that is not answered soon is sent again over another EV of the plane. A plane whose probes
// are overtaken by later ones of other planes is in doubt (Peer::kFailuresMax).
//
// Probes have a budget: one for 100 packets that the endpoint sends, and 1,000 a second. Owned by the
// endpoint; what is known of each plane stands in Peer::Reverse.
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

// Tokens for probes: so many for the packets sent and the time gone, up to 16 at once.
class ProbeTokens {
 public:
  void on_packet_sent() { milli_ += kMilliPerPacket; }
  bool take(Time now);

 private:
  static constexpr std::int64_t kMilliPerPacket = 10, kMilliPerProbe = 1000, kMilliMax = 16'000;

  std::int64_t milli_ = kMilliMax;
  Time filled_at_;
};

class ReverseEvs {
 public:
  // `confirm`: a reverse EV that nothing confirmed for so long is probed.
  explicit ReverseEvs(Duration confirm) : confirm_(confirm) {}

  // Every packet of the endpoint adds to the budget of probes.
  void on_packet_sent() { tokens_.on_packet_sent(); }

  // A QP with these paths now leads to the peer: planes without a reverse EV take one of them.
  static void adopt(Time now, Peer& peer, const PathSet& paths, std::uint32_t port_count,
                    Prng& prng);

  struct Check {
    Time now;
    std::uint32_t index = 0;  // of the peer
    const PathSet& paths;     // of a QP to the peer
    PortMask ports_up = 0;
    std::uint32_t port_count = 1;
  };
  // A control packet went to the peer.
  void check(const Check& check, Peer& peer, Prng& prng, RequestIds& ids, ControlQueue& out);

  // True: this was the answer to a probe of a reverse EV.
  static bool on_answer(Time now, Peer& peer, std::uint32_t port_count, std::uint16_t id);

  // The controller denies an EV of a QP with these paths, or allows it again. Control packets leave a
  // denied EV too, and a plane whose EVs are all denied, as long as there is another plane.
  static void deny(Peer& peer, const PathSet& paths, fabric::Ev ev);
  static void allow(Time now, Peer& peer, fabric::Ev ev);

  std::uint64_t probes() const { return probes_; }

 private:
  Duration confirm_;
  ProbeTokens tokens_;
  std::uint64_t probes_ = 0;
};

}  // namespace weft::transport
