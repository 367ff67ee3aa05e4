#include <algorithm>

#include "judge/rules.h"

namespace weft::judge {
namespace {

// The sender's message with immediate number `number`, from 0; nullptr if it was not posted.
const Wimm* message(const Qp& sender, std::uint64_t number) {
  if (number < sender.wimm.forgotten || number >= sender.wimm.posted) return nullptr;
  return &sender.wimm.messages[static_cast<std::size_t>(number - sender.wimm.forgotten)];
}

// Drops messages that are delivered and acknowledged.
void prune(Qp& sender) {
  const std::uint64_t delivered = sender.peer == nullptr ? 0 : sender.peer->wimm.delivered;
  const std::uint64_t done = std::min(delivered, sender.wimm.acked);
  while (sender.wimm.forgotten < done && !sender.wimm.messages.empty()) {
    sender.wimm.messages.pop_front();
    ++sender.wimm.forgotten;
  }
}

}  // namespace

void note_wimm_post(Qp& qp, const Post& post) {
  if (!post.with_immediate) return;
  qp.wimm.messages.push_back(
      {.length = post.length, .last = post.last(), .immediate = post.immediate});
  ++qp.wimm.posted;
}

void check_delivery(Qp& responder, const TraceRecord& record, Complaints& complaints) {
  Qp* sender = responder.peer;
  if (sender == nullptr) return;
  const std::uint64_t number = responder.wimm.delivered++;
  const Wimm* due = message(*sender, number);
  const Place place = responder.place(record.at);
  if (due == nullptr) {
    complaints.add(place, Rule::kWimmOrder,
                   "immediate {:#x} was delivered, but the peer posted only {} with immediate",
                   record.c, sender->wimm.posted);
    return;
  }
  if (record.c != due->immediate || record.b != due->length) {
    complaints.add(place, Rule::kWimmOrder,
                   "immediate {:#x} of {} bytes was delivered, but {:#x} of {} bytes is next in the"
                   " order of posts",
                   record.c, record.b, due->immediate, due->length);
  }
  if (responder.received.first_missing() <= due->last) {
    complaints.add(place, Rule::kWimmOrder,
                   "immediate {:#x} was delivered although PSN {} before its end {} never arrived",
                   record.c,
                   psn_of_index(responder.received.first_missing(), responder.rx_first).value(),
                   psn_of_index(due->last, responder.rx_first).value());
  }
  prune(*sender);
}

void check_wimm_limit(Qp& qp, const DataSent& data, Complaints& complaints) {
  const bool starts = data.post != nullptr && data.post->with_immediate &&
                      data.index == data.post->first && !data.bth.rtx;
  if (!starts) return;
  ++qp.wimm.started;
  const std::uint64_t under_way = qp.wimm.started - std::min(qp.wimm.acked, qp.wimm.started);
  if (under_way <= qp.wimm_max) return;
  complaints.add(qp.place(data.record.at), Rule::kWimmLimit,
                 "{} messages with immediate are in flight, the limit is {}", under_way,
                 qp.wimm_max);
}

void note_wimm_acked(Qp& qp) {
  const Wimm* next = message(qp, qp.wimm.acked);
  while (next != nullptr && next->last <= qp.acked) next = message(qp, ++qp.wimm.acked);
  prune(qp);
}

void finish_wimm(const Qp& responder, Time end, Complaints& complaints) {
  if (!responder.is_healthy()) return;
  const Wimm* due = message(*responder.peer, responder.wimm.delivered);
  if (due == nullptr || responder.received.first_missing() <= due->last) return;
  complaints.add(responder.place(end), Rule::kWimmOrder,
                 "immediate {:#x} and everything before it arrived, but it was never delivered",
                 due->immediate);
}

}  // namespace weft::judge
