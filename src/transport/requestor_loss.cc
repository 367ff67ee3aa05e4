// Requestor, loss: decides which packets are lost, and which path is to blame.
#include <algorithm>

#include "base/assert.h"
#include "transport/requestor.h"

namespace weft::transport {

// A packet that was declared lost had arrived: the reorder window must grow. Between software ends
// one such mistake concerns a burst of packets, so it is counted once per round trip. It counts for
// more there, since links and peers stand still for milliseconds.
void Requestor::on_spurious_loss(Context& context) {
  ++context.counters.spurious;
  const Duration base = nscc_.base_rtt();
  if (!params_->peer->measures_lateness)
    return loss_.on_spurious({.more = base / 4, .most = base * 2});
  if (context.now - spurious_learnt_at_ < base) return;
  spurious_learnt_at_ = context.now;
  loss_.on_spurious(
      {.more = loss_.reorder_window(base) / 8, .most = std::max(kLateMax / 2, base * 2)});
}

void Requestor::infer_losses(Context& context, const wire::Sack& sack, Time trigger_sent,
                             Knowledge known) {
  const Time threshold = trigger_sent - times(context).proof_time();
  if (window_.outstanding() == 0) return;
  if (window_.record(window_.oldest()).sent_at() > threshold) return;
  if (known == Knowledge::kComplete) return lose_all_before(context, threshold);
  lose_missing(context, sack, threshold);
  // A probe asks for the unknown rest. Only one probe is in flight; a software peer also gets time
  // to answer.
  const Duration since = context.now - probes_sent_.newest_at();
  const bool may_probe = params_->peer->measures_lateness
                             ? since >= times(context).answer_time()
                             : sack.answers_probe || since >= nscc_.base_rtt();
  if (may_probe) probe(context, std::nullopt, ProbeClass::kData);
}

// Complete knowledge: every packet that was sent before `threshold` and is not acknowledged is
// missing.
void Requestor::lose_all_before(Context& context, Time threshold) {
  while (window_.outstanding() > 0) {
    const Psn psn = window_.oldest();
    PsnRecord& record = window_.record(psn);
    if (record.sent_at() > threshold) break;
    ++context.counters.lost_inferred;
    lose(context, psn, record);
  }
}

// Partial knowledge: only packets that this SACK itself shows as missing are lost. The PSN after
// the cumulative PSN always is.
void Requestor::lose_missing(Context& context, const wire::Sack& sack, Time threshold) {
  lose_if_before(context, sack.cack + 1, threshold);
  const Psn base = sack.cack + sack.bitmap_offset;
  for (int i = 0; i < 64; ++i) {
    if ((sack.bitmap >> i & 1) == 0) lose_if_before(context, base + i, threshold);
  }
}

void Requestor::lose_if_before(Context& context, Psn psn, Time threshold) {
  if (!window_.contains(psn)) return;
  PsnRecord& record = window_.record(psn);
  if (record.state != PsnState::kOutstanding || record.sent_at() > threshold) return;
  ++context.counters.lost_inferred;
  lose(context, psn, record);
}

void Requestor::lose(Context& context, Psn psn, PsnRecord& record) {
  const PathSet::Slot slot = record.ev;
  window_.lose(psn, record);
  nscc_.on_loss(context.now, nominal_size(psn, record));
  if (peer_overflows_) {
    ++context.counters.lost_overflow;
    return;
  }
  record.blamed = true;
  switch (paths_.on_loss(context.now, slot, loss_.spread())) {
    case Verdict::kNothing:
      break;
    case Verdict::kEvCondemned:
      ++context.counters.evs_condemned[paths_.ev(slot).port];
      ++context.counters.path_changes;
      // The EV could never be revived if there is no room to probe it: it stays in use.
      if (!context.prober.watch(context.now, qp_.peer, paths_.ev(slot), false)) {
        paths_.revive(context.now, slot);
      }
      break;
    case Verdict::kPlaneCondemned:
      ++context.counters.planes_condemned[paths_.ev(slot).port];
      ++context.counters.path_changes;
      watch_plane(context, paths_.ev(slot).port);
      break;
  }
}

// A condemned plane is watched through up to three of its EVs. The plane stays in use if there is
// no room to probe any, since it could never be revived.
void Requestor::watch_plane(Context& context, PortIndex port) {
  bool watched = false;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const PathSet::Slot witness = paths_.any_on(port, i);
    watched |= witness != PathSet::kNone &&
               context.prober.watch(context.now, qp_.peer, paths_.ev(witness), true);
  }
  if (!watched) paths_.revive_plane(context.now, port);
  lose_on_port(context, port);
}

// Declares everything in flight on a port lost. No EV is blamed, and it does not count as
// congestion.
void Requestor::lose_on_port(Context& context, PortIndex port) {
  nscc_.on_plane_lost();
  if (window_.outstanding() == 0) return;
  Psn psn = window_.oldest();
  for (std::uint32_t left = window_.outstanding(); left > 0; --left) {
    PsnRecord& record = window_.record(psn);
    const Psn next = left > 1 ? window_.after(record) : psn;
    if (paths_.ev(record.ev).port == port) {
      forget_loss(psn, record);
      ++context.counters.lost_port;
    }
    psn = next;
  }
}

// Forgets a packet lost for a reason that is neither congestion nor an EV's fault.
void Requestor::forget_loss(Psn psn, PsnRecord& record) {
  window_.lose(psn, record);
  nscc_.on_loss_without_congestion(nominal_size(psn, record));
}

void Requestor::on_port_back(Time now, PortIndex port) {
  paths_.revive_plane(now, port);
  loss_.forget_order();
}

void Requestor::on_port_lost(Context& context, PortIndex port) {
  lose_on_port(context, port);
  if (window_.outstanding() == 0) settle(context);
  trace_window(context);
}

}  // namespace weft::transport
