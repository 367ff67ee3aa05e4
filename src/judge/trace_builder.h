// TraceBuilder, for tests: writes the trace of two hosts with one QP between them, step by step.
//
// Host 0 is the requestor with QPN 0x11, host 1 the responder with QPN 0x22. An index is a PSN
// counted from the first one. A test writes the steps of a correct run and one wrong step, and
// checks the complaints of the judge.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"
#include "judge/judge.h"
#include "wire/packet.h"

namespace weft::judge {

class TraceBuilder {
 public:
  static constexpr std::uint32_t kRequestor = 0, kResponder = 1;
  static constexpr std::uint32_t kRequestorQpn = 0x11, kResponderQpn = 0x22;
  static constexpr std::uint32_t kMtu = 1024;
  static constexpr std::uint32_t kPsnFirst = 0xff'fffe;  // the third PSN wraps to 0
  static constexpr std::uint64_t kVa = 0x10'0000;
  // UDP, BTH, METH, TSETH, RETH, payload, ICRC, and the fixed 40 bytes (wire::kNominalOverhead).
  static constexpr std::int64_t kNominal = 8 + 12 + 4 + 4 + 16 + kMtu + 4 + 40;

  struct Setup {
    std::uint64_t mpr_window = 128;
    std::uint64_t wimm_max = 2;
    std::uint64_t cwnd = 1 << 20;
  };
  TraceBuilder() : TraceBuilder(Setup{}) {}
  explicit TraceBuilder(const Setup& setup) : setup_(setup) {
    add(TraceKind::kQp, kRequestor, [&](TraceRecord& r) { set_ends(r, kPsnFirst, 77); });
    add(TraceKind::kQp, kResponder, [&](TraceRecord& r) { set_ends(r, 77, kPsnFirst); });
    window(0);
  }

  using Edit = std::function<void(TraceRecord&)>;
  TraceRecord& add(TraceKind kind, std::uint32_t host, const Edit& edit = {}) {
    TraceRecord record;
    now_ += Duration::ns(1);
    record.at = now_;
    record.kind = kind;
    record.host = host;
    record.qpn = host == kRequestor ? kRequestorQpn : kResponderQpn;
    if (edit) edit(record);
    records_.push_back(record);
    return records_.back();
  }

  // --- the application ---
  struct Message {
    std::uint64_t id = 0;
    std::uint64_t length = kMtu;
    bool with_immediate = false;
    std::uint32_t immediate = 0;
    bool signalled = true;
  };
  void post(const Message& message) {
    Sent sent{.message = message, .first = packets_, .wimms_before = wimms_};
    sent.count =
        std::max<std::int64_t>(1, static_cast<std::int64_t>((message.length + kMtu - 1) / kMtu));
    packets_ += sent.count;
    wimms_ += message.with_immediate ? 1 : 0;
    messages_.push_back(sent);
    add(TraceKind::kPost, kRequestor, [&](TraceRecord& r) {
      r.id = message.id;
      r.a = kVa + message.id * 0x10'0000;
      r.b = message.length;
      r.c = message.immediate;
      r.flags =
          static_cast<std::uint8_t>((message.with_immediate ? 1 : 0) | (message.signalled ? 2 : 0));
    });
  }
  void post_recv(std::uint64_t id) {
    add(TraceKind::kPostRecv, kResponder, [&](TraceRecord& r) { r.id = id; });
  }
  TraceRecord& complete(std::uint64_t id, std::uint64_t status = 0) {
    return add(TraceKind::kComplete, kRequestor, [&](TraceRecord& r) {
      r.id = id;
      r.a = status;
    });
  }
  TraceRecord& deliver(std::uint64_t id, const Message& message) {
    return add(TraceKind::kComplete, kResponder, [&](TraceRecord& r) {
      r.id = id;
      r.b = message.length;
      r.c = message.immediate;
      r.flags = 1;
    });
  }
  TraceRecord& memory(const Message& message) {
    return add(TraceKind::kMemory, kResponder, [&](TraceRecord& r) {
      r.id = message.id;
      r.peer = kRequestor;
      r.a = r.b = message.length;
    });
  }
  TraceRecord& error(std::uint32_t host) {
    return add(TraceKind::kQpError, host, [](TraceRecord& r) { r.a = 12; });
  }

  // --- the transport ---
  void window(std::int64_t inflight) {
    add(TraceKind::kWindow, kRequestor, [&](TraceRecord& r) {
      r.a = setup_.cwnd;
      r.b = static_cast<std::uint64_t>(inflight);
    });
  }
  void ev_state(std::uint32_t ev, EvTraceState state) {
    add(TraceKind::kEv, kRequestor, [&](TraceRecord& r) {
      r.ev = ev;
      r.a = static_cast<std::uint64_t>(state);
    });
  }

  struct Data {
    bool rtx = false;
    std::uint32_t ev = 5;
    std::function<void(wire::Bth&, wire::Write&)> edit = {};
  };
  // The requestor sends the packet with that index.
  TraceRecord& send(std::int64_t index) { return send(index, Data{}); }
  TraceRecord& send(std::int64_t index, const Data& data) {
    const Sent& sent = owner(index);
    const std::int64_t k = index - sent.first;
    const bool starts = k == 0, ends = k == sent.count - 1;
    const auto offset = static_cast<std::uint64_t>(k) * kMtu;
    const auto size = std::min<std::uint64_t>(kMtu, sent.message.length - offset);
    wire::Bth bth;
    bth.opcode = starts && ends ? wire::Opcode::kWriteOnly
                 : ends         ? wire::Opcode::kWriteLast
                 : starts       ? wire::Opcode::kWriteFirst
                                : wire::Opcode::kWriteMiddle;
    if (ends && sent.message.with_immediate) {
      bth.opcode = starts ? wire::Opcode::kWriteOnlyImm : wire::Opcode::kWriteLastImm;
    }
    bth.pad = static_cast<std::uint8_t>((4 - size % 4) % 4);
    bth.dest_qpn = kResponderQpn;
    bth.rtx = data.rtx;
    bth.psn = psn_of_index(index, Psn(kPsnFirst));
    wire::Write write;
    write.msn = static_cast<std::uint16_t>(&sent - messages_.data());
    if (sent.message.with_immediate) write.rqmsn = static_cast<std::uint16_t>(sent.wimms_before);
    write.sent.ticks = static_cast<std::uint16_t>(now_.ps() / 1000);
    write.va = kVa + sent.message.id * 0x10'0000 + offset;
    write.rkey = 0xbeef;
    write.message_size = static_cast<std::uint32_t>(sent.message.length);
    if (wire::has_immediate(bth.opcode)) write.immediate = sent.message.immediate;
    if (data.edit) data.edit(bth, write);
    return add(TraceKind::kSend, kRequestor, [&](TraceRecord& r) {
      r.qpn = 0;
      r.peer = kResponder;
      r.ev = data.ev;
      r.size = static_cast<std::uint32_t>(size);
      r.header_size = static_cast<std::uint8_t>(wire::emit(bth, write, r.header));
    });
  }
  // The datagram of a kSend record reaches the host it is meant for.
  TraceRecord& arrive(const TraceRecord& sent, std::uint8_t flags = 0) {
    const TraceRecord copy = sent;
    return add(TraceKind::kReceive, copy.peer, [&](TraceRecord& r) {
      r.qpn = 0;
      r.peer = copy.host;
      r.ev = copy.ev;
      r.size = copy.size;
      r.flags = flags;
      r.header = copy.header;
      r.header_size = copy.header_size;
    });
  }
  // The packet is sent and arrives.
  void send_and_arrive(std::int64_t index) { send_and_arrive(index, Data{}); }
  void send_and_arrive(std::int64_t index, const Data& data) { arrive(send(index, data)); }

  // The responder sends a SACK. `cack` is an index, -1 if no packet has arrived.
  TraceRecord& sack(std::int64_t cack, const std::function<void(wire::Sack&)>& edit = {}) {
    wire::Sack sack;
    sack.cack = psn_of_index(cack, Psn(kPsnFirst));
    sack.bitmap_offset = 1;
    if (edit) edit(sack);
    const wire::Bth bth{.opcode = wire::Opcode::kSack, .dest_qpn = kRequestorQpn, .psn = sack.cack};
    return control([&](Bytes out) { return wire::emit(bth, sack, out); });
  }
  TraceRecord& transport_ack(std::int64_t index,
                             wire::AckSyndrome syndrome = wire::AckSyndrome::kAck) {
    const wire::Bth bth{.opcode = wire::Opcode::kTransportAck,
                        .dest_qpn = kRequestorQpn,
                        .psn = psn_of_index(index, Psn(kPsnFirst))};
    const wire::TransportAck ack{.syndrome = syndrome};
    return control([&](Bytes out) { return wire::emit(bth, ack, out); });
  }
  // A SACK and a Transport ACK for all packets up to `index` arrive at the requestor.
  void acknowledge(std::int64_t index) {
    arrive(sack(index));
    arrive(transport_ack(index));
    window(0);
  }

  // A whole message, from its post to its completion. With immediate it uses the receive with the
  // id `id` + 1000.
  void transfer(const Message& message) {
    if (message.with_immediate) post_recv(message.id + 1000);
    post(message);
    const Sent sent = messages_.back();
    for (std::int64_t i = 0; i < sent.count; ++i) send_and_arrive(sent.first + i);
    if (message.with_immediate) deliver(message.id + 1000, message);
    acknowledge(sent.first + sent.count - 1);
    if (message.signalled) complete(message.id);
  }
  // Writes kHealed, a correct kMemory for each of `messages`, and kEnd.
  void end(const std::vector<Message>& messages = {}) {
    add(TraceKind::kHealed, 0);
    for (const Message& message : messages) memory(message);
    add(TraceKind::kEnd, 0);
  }

  std::vector<TraceRecord>& records() { return records_; }
  std::vector<Complaint> judge(const Options& options = {}) const {
    Judge judge(options);
    judge.read(records_);
    return judge.finish();
  }
  // The names of the violated rules, each once, in order, separated by spaces; "" for a correct
  // run.
  std::string broken(const Options& options = {}) const {
    std::string rules;
    std::vector<std::string_view> seen;
    for (const Complaint& complaint : judge(options)) {
      if (std::find(seen.begin(), seen.end(), complaint.rule) != seen.end()) continue;
      seen.push_back(complaint.rule);
      rules += (rules.empty() ? "" : " ") + std::string(complaint.rule);
    }
    return rules;
  }

 private:
  struct Sent {
    Message message;
    std::int64_t first = 0, count = 1;
    std::uint64_t wimms_before = 0;
  };

  void set_ends(TraceRecord& r, std::uint32_t tx_first, std::uint32_t rx_first) {
    r.peer = 1 - r.host;
    r.peer_qpn = r.host == kRequestor ? kResponderQpn : kRequestorQpn;
    r.a = setup_.mpr_window;
    r.b = setup_.wimm_max;
    r.c = kMtu;
    r.psn = tx_first;
    r.ev = rx_first;
  }
  template <typename Emit>
  TraceRecord& control(const Emit& emit) {
    return add(TraceKind::kSend, kResponder, [&](TraceRecord& r) {
      r.qpn = 0;
      r.peer = kRequestor;
      r.header_size = static_cast<std::uint8_t>(emit(Bytes(r.header)));
    });
  }
  const Sent& owner(std::int64_t index) const {
    for (const Sent& sent : messages_) {
      if (index < sent.first + sent.count) return sent;
    }
    return messages_.back();
  }

  Setup setup_;
  Time now_;
  std::vector<TraceRecord> records_;
  std::vector<Sent> messages_;
  std::int64_t packets_ = 0;
  std::uint64_t wimms_ = 0;
};

}  // namespace weft::judge
