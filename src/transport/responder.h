// Responder: places the data that arrives, and acknowledges it.
//
// Places every packet as it arrives, in any order, and remembers which PSNs of the window have
// arrived. SACKs report packets; as the cumulative PSN passes the end of messages, Transport ACKs
// report complete messages. An immediate waits until the cumulative PSN passes the last PSN of its
// message, so immediates are delivered in post order.
//
// Owned by one Qp. Answers go to the endpoint's ControlQueue: at most one SACK for each burst on
// one EV, decided at the end of a batch.
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
    std::uint32_t mtu_unlisted = 4096;  // largest payload over EndpointConfig::unlisted_ports
    std::uint32_t sack_bytes = 16 * 1024;
    const PeerRules* peer = &kNicRules;
    bool trim_nack = true;
    std::uint32_t domain = 0;
    Duration nack_interval = Duration::us(10);  // at most one out-of-window NACK in that time
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
    bool unlisted = false;  // arrived on one of EndpointConfig::unlisted_ports
    PortIndex port = 0;
  };
  // The posted receives, and the ring for their completions.
  struct ReceiveSide {
    Ring<std::uint64_t>& receives;
    Ring<Completion>& completions;
  };

  explicit Responder(const Options& options);

  // QP goes to RTR: `first` is the first PSN that will arrive.
  void start(Psn first, const QpEnds& ends);

  // Takes one data packet. Returns kOk, or why the QP must go to ERR (the NAK is queued).
  Status on_write_packet(const Arrival& arrival, world::Memory& memory, ReceiveSide side,
                         ControlQueue& out, ResponderCounters& counters);
  // A reliability probe, and how it travelled. It is answered at once; the first answer takes the
  // plane on which the probe arrived.
  struct ProbeArrival {
    std::uint32_t entropy;
    bool marked;
    PortIndex port;
  };
  void on_probe(const wire::Probe& probe, const ProbeArrival& arrival, ControlQueue& out,
                ResponderCounters& counters);
  // Called at the end of a batch: queues the SACK and Transport ACK that the batch made due.
  void queue_due_answers(ControlQueue& out, ResponderCounters& counters);
  // Data has arrived that no SACK has reported.
  bool owes_sack() const { return bytes_since_sack_ > 0; }
  // Queues a SACK that reports this data, on that route. The SACK is still owed: call settle() when
  // one was queued for each port.
  struct SackRoute {
    bool rtx = false;
    PortChoice port = PortChoice::in_turn();
    bool twice = false;  // send a copy on another plane too
  };
  void report(SackRoute route, ControlQueue& out, ResponderCounters& counters);
  void settle();
  // Sets how much room the next SACKs report. When a penalty ends, they also tell the requestor to
  // restore its window.
  void set_receive_limit(const ReceiveLimit& limit) {
    WEFT_ASSERT(limit.cwnd_penalty <= 127);  // 7 bits
    restores_window_ = limit.cwnd_penalty == 0 && (limit_.cwnd_penalty > 0 || restores_window_);
    limit_ = limit;
  }
  // The QP failed without a NAK: a NACK tells the requestor that the QP has failed.
  void send_unexpected(const wire::Bth& bth, ControlQueue& out, ResponderCounters& counters) const;
  // The QP is in ERR after our NAK: the NAK is repeated for every later packet. False if there was
  // no NAK.
  bool repeat_nak(ControlQueue& out) const;

  Psn cack() const { return cack_; }
  std::size_t bytes() const {
    return 2 * (word_mask_ + 1) * sizeof(std::uint64_t) + options_.wimm_max * sizeof(Immediate);
  }
  // The word of the bitmap in which the next packet will set a bit; for prefetching.
  world::Node::Part prefetch_bits() const {
    return {.at = &received_[max_received_.value() >> 6 & word_mask_], .bytes = 8};
  }

 private:
  // Whether and why a SACK is due, and the packet that it reflects.
  struct Trigger {
    bool due = false, marked = false, rtx = false;
    Psn psn;
    std::uint32_t entropy = 0;
    wire::Timestamp sent;
  };
  // An immediate that waits until the cumulative PSN passes its message.
  struct Immediate {
    std::uint32_t last_psn;  // last PSN of its message
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
  // --- the steps of on_write_packet
  bool is_received(Psn psn) const { return psn.since(cack_) <= 0 || test(received_.get(), psn); }
  void on_out_of_window(const Arrival& arrival, ControlQueue& out, ResponderCounters& counters);
  void on_duplicate(const Arrival& arrival, ControlQueue& out, ResponderCounters& counters);
  void on_trimmed(const Arrival& arrival, ControlQueue& out, ResponderCounters& counters);
  // kAck, or why the payload is refused.
  wire::AckSyndrome place(const Arrival& arrival, world::Memory& memory,
                          ResponderCounters& counters);
  void set_received(const Arrival& arrival);
  bool is_sack_due(const Arrival& arrival);

  void drop_reports_below_cack();
  void note_late(Psn psn);
  void note_reported(Psn base);
  void note_trigger(const Arrival& arrival, bool due, ControlQueue& out,
                    ResponderCounters& counters);
  Status advance(ReceiveSide side, ControlQueue& out, ResponderCounters& counters);
  // kAck, or why the immediate is refused.
  wire::AckSyndrome deliver(const Immediate& immediate, ReceiveSide side);
  bool stash_immediate(const Arrival& arrival);
  Immediate take_first_immediate();
  void send_sack(const wire::Sack& base, Psn bitmap_base, SackRoute route, ControlQueue& out,
                 ResponderCounters& counters);
  wire::Sack sack_state() const;
  // PSNs are missing, and no SACK has reported it for PeerRules::sack_interval_with_holes.
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
  std::unique_ptr<std::uint64_t[]> received_;  // per PSN of the window: has arrived
  std::uint64_t* ends_ = nullptr;              // per PSN: ends a message; in the same allocation
  // Sorted by PSN. Few immediates wait at a time.
  std::unique_ptr<Immediate[]> immediates_;
  std::uint32_t word_mask_ = 0;
  std::uint16_t immediate_count_ = 0;
  Psn cack_, max_received_;
  Psn cack_at_last_sack_;  // cumulative PSN at the last SACK that was due
  // Everything received below `unreported_` was reported, except late packets between `late_first_`
  // and `late_last_`: they arrived after their neighbours were reported.
  Psn unreported_, late_first_, late_last_;
  Psn cack_at_last_probe_, probe_next_;  // cack at the last probe; PSN after its answer's map
  std::uint32_t above_cack_ = 0;         // PSNs received above the cumulative PSN
  std::uint32_t msn_ = 0;
  std::optional<std::uint16_t> next_rqmsn_;  // none before the first immediate
  std::uint64_t bytes_received_ = 0;         // nominal sizes
  std::uint32_t bytes_since_sack_ = 0;
  Time sack_with_holes_at_;  // when a SACK is due if holes are left
  Trigger trigger_;
  ReceiveLimit limit_;
  bool restores_window_ = false;  // a penalty has ended: the next SACK says restore
  bool probe_walks_ = false;      // the last answer to a probe reported a later part of the window
  bool has_late_ = false;         // late_first_ and late_last_ are valid
  bool report_low_ = false;       // the next SACK starts at the lowest unreported PSN
  bool ack_due_ = false;          // a Transport ACK is due
  bool sack_requested_with_holes_ = false;  // a SACK request came while PSNs were missing (prev_ar)
  bool first_ = true;
  Time out_of_window_next_;
  std::optional<wire::TransportAck> nak_;
  Psn nak_psn_;
};

}  // namespace weft::transport
