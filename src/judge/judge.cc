#include "judge/judge.h"

#include <algorithm>
#include <variant>

#include "judge/trace_flags.h"

namespace weft::judge {
namespace {

std::uint64_t number(const TraceRecord& record) {
  return std::uint64_t{record.host} << 32 | record.qpn;
}

// REQUIRES a data packet that is neither trimmed nor damaged.
void on_data_received(Qp& responder, const TraceRecord& record, const wire::Bth& bth) {
  const PsnIndex index =
      index_of_psn(bth.psn, responder.rx_first, responder.received.first_missing());
  if (responder.received.add(index) != PsnSet::Added::kNew) return;
  responder.received_bytes += static_cast<std::uint64_t>(nominal_size(record, bth));
}

void on_sack_received(Qp& requestor, const wire::Sack& sack) {
  const PsnIndex cack = index_of_psn(sack.cack, requestor.tx_first, requestor.cack);
  note_psn_window(requestor, cack, sack.mpr);
  requestor.cack = std::max(requestor.cack, cack);
}

void on_transport_ack_received(Qp& requestor, const wire::Bth& bth, const wire::TransportAck& ack) {
  if (ack.syndrome != wire::AckSyndrome::kAck) return;
  const PsnIndex acked = index_of_psn(bth.psn, requestor.tx_first, requestor.cack);
  requestor.acked = std::max(requestor.acked, acked);
  note_psn_window(requestor, acked, 0);
  requestor.cack = std::max(requestor.cack, acked);
  note_wimm_acked(requestor);
}

}  // namespace

Judge::Judge(const Options& options)
    : options_(options),
      complaints_({.kept_max = options.complaints_max,
                   .kept_per_rule_max = options.complaints_per_rule_max}),
      ledger_({.life = options.packet_life,
               .packets_max = options.packets_max,
               .duplicates = options.duplicates}) {}

void Judge::read(std::span<const TraceRecord> records) {
  for (const TraceRecord& record : records) read(record);
}

void Judge::read(const TraceRecord& record) {
  if (record.at < last_) {
    complaints_.add(place(record), Rule::kTrace, "time goes backwards, from {} ps to {} ps",
                    last_.ps(), record.at.ps());
  }
  if (record.at < Time()) return;  // arithmetic on a negative time could overflow
  last_ = std::max(last_, record.at);
  if (ended_) {
    complaints_.add(place(record), Rule::kTrace, "a record after the end of the run");
    return;
  }
  if (record.header_size > record.header.size()) {
    complaints_.add(place(record), Rule::kTrace, "a header of {} bytes", record.header_size);
    return;
  }
  on_record(record);
}

void Judge::on_record(const TraceRecord& record) {
  switch (record.kind) {
    case TraceKind::kQp:
      return on_qp(record);
    case TraceKind::kSend:
      return on_send(record);
    case TraceKind::kReceive:
      return on_receive(record);
    case TraceKind::kPostRecv:
      return on_post_recv(record);
    case TraceKind::kPost:
      if (Qp* qp = known_qp(record)) on_post(*qp, record);
      return;
    case TraceKind::kComplete:
      if (Qp* qp = known_qp(record)) on_complete(*qp, record);
      return;
    case TraceKind::kWindow:
      if (Qp* qp = known_qp(record)) note_cwnd(*qp, record);
      return;
    case TraceKind::kEv:
      if (Qp* qp = known_qp(record)) note_ev(*qp, record);
      return;
    case TraceKind::kPort:
      return;  // recorded for people only: no rule depends on it
    case TraceKind::kQpError:
      if (Qp* qp = known_qp(record)) {
        check_error(*qp, record, {.errors_expected = options_.errors_expected}, complaints_);
        qp->in_error = true;
      }
      return;
    case TraceKind::kQpGone:
      if (Qp* qp = known_qp(record)) qp->gone = true;
      return;
    case TraceKind::kHostDown:
      return qps_.on_host_down(record.host);
    case TraceKind::kHealed:
      healed_ = true;
      return;
    case TraceKind::kMemory:
      return memory_.read(record);
    case TraceKind::kEnd:
      ended_ = true;
      return;
  }
  complaints_.add(place(record), Rule::kTrace, "a record of unknown kind {}",
                  static_cast<unsigned>(record.kind));
}

Qp* Judge::known_qp(const TraceRecord& record) {
  Qp* qp = qps_.find(record.host, record.qpn);
  if (qp == nullptr) {
    complaints_.add(place(record), Rule::kTrace, "a record about a QP that does not exist");
  }
  return qp;
}

void Judge::on_qp(const TraceRecord& record) {
  if (record.c == 0) {
    complaints_.add(place(record), Rule::kTrace, "a QP without a path MTU");
    return;
  }
  const Qp* before = qps_.find(record.host, record.qpn);
  if (before != nullptr && !before->gone && !before->host_down) {
    complaints_.add(place(record), Rule::kTrace, "a QP with the number of one that exists");
  }
  Qp& qp = qps_.add(record);
  const auto early = early_receives_.find(number(record));
  if (early != early_receives_.end()) {
    qp.receives.assign(early->second.begin(), early->second.end());
    early_receives_.erase(early);
  }
  if (qp.peer == nullptr) return;
  if (qp.tx_first != qp.peer->rx_first || qp.rx_first != qp.peer->tx_first) {
    complaints_.add(place(record), Rule::kTrace, "the two ends of the QP disagree on first PSNs");
  }
}

void Judge::on_send(const TraceRecord& record) {
  if (qps_.is_down(record.host)) {
    complaints_.add(place(record), Rule::kTrace, "a host that crashed sent a packet");
  }
  ledger_.on_send(record);
  const auto parsed = wire::parse(record.header_bytes());
  if (!parsed) {
    complaints_.add(place(record), Rule::kPacket, "what was sent is not an MRC packet");
    return;
  }
  const wire::Bth& bth = parsed->bth;
  if (const auto* write = std::get_if<wire::Write>(&parsed->body)) {
    return on_data_sent(record, bth, *write);
  }
  const auto* sack = std::get_if<wire::Sack>(&parsed->body);
  const auto* ack = std::get_if<wire::TransportAck>(&parsed->body);
  if (sack == nullptr && ack == nullptr) return;
  const Qp* responder =
      qps_.sender({.from = record.host, .to = record.peer, .dest_qpn = bth.dest_qpn});
  if (responder == nullptr) {
    complaints_.add(place(record), Rule::kAck,
                    "an acknowledgement for QP {:#x}, which has no peer here", bth.dest_qpn);
    return;
  }
  if (sack != nullptr) check_sack(*responder, record.at, *sack, complaints_);
  if (ack != nullptr) check_transport_ack(*responder, record.at, bth, *ack, complaints_);
}

void Judge::on_data_sent(const TraceRecord& record, const wire::Bth& bth,
                         const wire::Write& write) {
  Qp* qp = qps_.sender({.from = record.host, .to = record.peer, .dest_qpn = bth.dest_qpn});
  if (qp == nullptr) {
    complaints_.add(place(record), Rule::kPacket, "data for QP {:#x}, which has no peer here",
                    bth.dest_qpn);
    return;
  }
  const PsnIndex index = index_of_psn(bth.psn, qp->tx_first, qp->sent.first_missing());
  const DataSent data{.record = record,
                      .bth = bth,
                      .write = write,
                      .index = index,
                      .nominal_size = nominal_size(record, bth),
                      .post = qp->post_of(index)};
  check_failed_qp_is_silent(*qp, data, complaints_);
  check_packet(*qp, data, complaints_);
  check_ev(*qp, data, complaints_);
  check_psn_window(*qp, data, {.psns = options_.psn_window_tolerance}, complaints_);
  check_cwnd(*qp, data, {.bytes = options_.cwnd_tolerance_bytes}, complaints_);
  check_wimm_limit(*qp, data, complaints_);
  qp->sent.add(index);
}

void Judge::on_receive(const TraceRecord& record) {
  if (is_damaged(record)) return;
  if (!ledger_.on_receive(record)) {
    complaints_.add(place(record), Rule::kConservation,
                    "a packet arrived that was not sent, or more often than it was sent");
  }
  if (is_trimmed(record)) return;
  const auto parsed = wire::parse(record.header_bytes());
  if (!parsed) return;
  Qp* qp = qps_.find(record.host, parsed->bth.dest_qpn);
  if (qp == nullptr || qp->gone) return;
  if (std::holds_alternative<wire::Write>(parsed->body)) {
    on_data_received(*qp, record, parsed->bth);
  } else if (const auto* sack = std::get_if<wire::Sack>(&parsed->body)) {
    on_sack_received(*qp, *sack);
  } else if (const auto* ack = std::get_if<wire::TransportAck>(&parsed->body)) {
    on_transport_ack_received(*qp, parsed->bth, *ack);
  }
}

void Judge::on_post(Qp& qp, const TraceRecord& record) {
  // A message length has 32 bits on the wire.
  constexpr std::uint64_t kLengthMax = 0xffff'ffff;
  if (record.b > kLengthMax) {
    complaints_.add(place(record), Rule::kTrace, "post {} has {} bytes", record.id, record.b);
  }
  Post post;
  post.id = record.id;
  post.va = record.a;
  post.length = std::min(record.b, kLengthMax);
  post.sequence = qp.post_count++;
  post.wimm_sequence = qp.wimm.posted;
  post.first = qp.packets_posted;
  const auto length = static_cast<PsnIndex>(post.length);
  post.count = std::max<PsnIndex>(1, (length + qp.mtu - 1) / qp.mtu);
  post.immediate = record.c;
  post.with_immediate = (record.flags & kFlagWithImmediate) != 0;
  post.signalled = (record.flags & kFlagSignalled) != 0;
  qp.packets_posted += post.count;
  note_wimm_post(qp, post);
  qp.posts.push_back(post);
}

void Judge::on_post_recv(const TraceRecord& record) {
  Qp* qp = qps_.find(record.host, record.qpn);
  if (qp == nullptr || qp->gone) {
    early_receives_[number(record)].push_back(record.id);
  } else {
    qp->receives.push_back(record.id);
  }
}

void Judge::on_complete(Qp& qp, const TraceRecord& record) {
  if ((record.flags & kFlagReceive) == 0) return check_send_completion(qp, record, complaints_);
  check_receive_completion(qp, record, complaints_);
  if (record.a == 0) check_delivery(qp, record, complaints_);
}

std::vector<Complaint> Judge::finish() {
  if (!ended_) {
    complaints_.add({.at = last_}, Rule::kTrace, "the trace stops before the end of the run");
  }
  for (const Qp& qp : qps_.all()) {
    memory_.finish(qp, last_, complaints_);
    if (!ended_) continue;
    finish_completion(qp, last_, complaints_);
    finish_inflight(qp, last_, complaints_);
    if (!healed_) continue;
    finish_stuck(qp, last_, complaints_);
    finish_wimm(qp, last_, complaints_);
  }
  return complaints_.kept();
}

}  // namespace weft::judge
