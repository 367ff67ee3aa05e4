// The rules: small functions that read the facts of a QP and complain. README.md has the table.
//
// The Judge calls them in the order of the trace. It checks an event before the event changes the
// facts, unless a comment says otherwise. It calls finish_* once, at the end. A rule keeps no
// pointer and stores its state in the Qp.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "judge/complaint.h"
#include "judge/qp.h"

namespace weft::judge {

// A data packet that left its QP.
struct DataSent {
  const TraceRecord& record;
  const wire::Bth& bth;
  const wire::Write& write;
  PsnIndex index = 0;
  std::int64_t nominal_size = 0;
  Post* post = nullptr;  // the post that the packet belongs to; nullptr if none
};

// The bytes that both ends count for a data packet in flight: UDP length + 40.
std::int64_t nominal_size(const TraceRecord& record, const wire::Bth& bth);

// --- rule_memory.cc: a message that was reported complete lies in the receiver's memory, byte for
// byte ---

class MemoryRule {
 public:
  // Reads a kMemory record.
  void read(const TraceRecord& record);
  // REQUIRES that every record has been read.
  void finish(const Qp& sender, Time end, Complaints& complaints);

 private:
  struct CheckedMessage {
    std::uint64_t id = 0, right = 0, size = 0;
  };
  struct Receiver {
    std::vector<CheckedMessage> messages;
    bool sorted = false;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Receiver> receivers_;  // by (host, QPN)
};

// --- rule_completion.cc: every signalled post and every receive completes once and in order; an
// error flushes the others ---

// Removes the post, and the unsignalled ones before it, from the QP.
void check_send_completion(Qp& qp, const TraceRecord& record, Complaints& complaints);
// Removes the receive from the QP. check_delivery checks the order of immediates.
void check_receive_completion(Qp& qp, const TraceRecord& record, Complaints& complaints);
void finish_completion(const Qp& qp, Time end, Complaints& complaints);

// --- rule_wimm.cc: immediates are delivered in post order and after all earlier data; the number
// in flight stays within the limit ---

void note_wimm_post(Qp& qp, const Post& post);
void check_delivery(Qp& responder, const TraceRecord& record, Complaints& complaints);
void check_wimm_limit(Qp& qp, const DataSent& data, Complaints& complaints);
// A Transport ACK reached the requestor. REQUIRES that Qp::acked is already updated.
void note_wimm_acked(Qp& qp);
// REQUIRES that the faults were healed long enough ago for everything to be delivered.
void finish_wimm(const Qp& responder, Time end, Complaints& complaints);

// --- rule_ev.cc: no data on an EV that is assumed bad or denied ---

void note_ev(Qp& qp, const TraceRecord& record);
void check_ev(const Qp& qp, const DataSent& data, Complaints& complaints);

// --- rule_psn_window.cc: new data stays within the peer's PSN window that the sender knows ---

struct PsnWindowTolerance {
  std::int64_t psns = 0;
};
void check_psn_window(const Qp& qp, const DataSent& data, PsnWindowTolerance tolerance,
                      Complaints& complaints);
// A SACK with the cumulative index `cack` reached the requestor. REQUIRES that Qp::cack is not yet
// updated.
void note_psn_window(Qp& qp, PsnIndex cack, std::uint8_t mpr);

// --- rule_cwnd.cc: no data beyond the congestion window; inflight returns to zero ---

struct CwndTolerance {
  std::int64_t bytes = 0;
};
void note_cwnd(Qp& qp, const TraceRecord& record);
// Also adds the packet to Qp::cwnd.inflight.
void check_cwnd(Qp& qp, const DataSent& data, CwndTolerance tolerance, Complaints& complaints);
void finish_inflight(const Qp& qp, Time end, Complaints& complaints);

// --- rule_stuck.cc: after healing every post between two living ends completes ---

void finish_stuck(const Qp& qp, Time end, Complaints& complaints);

// --- rule_packet.cc: a data packet, retransmitted or not, is the part of the post that its PSN
// stands for ---

void check_packet(Qp& qp, const DataSent& data, Complaints& complaints);

// --- rule_ack.cc: a responder acknowledges only what it received ---

void check_sack(const Qp& responder, Time at, const wire::Sack& sack, Complaints& complaints);
void check_transport_ack(const Qp& responder, Time at, const wire::Bth& bth,
                         const wire::TransportAck& ack, Complaints& complaints);

// --- rule_error.cc: a QP fails only if its peer fails, and then sends no data ---

struct ErrorOptions {
  bool errors_expected = false;
};
void check_error(const Qp& qp, const TraceRecord& record, ErrorOptions options,
                 Complaints& complaints);
void check_failed_qp_is_silent(const Qp& qp, const DataSent& data, Complaints& complaints);

}  // namespace weft::judge
