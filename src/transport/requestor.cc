#include "transport/requestor.h"

#include <algorithm>

#include "wire/framing.h"

namespace weft::transport {
Requestor::Requestor(const Options& options, std::span<const fabric::Ev> evs)
    : params_(options.params),
      queue_(options.send_queue_max),
      window_(*options.pool, options.params->config.mpr * 128, options.first_psn),
      nscc_(options.params->nscc, Time()),
      retry_(options.params->config.retry),
      edge_(options.first_psn + static_cast<std::int32_t>(options.params->config.mpr * 128)),
      acknowledged_(options.first_psn - 1),
      paths_(options.paths, evs) {}

void Requestor::start(Time now, const QpEnds& ends) {
  qp_ = ends;
  last_heard_ = now;
  probe_sent_.fill(kNever);
  nscc_ = Nscc(params_->nscc, now);
}

void Requestor::post(Time now, const WriteRequest& request) {
  Wqe& wqe = queue_.push_slot();
  wqe = {};
  wqe.request = request;
  retry_.arm(now);  // also when no port ever takes it
}

std::uint32_t Requestor::packet_count(std::uint32_t size) const {
  return size == 0 ? 1 : (size - 1) / params_->mtu + 1;
}

Requestor::Piece Requestor::piece(const Wqe& wqe, std::uint32_t index) const {
  const std::uint32_t size = wqe.request.size;
  Piece p;
  p.offset = index * params_->mtu;
  p.size = std::min(size - p.offset, params_->mtu);
  const bool first = index == 0, last = p.offset + p.size == size;
  const bool immediate = wqe.request.with_immediate;
  if (last) {
    p.opcode = first ? (immediate ? wire::Opcode::kWriteOnlyImm : wire::Opcode::kWriteOnly)
                     : (immediate ? wire::Opcode::kWriteLastImm : wire::Opcode::kWriteLast);
  } else {
    p.opcode = first ? wire::Opcode::kWriteFirst : wire::Opcode::kWriteMiddle;
  }
  return p;
}

// The write that a sent PSN belongs to: few are under way, and they are in PSN order.
Requestor::Wqe& Requestor::wqe_of(Psn psn) {
  std::size_t low = done_count_, high = queue_.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    const Wqe& wqe = queue_[middle];
    if (wqe.packets_sent > 0 && psn.since(wqe.first) >= 0) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return queue_[low];
}

std::int64_t Requestor::nominal_of(const Piece& p) const {
  return wire::nominal_size(
      {.header_size = wire::header_size({.opcode = p.opcode, .has_timestamp = true}),
       .payload_size = p.size});
}

std::int64_t Requestor::full_size() const {
  return nominal_of({.size = params_->mtu, .opcode = wire::Opcode::kWriteMiddle});
}

std::int64_t Requestor::nominal_size(Psn psn, const PsnRecord& record) {
  if (record.full) return full_size();
  const Wqe& wqe = wqe_of(psn);
  return nominal_of(piece(wqe, static_cast<std::uint32_t>(psn.since(wqe.first))));
}

Requestor::Polled Requestor::poll(Context& context, PortMask usable, Bytes header, Outgoing& out) {
  if (completion_resend_) return poll_completion_resend(context, usable, header, out);
  if (window_.lost() > 0 && context.now >= resume_at_)
    return poll_lost(context, usable, header, out);
  if (sent_count_ < queue_.size()) return poll_new(context, usable, header, out);
  return Polled::kNothing;
}

// In sixteenths of a full packet, rounded up: a change of EV costs both ends more than a small packet
// does.
std::uint32_t Requestor::part_of_run(const Piece& p) const {
  return std::max((kFullPart * p.size + params_->mtu - 1) / params_->mtu, 1u);
}

// Runs of up to `burst` full packets, or more small ones, stay on one EV. What is sent again avoids the
// plane of the copy that was lost, or at least its EV; new packets follow it in its run, so that it
// costs no run of its own.
PathSet::Slot Requestor::pick(Time now, PortMask usable, const Piece& p, PathSet::Slot avoid) {
  auto living = static_cast<PortMask>(usable & ~paths_.planes_down());
  if (avoid != PathSet::kNone) {
    const auto others = static_cast<PortMask>(living & ~(1u << paths_.ev(avoid).port));
    if (paths_.any_in_rotation(others)) living = others;
  }
  if (run_.left > 0 && run_.slot != avoid && (living >> paths_.ev(run_.slot).port & 1) != 0 &&
      paths_.state(run_.slot) == EvState::kGood) {
    run_.left -= std::min(run_.left, part_of_run(p));
    return run_.slot;
  }
  PathSet::Slot slot = PathSet::kNone;
  if (avoid != PathSet::kNone) slot = paths_.next(now, living, nscc_.base_rtt());
  if (slot == PathSet::kNone) slot = paths_.next(now, usable, nscc_.base_rtt());
  if (slot == avoid && slot != PathSet::kNone) {
    if (const PathSet::Slot other = paths_.next(now, usable, nscc_.base_rtt());
        other != PathSet::kNone) {
      slot = other;
    }
  }
  const bool single = slot == PathSet::kNone || params_->burst == 1;
  run_ = {.slot = slot, .left = single ? 0 : run_packets() * kFullPart - part_of_run(p)};
  return slot;
}

Requestor::Polled Requestor::poll_lost(Context& context, PortMask usable, Bytes header,
                                       Outgoing& out) {
  const Psn psn = window_.first_lost();
  PsnRecord& record = window_.record(psn);
  const Wqe& wqe = wqe_of(psn);
  const Piece p = piece(wqe, static_cast<std::uint32_t>(psn.since(wqe.first)));
  const std::int64_t size = nominal_of(p);
  if (!nscc_.allows(size) || nscc_.paced_until() > context.now) return Polled::kWindowClosed;
  const PathSet::Slot slot = pick(context.now, usable, p, record.ev);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  window_.sent(psn, record, context.now, slot);
  record.counted = true;
  nscc_.on_send(size);
  ++context.counters.retransmits;
  emit(context, wqe, p, {.psn = psn, .slot = slot, .rtx = true, .ask = true}, header, out);
  arm(context);
  return Polled::kPacket;
}

// Runs are a part of the window: a small one in a single run would hit a small queue at once. What
// the peer has room for may come in two.
std::uint32_t Requestor::run_packets() const {
  if (params_->burst == 1) return 1;
  const std::int64_t bytes = std::min(nscc_.window() / 4, nscc_.limit() / 2);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(bytes / params_->nscc.window_min, 1, params_->burst));
}

// A run that the window would cut is not begun: one packet costs a world as much as a run of them.
std::int64_t Requestor::size_to_begin(const Wqe& wqe, std::int64_t size) const {
  if (params_->burst == 1 || run_.left > 0) return size;
  const bool more = sent_count_ + 1 < queue_.size();
  const std::uint32_t left = packet_count(wqe.request.size) - wqe.packets_sent;
  const std::uint32_t packets = more ? run_packets() : std::min(left, run_packets());
  return std::max(size, size * packets);
}

// Four times a window; where that is less than a run, when the window may have no room for what comes
// next, another run or the rest of this: the peer's answer then opens it for as much as it has.
bool Requestor::is_time_to_ask(std::int64_t size) const {
  const std::int64_t allowance = nscc_.allowance(), run_bytes = run_packets() * size;
  if (params_->burst == 1 || allowance >= 4 * run_bytes)
    return bytes_since_ask_ >= std::max(allowance / 4, run_bytes);
  return !nscc_.allows(run_.left > 0 ? full_size() : run_packets() * full_size());
}

Requestor::Polled Requestor::poll_new(Context& context, PortMask usable, Bytes header,
                                      Outgoing& out) {
  Wqe& wqe = queue_[sent_count_];
  if (window_.next().since(edge_) >= 0) return Polled::kWindowClosed;
  const bool starts = wqe.packets_sent == 0;
  if (starts && wqe.request.with_immediate && wimm_under_way_ >= params_->config.wimm_max) {
    return Polled::kWindowClosed;
  }
  const Piece p = piece(wqe, wqe.packets_sent);
  const bool ends = wire::ends_message(p.opcode);
  const std::int64_t size = nominal_of(p);
  if (!nscc_.allows(size_to_begin(wqe, size)) || nscc_.paced_until() > context.now)
    return Polled::kWindowClosed;
  const PathSet::Slot slot = pick(context.now, usable, p, PathSet::kNone);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  PsnRecord* record = window_.open();
  if (record == nullptr) return Polled::kNoPort;  // no records left: acknowledgements free some
  const Psn psn = window_.next() - 1;
  if (starts) {
    wqe.first = psn;
    wqe.last = ends ? psn : psn + static_cast<std::int32_t>(packet_count(wqe.request.size) - 1);
    wqe.msn = next_msn_++;
    if (wqe.request.with_immediate) {
      wqe.rqmsn = next_rqmsn_++;
      ++wimm_under_way_;
    }
  }
  const bool last_available = ends && sent_count_ + 1 == queue_.size();
  record->full = p.size == params_->mtu && !wire::has_immediate(p.opcode);
  window_.sent(psn, *record, context.now, slot);
  record->counted = true;
  nscc_.on_send(size);
  bytes_since_ask_ += size;
  const bool ask = last_available || is_time_to_ask(size);
  if (ask) bytes_since_ask_ = 0;
  emit(context, wqe, p, {.psn = psn, .slot = slot, .ask = ask}, header, out);
  ++wqe.packets_sent;
  if (ends) ++sent_count_;
  arm(context);
  return Polled::kPacket;
}

// The last packet of the oldest incomplete message once more: it lies below the responder's edge,
// is not placed, and is answered with SACK and Transport ACK. Not in inflight; says nothing about
// any EV.
Requestor::Polled Requestor::poll_completion_resend(Context& context, PortMask usable, Bytes header,
                                                    Outgoing& out) {
  if (done_count_ >= queue_.size()) {
    completion_resend_ = false;
    return Polled::kNothing;
  }
  const Wqe& wqe = queue_[done_count_];
  const Piece p = piece(wqe, static_cast<std::uint32_t>(wqe.last.since(wqe.first)));
  const PathSet::Slot slot = pick(context.now, usable, p, PathSet::kNone);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  completion_resend_ = false;
  ++context.counters.completion_resends;
  emit(context, wqe, p, {.psn = wqe.last, .slot = slot, .rtx = true, .ask = true}, header, out);
  return Polled::kPacket;
}

void Requestor::emit(Context& context, const Wqe& wqe, const Piece& p, const Copy& copy,
                     Bytes header, Outgoing& out) {
  const wire::Bth bth{.opcode = p.opcode,
                      .solicited = wqe.request.solicited && wire::ends_message(p.opcode),
                      .pad = static_cast<std::uint8_t>(-p.size & 3),
                      .dest_qpn = qp_.peer_qpn,
                      .ack_request = copy.ask,
                      .rtx = copy.rtx,
                      .psn = copy.psn};
  const wire::Write write{.rqmsn = wqe.rqmsn,
                          .msn = wqe.msn,
                          .sent = timestamp(context.now),
                          .va = wqe.request.remote_at + p.offset,
                          .rkey = wqe.request.rkey,
                          .message_size = wqe.request.size,
                          .immediate = wire::has_immediate(p.opcode) ? wqe.request.immediate : 0};
  out.header_size = static_cast<std::uint8_t>(wire::emit(bth, write, header));
  out.ev = paths_.ev(copy.slot);
  out.payload = {.at = wqe.request.local_at + p.offset, .size = p.size};
  out.dscp = !params_->config.trim_nack ? world::Dscp::kNoTrim
             : copy.rtx                 ? world::Dscp::kTrimmableRetx
                                        : world::Dscp::kTrimmable;
  ++context.counters.packets;
  context.counters.bytes += p.size;
  last_send_ = context.now;
}

bool Requestor::poll_completion(Completion& out) {
  while (done_count_ > 0) {
    const Wqe wqe = queue_.front();
    queue_.pop();
    --done_count_;
    if (sent_count_ > 0) --sent_count_;
    if (!wqe.request.signalled && wqe.status == Status::kOk) {
      ++silent_done_;
      continue;
    }
    out = {.id = wqe.request.id,
           .qpn = qp_.local_qpn,
           .kind = CompletionKind::kWrite,
           .status = wqe.status,
           .size = wqe.request.size};
    return true;
  }
  return false;
}

void Requestor::fail(Status status) {
  const Wqe* const blamed = done_count_ == queue_.size() ? nullptr
                            : refused_                   ? &wqe_of(*refused_)
                                                         : &queue_[done_count_];
  for (std::size_t i = done_count_; i < queue_.size(); ++i)
    queue_[i].status = &queue_[i] == blamed ? status : Status::kFlushed;
  done_count_ = static_cast<std::uint32_t>(queue_.size());
  sent_count_ = done_count_;
  wimm_under_way_ = 0;
  window_.clear();
  nscc_.settle();
  retry_.disarm();
  tail_at_ = kNever;
  completion_resend_ = false;
}

}  // namespace weft::transport
