#include "judge/rules.h"
#include "wire/framing.h"

namespace weft::judge {

// Uses BTH.pad, while the transport computes the padding from the size: an independent calculation.
std::int64_t nominal_size(const TraceRecord& record, const wire::Bth& bth) {
  return static_cast<std::int64_t>(wire::kUdpSize + record.header_size + record.size + bth.pad +
                                   wire::kIcrcSize + wire::kNominalOverhead);
}

void note_cwnd(Qp& qp, const TraceRecord& record) {
  qp.cwnd.known = true;
  qp.cwnd.window = static_cast<std::int64_t>(record.a & 0x7fff'ffff'ffff);
  // The bound is far above any window, and keeps later additions from overflowing.
  qp.cwnd.inflight = static_cast<std::int64_t>(record.b) % (std::int64_t{1} << 47);
}

void check_cwnd(Qp& qp, const DataSent& data, CwndTolerance tolerance, Complaints& complaints) {
  // If only the Transport ACK of a message was lost, the requestor retransmits the last packet of
  // the message to ask for it. That packet is already acknowledged and does not count as in flight.
  if (data.bth.rtx && data.index <= qp.cack) return;
  if (!qp.cwnd.known && !qp.cwnd.complained) {
    qp.cwnd.complained = true;
    complaints.add(qp.place(data.record.at), Rule::kCwnd,
                   "data was sent before the first congestion window record");
  }
  const std::int64_t after = qp.cwnd.inflight + data.nominal_size;
  if (qp.cwnd.known && qp.cwnd.inflight > 0 && after > qp.cwnd.window + tolerance.bytes) {
    complaints.add(qp.place(data.record.at), Rule::kCwnd,
                   "PSN {} brings inflight to {} bytes, the congestion window is {}",
                   data.bth.psn.value(), after, qp.cwnd.window);
  }
  qp.cwnd.inflight = after;
}

void finish_inflight(const Qp& qp, Time end, Complaints& complaints) {
  const bool all_acked = qp.acked + 1 >= qp.packets_posted;
  if (!qp.is_healthy() || !all_acked || qp.waits_for_completion()) return;
  if (qp.cwnd.inflight == 0) return;
  complaints.add(qp.place(end), Rule::kInflight,
                 "everything is completed, but {} bytes still count as in flight",
                 qp.cwnd.inflight);
}

}  // namespace weft::judge
