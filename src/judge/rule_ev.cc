#include "judge/rules.h"

namespace weft::judge {
namespace {

std::uint64_t key(const TraceRecord& record) {
  return std::uint64_t{record.port} << 32 | record.ev;
}

}  // namespace

void note_ev(Qp& qp, const TraceRecord& record) {
  const auto state = static_cast<EvTraceState>(record.a & 0xff);
  const bool usable = state == EvTraceState::kGood || state == EvTraceState::kSkip;
  if (usable) {
    qp.ev.unusable.erase(key(record));
  } else {
    qp.ev.unusable[key(record)] = state;
  }
}

void check_ev(const Qp& qp, const DataSent& data, Complaints& complaints) {
  if (qp.ev.unusable.empty()) return;
  const auto at = qp.ev.unusable.find(key(data.record));
  if (at == qp.ev.unusable.end()) return;
  complaints.add(qp.place(data.record.at), Rule::kEv, "PSN {} was sent on EV {:#010x}, which is {}",
                 data.bth.psn.value(), data.record.ev,
                 at->second == EvTraceState::kDenied ? "denied" : "assumed bad");
}

}  // namespace weft::judge
