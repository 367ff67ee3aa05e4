// The judge's facts about one queue pair, and the table of all queue pairs.
//
// The Judge fills a Qp while it reads the trace. The rules read it, and each rule keeps its own
// state in the struct with the name of the rule. PSNs are converted to indices (psn_set.h): packets
// that this QP sends count from `tx_first`, packets for it from `rx_first`. Memory is bounded by
// the packets and messages in flight, not by the length of the run, except for one id per message
// (rule memory).
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/psn.h"
#include "base/trace.h"
#include "judge/complaint.h"
#include "judge/psn_set.h"
#include "wire/packet.h"

namespace weft::judge {

// A work request that has not completed. Its packets have the indices first .. first + count - 1.
struct Post {
  std::uint64_t id = 0;
  std::uint64_t va = 0;
  std::uint64_t length = 0;
  std::uint64_t sequence = 0;       // number among the posts of the QP, from 0
  std::uint64_t wimm_sequence = 0;  // number among the posts with immediate, from 0
  PsnIndex first = 0;
  PsnIndex count = 1;
  std::uint32_t immediate = 0;
  std::uint32_t rkey = 0;
  bool rkey_known = false;
  bool with_immediate = false;
  bool signalled = false;

  PsnIndex last() const { return first + count - 1; }
};

// A message with immediate that is not delivered, or not yet acknowledged to its sender.
struct Wimm {
  std::uint64_t length = 0;
  PsnIndex last = 0;
  std::uint32_t immediate = 0;
};

struct Qp {
  // Fields of the kQp record.
  std::uint32_t host = 0, qpn = 0;
  std::uint32_t peer_host = 0, peer_qpn = 0;
  Psn tx_first, rx_first;
  PsnIndex mtu = 1;
  std::uint64_t wimm_max = 0;
  Qp* peer = nullptr;  // the other end; set after the kQp records of both ends

  bool in_error = false;   // there was a kQpError
  bool gone = false;       // there was a kQpGone
  bool host_down = false;  // the host of this QP crashed
  bool peer_down = false;  // the host of the peer crashed

  // State as a requestor.
  std::deque<Post> posts;  // not yet completed, in order
  std::uint64_t post_count = 0;
  PsnIndex packets_posted = 0;
  PsnSet sent;
  PsnIndex cack = -1;   // index of the highest cumulative PSN in any SACK or Transport ACK
  PsnIndex acked = -1;  // index of the highest PSN in any Transport ACK
  // State as a responder.
  std::deque<std::uint64_t> receives;  // ids of posted receives that are not completed, in order
  PsnSet received;                     // data packets that arrived neither trimmed nor damaged
  std::uint64_t received_bytes = 0;    // nominal sizes of these packets, each PSN once

  struct {
    bool error_given = false;              // there was a completion with an error
    std::vector<std::uint64_t> succeeded;  // ids of completed messages, for the rule memory
  } completion;
  struct {
    std::deque<Wimm> messages;  // from number `forgotten` on; older ones are dropped
    std::uint64_t forgotten = 0, posted = 0, started = 0, acked = 0;
    std::uint64_t delivered = 0;  // messages from the peer that were delivered here
  } wimm;
  struct {
    std::unordered_map<std::uint64_t, EvTraceState> unusable;  // bad or denied, by EV and port
  } ev;
  struct {
    PsnIndex size = 0;  // the window's size in PSNs
    PsnIndex end = 0;   // new data must have a lower index
  } psn_window;
  struct {
    bool known = false;
    bool complained = false;
    std::int64_t window = 0, inflight = 0;  // bytes
  } cwnd;
  struct {
    bool msn_known = false, rqmsn_known = false;
    std::uint16_t msn_base = 0, rqmsn_base = 0;
  } packet;

  Place place(Time at) const { return {.at = at, .host = host, .qpn = qpn}; }
  // False if progress is no longer required: one end crashed, was destroyed, or is in error.
  bool is_healthy() const {
    const bool peer_well = peer != nullptr && !peer->in_error && !peer->gone;
    return !in_error && !gone && !host_down && !peer_down && peer_well;
  }
  // True if a signalled post has not completed.
  bool waits_for_completion() const;
  // The post that the packet belongs to; nullptr if it has completed or was never posted.
  Post* post_of(PsnIndex index);
};

// The newest QP of each pair (host, QPN). Older QPs stay in all(), because their messages are
// judged at the end.
class QpTable {
 public:
  // REQUIRES a kQp record with c > 0. Links the QP with its peer if the peer exists.
  Qp& add(const TraceRecord& record);
  // The newest QP with that number, or nullptr.
  Qp* find(std::uint32_t host, std::uint32_t qpn);

  struct Route {
    std::uint32_t from = 0;
    std::uint32_t to = TraceRecord::kUnknownHost;  // if unknown, dest_qpn must be unique
    std::uint32_t dest_qpn = 0;
  };
  // The QP of the sending host that sent the packet, or nullptr. The header names only the
  // receiving QP.
  Qp* sender(const Route& route);

  void on_host_down(std::uint32_t host);
  bool is_down(std::uint32_t host) const { return down_.contains(host); }
  std::deque<Qp>& all() { return all_; }

 private:
  struct Key {
    std::uint32_t a = 0, b = 0, c = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t h = (std::uint64_t{key.a} << 32 | key.b) * 0x9e3779b97f4a7c15u;
      h = (h ^ h >> 29 ^ key.c) * 0xbf58476d1ce4e5b9u;
      return static_cast<std::size_t>(h ^ h >> 32);
    }
  };

  void index(Qp& qp);
  void link(Qp& qp);

  std::deque<Qp> all_;  // pointers into it stay valid
  std::unordered_map<Key, Qp*, KeyHash> by_number_;
  std::unordered_map<Key, Qp*, KeyHash> by_peer_;  // nullptr: several QPs match
  std::unordered_map<std::uint32_t, bool> down_;
};

}  // namespace weft::judge
