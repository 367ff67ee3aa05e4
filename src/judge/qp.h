// What the judge knows about one queue pair, and the table of all of them.
//
// A Qp is plain facts, filled by the Judge as it reads; the rules look at them and keep what is
// theirs in the part named after them. PSNs are unrolled to indices (psn_set.h): data of this QP
// counts from its first PSN in `tx`, data for it from the first PSN it expects in `rx`. Memory is
// bounded by what is under way, not by the length of the run, except for one id a message until the
// end (rule memory).
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
  std::uint64_t sequence = 0;       // of the QP's posts
  std::uint64_t wimm_sequence = 0;  // of the QP's posts with immediate
  PsnIndex first = 0;
  PsnIndex count = 1;
  std::uint32_t immediate = 0;
  std::uint32_t rkey = 0;
  bool rkey_known = false;
  bool with_immediate = false;
  bool signalled = false;

  PsnIndex last() const { return first + count - 1; }
};

// A message with immediate that the peer has not delivered, or whose sender does not know it.
struct Wimm {
  std::uint64_t length = 0;
  PsnIndex last = 0;
  std::uint32_t immediate = 0;
};

struct Qp {
  // From kQp.
  std::uint32_t host = 0, qpn = 0;
  std::uint32_t peer_host = 0, peer_qpn = 0;
  Psn tx_first, rx_first;
  PsnIndex mtu = 1;
  std::uint64_t wimm_max = 0;
  Qp* peer = nullptr;  // the other end, once both have been read

  bool in_error = false;   // kQpError
  bool gone = false;       // kQpGone
  bool host_down = false;  // kHostDown of its own host
  bool peer_down = false;  // kHostDown of the peer

  // As a requestor.
  std::deque<Post> posts;  // not yet completed, in order
  std::uint64_t post_count = 0;
  PsnIndex packets_posted = 0;
  PsnSet sent;
  PsnIndex cack = -1;  // the highest that a SACK or Transport ACK told this end
  PsnIndex acked =
      -1;  // the highest that a Transport ACK told this end: what lies below is complete
  // As a responder.
  std::deque<std::uint64_t> receives;  // ids posted and not completed, in order
  PsnSet received;                     // data given to this end whole and undamaged
  std::uint64_t received_bytes = 0;    // nominal sizes of those, each PSN once

  struct {
    bool error_given = false;              // a completion with an error was given
    std::vector<std::uint64_t> succeeded;  // ids of messages known complete, for the rule memory
  } completion;
  struct {
    std::deque<Wimm> messages;  // those before `forgotten` are dropped
    std::uint64_t forgotten = 0, posted = 0, started = 0, acked = 0;
    std::uint64_t delivered = 0;  // of the peer's messages, here
  } wimm;
  struct {
    std::unordered_map<std::uint64_t, EvTraceState> unusable;  // by EV and port
  } ev;
  struct {
    PsnIndex size = 0;  // in PSNs
    PsnIndex edge = 0;  // new data lies below it
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
  // False when nothing more can be asked of it: an end crashed, was destroyed, or is in error.
  bool is_healthy() const {
    const bool peer_well = peer != nullptr && !peer->in_error && !peer->gone;
    return !in_error && !gone && !host_down && !peer_down && peer_well;
  }
  // True if a signalled post has not completed.
  bool waits_for_completion() const;
  // The post that owns the packet, or nullptr: completed, or never posted.
  Post* post_of(PsnIndex index);
};

// The pairs (host, QPN), each with its newest QP. Older ones stay in all(), since their messages
// are judged at the end.
class QpTable {
 public:
  // REQUIRES a kQp record with c > 0. Links it with its peer if that is there.
  Qp& add(const TraceRecord& record);
  // The newest QP of that number, or nullptr.
  Qp* find(std::uint32_t host, std::uint32_t qpn);

  struct Route {
    std::uint32_t from = 0;
    std::uint32_t to = TraceRecord::kNobody;  // kNobody: found if only one peer has that QPN
    std::uint32_t dest_qpn = 0;
  };
  // Which QP of the sending host this packet comes from: the header names only the other end. Or
  // nullptr.
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
  std::unordered_map<Key, Qp*, KeyHash> by_peer_;  // nullptr: more than one
  std::unordered_map<std::uint32_t, bool> down_;
};

}  // namespace weft::judge
