// For tests: what MRC 1.0 allows an end of a QP to send, checked packet by packet. Uses the wire
// format and the specification's rules only, none of the classes under test.
//
// Each SACK has one cause: a probe, or a data packet that requests a SACK, is a retransmission, is
// marked CE, is a duplicate, is the first of the QP, closes the holes that a request found, or
// reaches the SACK threshold. The SACK leaves at the time of its cause, once, and its CC_STATE has
// none of our own flags.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/psn.h"
#include "base/time.h"
#include "wire/framing.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::transport::test {

class MrcRules {
 public:
  struct Options {
    Psn first, peer_first;
    std::uint32_t mpr = 8, mpr_dest = 8;  // units of 128 PSNs
    std::uint32_t mtu = 1024;
    std::uint32_t sack_bytes = 16 * 1024;
    Duration tail_time;  // base RTT plus target delay: silence before a probe
    Duration retry_interval = Duration::ns(1024 * 1024);  // 1.024 us * 2^timeout
  };
  explicit MrcRules(const Options& options)
      : options_(options),
        cack_(options.peer_first - 1),
        next_(options.first),
        peer_cack_(options.first - 1),
        acknowledged_(options.first - 1) {}

  // Each violated rule, and how often.
  const std::map<std::string, int>& violations() const { return violations_; }
  int left(wire::Opcode opcode) const {
    const auto at = left_.find(opcode);
    return at == left_.end() ? 0 : at->second;
  }

  // A datagram arrives at the checked end.
  void on_arrival(Time now, const world::Datagram& d) {
    const bool trimmed = world::is_trimmed(d.dscp);
    const auto packet = wire::parse(d.header, {.trimmed = trimmed});
    if (!packet || !d.intact) return;
    arrived_at_ = now;
    if (std::holds_alternative<wire::Write>(packet->body)) {
      on_data(now, d, packet->bth);
    } else if (const auto* probe = std::get_if<wire::Probe>(&packet->body)) {
      probes_.emplace(probe->probe_id, now);
    } else if (std::holds_alternative<wire::EndpointRequest>(packet->body)) {
      ++requests_;
    } else if (const auto* sack = std::get_if<wire::Sack>(&packet->body)) {
      if (sack->cack.since(peer_cack_) > 0) peer_cack_ = sack->cack;
      if (((sack->rcvd_bytes_256 - reported_256_) & 0xff'ffff) - 1 < 0x80'0000) {
        reported_256_ = sack->rcvd_bytes_256;
        progress_at_ = now;
      }
    } else if (std::holds_alternative<wire::TransportAck>(packet->body)) {
      if (packet->bth.psn.since(acknowledged_) <= 0) return;
      acknowledged_ = packet->bth.psn;
      progress_at_ = now;
    }
  }

  // The checked end sends a datagram.
  void on_departure(Time now, const world::Datagram& d) {
    const auto packet = wire::parse(d.header, {});
    if (!packet) return violated("a packet that does not parse");
    std::array<std::byte, wire::kHeaderSizeMax> again{};
    const std::size_t size = wire::emit(*packet, again);
    if (size != d.header.size() || !std::equal(d.header.begin(), d.header.end(), again.begin()))
      violated("reserved bits or bytes are not zero");
    ++left_[packet->bth.opcode];
    if (const auto* sack = std::get_if<wire::Sack>(&packet->body)) {
      on_sack(now, *sack);
    } else if (const auto* ack = std::get_if<wire::TransportAck>(&packet->body)) {
      if (ack->syndrome != wire::AckSyndrome::kAck) violated("a NAK without a cause");
      take(now, transport_acks_due_, "a Transport ACK without a cause, or late");
    } else if (std::holds_alternative<wire::Nack>(packet->body)) {
      take(now, nacks_due_, "a NACK without a cause, or late");
    } else if (std::holds_alternative<wire::Write>(packet->body)) {
      on_write_packet(now, d, packet->bth);
    } else if (std::holds_alternative<wire::Probe>(packet->body)) {
      // A probe may leave when a packet arrives, at the tail of a flow, or by the retry timer.
      const bool at_tail = now - sent_at_ >= options_.tail_time;
      const bool by_timer = now - progress_at_ >= options_.retry_interval;
      if (now != arrived_at_ && !at_tail && !by_timer)
        violated("a reliability probe before the tail time");
    } else if (const auto* request = std::get_if<wire::EndpointRequest>(&packet->body)) {
      const bool known = request->op == wire::EndpointOp::kEvProbe ||
                         request->op == wire::EndpointOp::kPortStatusUpdate;
      if (!known || packet->bth.dest_qpn != wire::kEndpointQpn)
        violated("an endpoint request that MRC does not know");
    } else if (std::holds_alternative<wire::EndpointResponse>(packet->body)) {
      if (--requests_ < 0) violated("an endpoint response that nobody asked for");
    }
  }

  // The network is idle: everything that was due must have left.
  void on_end() {
    if (!sacks_due_.empty()) violated("a SACK that was due did not leave");
    if (!transport_acks_due_.empty()) violated("a Transport ACK that was due did not leave");
  }

 private:
  void violated(const std::string& what) { ++violations_[what]; }

  // Uses up one cause, which must be of this moment.
  void take(Time now, std::vector<Time>& due, const char* otherwise) {
    const auto at = std::find(due.begin(), due.end(), now);
    if (at == due.end()) return violated(otherwise);
    due.erase(at);
  }

  void on_data(Time now, const world::Datagram& d, const wire::Bth& bth) {
    const std::int32_t ahead = bth.psn.since(cack_);
    const auto window = static_cast<std::int32_t>(options_.mpr_dest * 128);
    if (ahead > window) return nacks_due_.push_back(now);
    if (ahead <= 0 || above_.contains(bth.psn.value())) {
      if (ahead <= 0) transport_acks_due_.push_back(now);
      unreported_bytes_ = 0;
      return sacks_due_.push_back(now);
    }
    if (world::is_trimmed(d.dscp)) return nacks_due_.push_back(now);
    above_.insert(bth.psn.value());
    if (wire::ends_message(bth.opcode)) ends_.insert(bth.psn.value());
    unreported_bytes_ += std::max(
        wire::nominal_size({.header_size = d.header.size(), .payload_size = d.payload.size}),
        1024u);
    bool completes = false;  // one Transport ACK covers all messages that this packet completes
    while (above_.erase((cack_ + 1).value()) > 0) {
      cack_ = cack_ + 1;
      completes |= ends_.erase(cack_.value()) > 0;
    }
    if (completes) transport_acks_due_.push_back(now);
    bool due = bth.ack_request || bth.rtx || d.ecn == world::Ecn::kCe || !any_ ||
               unreported_bytes_ >= options_.sack_bytes;
    any_ = true;
    sack_requested_with_holes_ |= bth.ack_request && !above_.empty();
    if (sack_requested_with_holes_ && above_.empty()) {
      sack_requested_with_holes_ = false;
      due = true;
    }
    if (!due) return;
    unreported_bytes_ = 0;
    sacks_due_.push_back(now);
  }

  void on_sack(Time now, const wire::Sack& sack) {
    if (sack.cc_type != 0 || sack.cc_flags != 0) violated("a flag in CC_STATE that is not MRC's");
    if (sack.cwnd_penalty != 0 || sack.restore_cwnd) violated("a penalty without a cause");
    if (sack.mpr != options_.mpr_dest) violated("an MPR that is not the agreed one");
    if (sack.mark == wire::PathMark::kAlwaysSkip) violated("a path judged by the responder");
    if (!sack.answers_probe) return take(now, sacks_due_, "a SACK without a cause, or late");
    const auto asked = probes_.find(sack.probe_id);
    if (asked == probes_.end() || asked->second != now)
      return violated("the answer to a probe that did not come, or late");
    probes_.erase(asked);
  }

  void on_write_packet(Time now, const world::Datagram& d, const wire::Bth& bth) {
    sent_at_ = now;
    if (d.payload.size > options_.mtu) violated("a payload above the MTU");
    const bool is_new = bth.psn == next_;
    if (is_new) next_ = next_ + 1;
    if (!is_new && next_.since(bth.psn) <= 0) violated("a PSN was left out");
    if (is_new == bth.rtx) violated("BTH.rtx does not tell a retransmission");
    if (bth.psn.since(peer_cack_) > static_cast<std::int32_t>(options_.mpr * 128))
      violated("a PSN beyond the MPR");
  }

  Options options_;
  std::map<std::string, int> violations_;
  std::map<wire::Opcode, int> left_;
  Time arrived_at_, progress_at_, sent_at_;
  std::uint32_t reported_256_ = 0;
  // As responder.
  Psn cack_;
  std::set<std::uint32_t> above_, ends_;  // PSNs received above cack; PSNs that end a message
  std::uint32_t unreported_bytes_ = 0;
  bool any_ = false, sack_requested_with_holes_ = false;
  std::vector<Time> sacks_due_, transport_acks_due_, nacks_due_;  // when their causes arrived
  std::multimap<std::uint16_t, Time> probes_;                     // not answered yet, by id
  int requests_ = 0;
  // As requestor.
  Psn next_, peer_cack_, acknowledged_;
};

}  // namespace weft::transport::test
