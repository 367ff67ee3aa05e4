// For tests: a requestor with everything it uses, and SACKs as a responder would send them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "transport/requestor.h"
#include "transport/test_memory.h"
#include "wire/framing.h"

namespace weft::transport::test {

class RequestorBench {
 public:
  static constexpr std::uint32_t kPeerQpn = 0x321, kLocalQpn = 0x123;
  struct Options {
    QpConfig config{};
    Psn first = Psn(0xff'fff0);
    std::uint32_t mtu = 1024, burst = 1;
    std::uint32_t budget_unit_bytes = 0;  // unit of SACK.mpr
    std::uint32_t send_queue_max = 64;
    std::uint32_t pool_blocks = 1024;
    std::uint32_t watched_max = 64;
    EvShape evs{.ports = 2, .per_port = 4};
    std::uint32_t ev_active = 8, ev_min_active = 2;
    Duration confirm{};  // PathSet::Options::confirm
  };
  static Options defaults() {
    Options options;
    options.config.nscc.rate = Rate::gbps(100);
    options.config.nscc.base_rtt = Duration::us(10);
    return options;
  }

  explicit RequestorBench(const Options& options = defaults())
      : options_(options),
        params_{.config = options.config,
                .peer = &rules_of(options.config.peer),
                .budget_unit_bytes = options.budget_unit_bytes,
                .nscc = NsccParams::derive(options.config.nscc, options.mtu,
                                           rules_of(options.config.peer)),
                .mtu = options.mtu,
                .burst = options.burst},
        pool(options.pool_blocks),
        prober(options.watched_max),
        requestor({.params = &params_,
                   .pool = &pool,
                   .first_psn = options.first,
                   .send_queue_max = options.send_queue_max,
                   .paths = {.policy = options.config.policy,
                             .condemn = options.config.condemn,
                             .active = options.ev_active,
                             .min_active = options.ev_min_active,
                             .port_count = options.evs.ports,
                             .confirm = options.confirm}},
                  make_evs(options.evs)),
        next_(options.first) {
    requestor.start(now, {.local_qpn = kLocalQpn, .peer_qpn = kPeerQpn, .peer = 0});
  }

  Requestor::Context context() {
    return {.now = now,
            .received_at = now,
            .control = control,
            .prober = prober,
            .counters = counters,
            .probes = probes,
            .peers = peers};
  }
  void pass(Duration d) { now += d; }

  void post(std::uint32_t size, bool with_immediate = false, bool signalled = true) {
    requestor.post(now, {.id = next_id_++,
                         .local_at = 0x1000'0000,
                         .remote_at = 0x2000'0000,
                         .rkey = 0x77,
                         .size = size,
                         .with_immediate = with_immediate,
                         .immediate = 42,
                         .signalled = signalled});
  }

  struct Out {
    wire::Packet packet;
    Requestor::Outgoing outgoing;
    Psn psn() const { return packet.bth.psn; }
    const wire::Write& write() const { return std::get<wire::Write>(packet.body); }
  };
  // The next packet, or none; `polled` has the reason.
  std::optional<Out> poll(PortMask usable = 0xff) {
    std::array<std::byte, wire::kHeaderSizeMax> header;
    Out out;
    auto c = context();
    polled = requestor.has_work() ? requestor.poll(c, usable, header, out.outgoing)
                                  : Requestor::Polled::kNothing;
    if (polled != Requestor::Polled::kPacket) return std::nullopt;
    const auto packet = wire::parse(ConstBytes(header).first(out.outgoing.header_size));
    EXPECT_TRUE(packet.has_value());
    out.packet = *packet;
    return out;
  }
  // All packets that may be sent now.
  std::vector<Out> poll_all(PortMask usable = 0xff) {
    std::vector<Out> all;
    while (auto out = poll(usable)) all.push_back(*out);
    return all;
  }

  // The size with which both ends count a packet.
  static std::uint32_t nominal(const Out& out) {
    const std::uint32_t header = wire::has_immediate(out.packet.bth.opcode) ? 40 : 36;
    return 8 + header + ((out.outgoing.payload.size + 3) & ~3u) + 4 + wire::kNominalOverhead;
  }

  // The responder receives that packet. Sends no SACK.
  void arrive(const Out& out) {
    if (out.psn().since(next_) < 0 || above_[out.psn().value() & 0xffff]) return;
    above_[out.psn().value() & 0xffff] = true;
    ++above_count_;
    bytes_ += nominal(out);
    for (; above_[next_.value() & 0xffff]; next_ = next_ + 1, --above_count_) {
      above_[next_.value() & 0xffff] = false;
    }
  }
  Psn cack() const { return next_ - 1; }
  struct Trigger {
    Psn psn;
    wire::Timestamp sent;
    bool rtx = false;
    std::uint32_t entropy = 0;
    wire::PathMark mark = wire::PathMark::kNone;
  };
  static Trigger trigger(const Out& out) {
    return {.psn = out.psn(),
            .sent = out.write().sent,
            .rtx = out.packet.bth.rtx,
            .entropy = out.outgoing.ev.value};
  }
  // The responder's state, as a SACK triggered by that packet.
  wire::Sack sack(const Trigger& t) const {
    wire::Sack s;
    s.cack = cack();
    s.trigger_offset = static_cast<std::int16_t>(t.psn.since(s.cack));
    s.entropy = t.entropy;
    s.mark = t.mark;
    s.echo = t.sent;
    s.ooo_count = static_cast<std::uint16_t>(above_count_);
    s.rcvd_bytes_256 = (bytes_ + 255) / 256 & 0xff'ffff;
    s.mpr = 0;
    Psn base = t.psn - 63;
    if (base.since(s.cack) <= 0) base = s.cack + 1;
    s.bitmap_offset = static_cast<std::int16_t>(base.since(s.cack));
    for (int i = 0; i < 64; ++i) {
      if (above_[(base + i).value() & 0xffff]) s.bitmap |= 1ull << i;
    }
    return s;
  }
  bool take_sack(const wire::Sack& s, bool rtx = false) {
    auto c = context();
    requestor.on_heard(c);
    return requestor.on_sack(c, {.opcode = wire::Opcode::kSack, .rtx = rtx, .psn = s.cack}, s);
  }
  // The packet arrives at the responder, and its SACK comes back.
  bool acknowledge(const Out& out) {
    arrive(out);
    return take_sack(sack(trigger(out)), out.packet.bth.rtx);
  }
  bool acknowledge(const std::vector<Out>& all) {
    for (const Out& out : all) arrive(out);
    return take_sack(sack(trigger(all.back())), all.back().packet.bth.rtx);
  }
  Status nack(const Out& out, wire::NackReason reason) {
    auto c = context();
    requestor.on_heard(c);
    return requestor.on_nack(c, {.reason = reason,
                                 .entropy = out.outgoing.ev.value,
                                 .psn = out.psn(),
                                 .echo = out.write().sent});
  }
  Status transport_ack(Psn psn, wire::AckSyndrome syndrome = wire::AckSyndrome::kAck) {
    auto c = context();
    requestor.on_heard(c);
    return requestor.on_transport_ack(c, psn, {.syndrome = syndrome});
  }
  Status on_deadline(Duration late_by = {}) {
    auto c = context();
    return requestor.on_deadline(c, late_by);
  }
  // Time passes to the next deadline, at which the requestor acts.
  Status to_deadline() {
    now = std::max(now, requestor.deadline());
    return on_deadline();
  }
  void port_lost(PortIndex port) {
    auto c = context();
    requestor.on_port_lost(c, port);
  }
  std::vector<Completion> completions() {
    std::vector<Completion> all;
    for (Completion done; requestor.poll_completion(done);) all.push_back(done);
    return all;
  }
  std::int64_t inflight() const { return requestor.congestion().inflight(); }

 private:
  Options options_;
  QpParams params_;

 public:
  Time now = Time::from_start(Duration::ms(1));
  PsnBlockPool pool;
  ControlQueue control{4096};
  EvProber prober;
  ProbeBudget probes{kSoftwareRules.probes_per_ms};
  std::array<Peer, 1> peers{};
  RequestorCounters counters;
  Requestor requestor;
  Requestor::Polled polled = Requestor::Polled::kNothing;

 private:
  Psn next_;  // the PSN after the responder's cumulative PSN
  std::vector<bool> above_ = std::vector<bool>(0x1'0000);
  std::uint32_t above_count_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint64_t next_id_ = 1;
};

}  // namespace weft::transport::test
