#include <algorithm>

#include "judge/rules.h"

namespace weft::judge {
namespace {

wire::Opcode expected_opcode(const Post& post, PsnIndex index) {
  const bool starts = index == post.first;
  const bool ends = index == post.last();
  if (starts && ends) {
    return post.with_immediate ? wire::Opcode::kWriteOnlyImm : wire::Opcode::kWriteOnly;
  }
  if (ends) return post.with_immediate ? wire::Opcode::kWriteLastImm : wire::Opcode::kWriteLast;
  return starts ? wire::Opcode::kWriteFirst : wire::Opcode::kWriteMiddle;
}

void check_rtx(const Qp& qp, const DataSent& data, Complaints& complaints) {
  const bool sent_before = qp.sent.contains(data.index);
  if (data.bth.rtx == sent_before) return;
  const Place place = qp.place(data.record.at);
  if (sent_before) {
    complaints.add(place, Rule::kPacket,
                   "PSN {} was retransmitted without being marked as a retransmission",
                   data.bth.psn.value());
  } else {
    complaints.add(place, Rule::kPacket,
                   "PSN {} is marked as a retransmission, but was never sent before",
                   data.bth.psn.value());
  }
}

void check_owner(const Qp& qp, const DataSent& data, Complaints& complaints) {
  const Place place = qp.place(data.record.at);
  if (data.index < qp.packets_posted) {
    complaints.add(place, Rule::kPacket,
                   "PSN {} was sent, but its message has completed: its buffer may be in use",
                   data.bth.psn.value());
  } else {
    complaints.add(place, Rule::kPacket, "PSN {} was sent, but no posted message includes it",
                   data.bth.psn.value());
  }
}

void check_range(const Qp& qp, const DataSent& data, Complaints& complaints) {
  const Post& post = *data.post;
  const auto offset = static_cast<std::uint64_t>((data.index - post.first) * qp.mtu);
  const std::uint64_t size =
      std::min<std::uint64_t>(post.length - offset, static_cast<std::uint64_t>(qp.mtu));
  const bool right = data.write.va == post.va + offset && data.write.message_size == post.length &&
                     data.record.size == size && (data.record.size + data.bth.pad) % 4 == 0;
  if (right) return;
  complaints.add(qp.place(data.record.at), Rule::kPacket,
                 "PSN {} writes {} (+{} pad) bytes of {} to {:#x}; it is part of post {}: {} bytes"
                 " of {} to {:#x}",
                 data.bth.psn.value(), data.record.size, data.bth.pad, data.write.message_size,
                 data.write.va, post.id, size, post.length, post.va + offset);
}

void check_names(Qp& qp, const DataSent& data, Complaints& complaints) {
  Post& post = *data.post;
  const Place place = qp.place(data.record.at);
  if (!post.rkey_known) {
    post.rkey_known = true;
    post.rkey = data.write.rkey;
  } else if (post.rkey != data.write.rkey) {
    complaints.add(place, Rule::kPacket, "PSN {} has rkey {:#x}, other packets of post {} {:#x}",
                   data.bth.psn.value(), data.write.rkey, post.id, post.rkey);
  }
  // The sender chooses its first msn; each following message must have the next one.
  const auto msn_base = static_cast<std::uint16_t>(data.write.msn - post.sequence);
  if (!qp.packet.msn_known) {
    qp.packet.msn_known = true;
    qp.packet.msn_base = msn_base;
  } else if (qp.packet.msn_base != msn_base) {
    complaints.add(place, Rule::kPacket, "PSN {} has msn {}, post {} has {}", data.bth.psn.value(),
                   data.write.msn, post.id,
                   static_cast<std::uint16_t>(qp.packet.msn_base + post.sequence));
  }
  if (!wire::has_immediate(data.bth.opcode)) return;
  const auto rqmsn_base = static_cast<std::uint16_t>(data.write.rqmsn - post.wimm_sequence);
  if (!qp.packet.rqmsn_known) {
    qp.packet.rqmsn_known = true;
    qp.packet.rqmsn_base = rqmsn_base;
  }
  if (qp.packet.rqmsn_base != rqmsn_base || data.write.immediate != post.immediate) {
    complaints.add(
        place, Rule::kPacket, "PSN {} has rqmsn {} and immediate {:#x}, post {} has {} and {:#x}",
        data.bth.psn.value(), data.write.rqmsn, data.write.immediate, post.id,
        static_cast<std::uint16_t>(qp.packet.rqmsn_base + post.wimm_sequence), post.immediate);
  }
}

}  // namespace

void check_packet(Qp& qp, const DataSent& data, Complaints& complaints) {
  check_rtx(qp, data, complaints);
  if (data.post == nullptr) return check_owner(qp, data, complaints);
  const wire::Opcode expected = expected_opcode(*data.post, data.index);
  if (data.bth.opcode != expected) {
    complaints.add(qp.place(data.record.at), Rule::kPacket,
                   "PSN {} has opcode {:#x}, its place in post {} asks for {:#x}",
                   data.bth.psn.value(), static_cast<unsigned>(data.bth.opcode), data.post->id,
                   static_cast<unsigned>(expected));
  }
  check_range(qp, data, complaints);
  check_names(qp, data, complaints);
}

}  // namespace weft::judge
