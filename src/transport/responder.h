// Responder: what does this packet change here, and what do we answer?
//
// Places every packet as it comes, in any order; remembers which PSNs of the window are in; reports
// them in SACKs (reliability) and, as the cumulative edge passes the end of messages, in Transport
// ACKs (semantics: two layers, kept apart). Immediates wait for the edge to pass their message's
// last PSN, which is post order.
//
// Owned by one Qp. Answers go to the endpoint's ControlQueue: at most one SACK for each run of
// packets on one EV, decided at the end of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/assert.h"
#include "base/counters.h"
#include "base/psn.h"
#include "base/time.h"
#include "transport/config.h"
#include "transport/control_queue.h"
#include "transport/peer_kind.h"
#include "transport/work.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::transport {

struct ResponderCounters {
  PerPlane packets_placed{}, bytes_placed{};
  std::uint64_t duplicates = 0, out_of_window = 0, trimmed = 0;
  std::uint64_t sacks = 0, nacks = 0, transport_acks = 0, naks = 0;
};

class Responder {
 public:
  struct Options {
    std::uint32_t window = 4096;  // PSNs
    std::uint16_t wimm_max = 128;
    std::uint32_t mtu = 4096;
    std::uint32_t mtu_unlisted = 4096;  // over EndpointConfig::unlisted_ports
    std::uint32_t sack_bytes = 16 * 1024;
    const PeerRules* peer = &kNicRules;
    bool trim_nack = true;
    std::uint32_t domain = 0;
    Duration nack_interval = Duration::us(10);  // out-of-window NACKs: one in that time
  };
  // A data packet, and how it travelled.
  struct Arrival {
    Time now;
    const wire::Bth& bth;
    const wire::Write& write;
    world::PayloadRef payload;
    std::uint32_t nominal_size = 0;
    std::uint32_t entropy = 0;
    bool marked = false;  // CE
    bool trimmed = false, trimmed_last_hop = false;
    bool unlisted = false;  // came over one of EndpointConfig::unlisted_ports
    PortIndex port = 0;
  };
  // The receives posted, and where completions of them go.
  struct ReceiveSide {
    Ring<std::uint64_t>& receives;
    Ring<Completion>& completions;
  };

  explicit Responder(const Options& options);

  // At RTR: the first PSN that will come.
  void start(Psn first, const QpEnds& ends);

  // One data packet. kOk, or why the QP must go to ERR (the NAK is queued).
  Status on_write(const Arrival& arrival, world::Memory& memory, ReceiveSide side,
                  ControlQueue& out, ResponderCounters& counters);
  // A reliability probe, and how it travelled: answered at once, the first by the plane that it came
  // by.
  struct ProbeArrival {
    std::uint32_t entropy;
    bool marked;
    PortIndex port;
  };
  void on_probe(const wire::Probe& probe, const ProbeArrival& arrival, ControlQueue& out,
                ResponderCounters& counters);
  // The batch is over: the SACK and Transport ACK that it made due.
  void flush(ControlQueue& out, ResponderCounters& counters);
  // Something came that no SACK has reported.
  bool owes_sack() const { return bytes_since_sack_ > 0; }
  // Queues a SACK that reports it, on that route. It is still owed: settle() when it was sent on all
  // ports.
  struct SackRoute {
    bool rtx = false;
    PortChoice port = PortChoice::in_turn();
    bool twice = false;  // a copy by another plane too
  };
  void report(SackRoute route, ControlQueue& out, ResponderCounters& counters);
  void settle();
  // How much room the next SACKs offer. When a penalty ends they also tell the requestor to
  // restore its window.
  void limit(const ReceiveLimit& limit) {
    WEFT_ASSERT(limit.cwnd_penalty <= 127);  // 7 bits
    restore_ = limit.cwnd_penalty == 0 && (limit_.cwnd_penalty > 0 || restore_);
    limit_ = limit;
  }
  // The QP failed without a NAK: a NACK tells the requestor that it is over.
  void send_unexpected(const wire::Bth& bth, ControlQueue& out, ResponderCounters& counters) const;
  // The QP is in ERR after a NAK of ours: it is repeated for every later packet. False if there is
  // none.
  bool repeat_nak(ControlQueue& out) const;

  Psn cack() const { return cack_; }
  std::size_t bytes() const {
    return 2 * (word_mask_ + 1) * sizeof(std::uint64_t) + options_.wimm_max * sizeof(Immediate);
  }
  // The part of the bitmap that the next packet will set a bit in.
  world::Node::Part hot_bits() const {
    return {.at = &received_[max_received_.value() >> 6 & word_mask_], .bytes = 8};
  }

 private:
  // Why, and for which packet, a SACK is due.
  struct Trigger {
    bool due = false, marked = false, rtx = false;
    Psn psn;
    std::uint32_t entropy = 0;
    wire::Timestamp sent;
  };
  // An immediate that waits for the edge.
  struct Immediate {
    std::uint32_t last_psn;  // of its message
    std::uint32_t value, size;
    std::uint16_t rqmsn;
    bool solicited;
    Psn psn() const { return Psn(last_psn); }
  };

  bool test(const std::uint64_t* bits, Psn psn) const {
    return (bits[psn.value() >> 6 & word_mask_] >> (psn.value() & 63) & 1) != 0;
  }
  void set(std::uint64_t* bits, Psn psn) {
    bits[psn.value() >> 6 & word_mask_] |= 1ull << (psn.value() & 63);
  }
  void reset(std::uint64_t* bits, Psn psn) {
    bits[psn.value() >> 6 & word_mask_] &= ~(1ull << (psn.value() & 63));
  }
  std::uint64_t bits_from(Psn base) const;
  // --- the steps of on_write
  bool is_received(Psn psn) const { return psn.since(cack_) <= 0 || test(received_.get(), psn); }
  void on_out_of_window(const Arrival& arrival, ControlQueue& out, ResponderCounters& counters);
  void on_duplicate(const Arrival& arrival, ControlQueue& out, ResponderCounters& counters);
  void on_trimmed(const Arrival& arrival, ControlQueue& out, ResponderCounters& counters);
  // kAck, or why the payload was refused.
  wire::AckSyndrome place(const Arrival& arrival, world::Memory& memory,
                          ResponderCounters& counters);
  void set_received(const Arrival& arrival);
  bool is_sack_due(const Arrival& arrival);

  void drop_reports_below_edge();
  void note_late(Psn psn);
  void note_reported(Psn base);
  void note_trigger(const Arrival& arrival, bool due, ControlQueue& out,
                    ResponderCounters& counters);
  Status advance(ReceiveSide side, ControlQueue& out, ResponderCounters& counters);
  // kAck, or what is wrong.
  wire::AckSyndrome deliver(const Immediate& immediate, ReceiveSide side);
  bool stash_immediate(const Arrival& arrival);
  Immediate take_first_immediate();
  void send_sack(const wire::Sack& base, Psn bitmap_base, SackRoute route, ControlQueue& out,
                 ResponderCounters& counters);
  wire::Sack sack_state() const;
  // Something is missing, and no SACK said so for PeerRules::sack_interval_with_holes.
  bool is_sack_due_for_holes(Time now) const {
    return options_.peer->sack_interval_with_holes > Duration() && above_cack_ > 0 &&
           now >= sack_with_holes_at_;
  }
  void flush_sack(ControlQueue& out, ResponderCounters& counters);
  void send_nack(const Arrival& arrival, wire::NackReason reason, ControlQueue& out,
                 ResponderCounters& counters);
  Status refuse(wire::AckSyndrome syndrome, Psn psn, ControlQueue& out,
                ResponderCounters& counters);

  Options options_;
  QpEnds qp_;
  std::unique_ptr<std::uint64_t[]> received_;  // one bit a PSN of the window, and
  std::uint64_t* ends_ = nullptr;              // 'ends a message'; in one allocation
  // Sorted by PSN; few are waiting.
  std::unique_ptr<Immediate[]> immediates_;
  std::uint32_t word_mask_ = 0;
  std::uint16_t immediate_count_ = 0;
  Psn cack_, max_received_;
  Psn sack_edge_;  // cack at the last SACK that was due
  // Everything received below `unreported_` was reported, but for late packets, if any: those that
  // came after their neighbours were reported, from the first to the last of them.
  Psn unreported_, late_first_, late_last_;
  Psn probe_edge_, probe_next_;   // the edge at the last probe, and the PSN behind its answer's map
  std::uint32_t above_cack_ = 0;  // received above cack
  std::uint32_t msn_ = 0;
  std::optional<std::uint16_t> next_rqmsn_;  // none before the first immediate
  std::uint64_t bytes_received_ = 0;         // nominal sizes
  std::uint32_t bytes_since_sack_ = 0;
  Time sack_with_holes_at_;  // when holes are worth a SACK
  Trigger trigger_;
  ReceiveLimit limit_;
  bool restore_ = false;      // a penalty has ended
  bool probe_walks_ = false;  // the last answer to a probe was about a later part of the window
  bool late_ = false;         // late_first_ and late_last_ count
  bool report_low_ = false;   // the next SACK starts at the lowest PSN not reported
  bool ack_due_ = false;      // a Transport ACK
  bool asked_with_holes_ = false;  // prev_ar
  bool first_ = true;
  Time out_of_window_next_;
  std::optional<wire::TransportAck> nak_;
  Psn nak_psn_;
};

}  // namespace weft::transport
