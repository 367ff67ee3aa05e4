#include <algorithm>

#include "judge/rules.h"

namespace weft::judge {

namespace {
constexpr PsnIndex kPsnsPerMprUnit = 128;
}  // namespace

void check_psn_window(const Qp& qp, const DataSent& data, PsnWindowTolerance tolerance,
                      Complaints& complaints) {
  if (data.bth.rtx || data.index < qp.psn_window.end + tolerance.psns) return;
  complaints.add(qp.place(data.record.at), Rule::kPsnWindow,
                 "PSN {} was sent {} beyond the cumulative PSN that the sender knows, its window"
                 " ends {} beyond it",
                 data.bth.psn.value(), data.index - qp.cack, qp.psn_window.end - 1 - qp.cack);
}

void note_psn_window(Qp& qp, PsnIndex cack, std::uint8_t mpr) {
  const PsnIndex window_psns = mpr == 0 ? qp.psn_window.size : mpr * kPsnsPerMprUnit;
  // The sender may have used or ignored an old SACK that arrives after a newer one. It may
  // therefore widen the window here, but not narrow it.
  if (cack >= qp.cack) qp.psn_window.size = window_psns;
  const PsnIndex known = std::max(cack, qp.cack);
  // The end of the window never moves back.
  qp.psn_window.end = std::max(qp.psn_window.end, known + window_psns + 1);
}

}  // namespace weft::judge
