#include "judge/rules.h"

namespace weft::judge {

void check_error(const Qp& qp, const TraceRecord& record, ErrorOptions options,
                 Complaints& complaints) {
  const bool peer_failed = qp.peer != nullptr && (qp.peer->in_error || qp.peer->gone);
  if (options.errors_expected || qp.host_down || qp.peer_down || peer_failed) return;
  complaints.add(qp.place(record.at), Rule::kError,
                 "the QP went to error with status {}, but its peer lives", record.a);
}

void check_failed_qp_is_silent(const Qp& qp, const DataSent& data, Complaints& complaints) {
  if (!qp.in_error && !qp.gone) return;
  complaints.add(qp.place(data.record.at), Rule::kError, "PSN {} was sent, but the QP {}",
                 data.bth.psn.value(), qp.gone ? "was destroyed" : "is in error");
}

}  // namespace weft::judge
