// An endpoint gets random packets, port events, deadlines, posts and polls. For every input: it
// must not crash; no byte is placed outside the registered region; every packet that it sends can
// be parsed and is for a port with room; every work request completes at most once and in order.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.h"
#include "transport/endpoint.h"

namespace weft::transport {
namespace {

constexpr std::uint32_t kPorts = 2, kMtu = 256, kKey = 0x77;
constexpr std::uint64_t kRegionAt = 0x1'0000, kRegionSize = 0x1'0000;

// Takes values from the front of the fuzzer's input. After the end of the input every byte is 0.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  std::uint8_t take8() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  std::uint16_t take16() { return static_cast<std::uint16_t>(take8() << 8 | take8()); }
  std::uint32_t take32() { return static_cast<std::uint32_t>(take16()) << 16 | take16(); }
  std::uint64_t take64() { return static_cast<std::uint64_t>(take32()) << 32 | take32(); }
  std::uint32_t below(std::uint32_t bound) { return take8() % bound; }
  bool flag() { return (take8() & 1) != 0; }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

class Memory final : public world::Memory {
 public:
  bool region(const world::RegionQuery& query, world::Region& out) const override {
    if (query.key != kKey || query.at < kRegionAt || query.size > kRegionSize) return false;
    if (query.at - kRegionAt > kRegionSize - query.size) return false;
    out = {.at = query.at, .size = query.size};
    return true;
  }
  void place(const world::Region& to, world::PayloadRef from) override {
    WEFT_ASSERT(to.size == from.size && to.size <= kMtu);
    WEFT_ASSERT(to.at >= kRegionAt && to.at + to.size <= kRegionAt + kRegionSize);
  }
};

Address peer_address(std::uint32_t peer, std::uint32_t port) {
  return {.high = 7, .low = 100 * peer + port + 1};
}

class Machine {
 public:
  explicit Machine(Input& input) : in_(input), endpoint_(config(input), memory_, nullptr) {
    for (std::uint32_t port = 0; port < kPorts; ++port) {
      for (std::uint32_t i = 0; i < 3; ++i) {
        evs_.push_back({.value = port << 24 | (i + 1), .port = static_cast<std::uint8_t>(port)});
      }
    }
    for (std::uint32_t i = 0; i < qps_.size(); ++i) create(i);
  }

  void run() {
    for (int step = 0; step < 2000 && !in_.empty(); ++step) {
      event();
      take_completions();
    }
    for (std::uint32_t i = 0; i < qps_.size(); ++i) destroy(i);
    take_completions();
  }

 private:
  struct QpOf {
    Qpn qpn = 0;
    // first PSN that the endpoint sends; a PSN near the one that it expects to receive next
    Psn first, next_in;
    std::uint64_t posted = 0, done = 0;
    std::uint64_t receives = 0, received = 0;
    bool alive = false;
  };

  static EndpointConfig config(Input& in) {
    EndpointConfig c;
    c.port_count = kPorts;
    c.mtu = kMtu;
    c.burst = 1 + in.below(4);
    c.qp_count_max = 4;
    c.peer_count_max = 2;
    c.ev_count_max = 64;
    c.psn_block_count_max = 1 + in.below(8);
    c.send_queue_max = 4;
    c.receive_queue_max = 4;
    c.completion_queue_max = 16;
    c.control_queue_max = 4 + in.below(16);
    c.bad_ev_count_max = in.below(8);
    c.share_path_health = in.flag();
    for (std::uint32_t port = 0; port < kPorts; ++port) c.ports[port] = peer_address(9, port);
    return c;
  }

  void create(std::uint32_t i) {
    QpOf& q = qps_[i];
    QpConfig c;
    const std::uint8_t bits = in_.take8();
    c.mpr = 1 + (bits & 3);
    c.mpr_dest = 1 + (bits >> 2 & 3);
    c.dynamic_mpr = (bits & 16) != 0;
    c.trim_nack = (bits & 32) != 0;
    c.wimm_max = c.wimm_dest_max = 3;
    c.policy = static_cast<Policy>(in_.below(4));
    c.condemn = static_cast<Condemn>(bits >> 7);
    c.ev_active = 4;
    c.retry = {.timeout = 4, .linear_count = 2, .exponential_count = 4};
    c.nscc.rate = Rate::gbps(10);
    c.nscc.base_rtt = Duration::us(10);
    c.nscc.trimming = (bits & 64) != 0;
    c.evs = evs_;
    q = {};
    q.first = Psn(in_.flag() ? 0xff'fff0 : in_.take16());
    q.next_in = Psn(in_.flag() ? 0xff'fff8 : in_.take16());
    const auto made = endpoint_.create_qp(c, q.first);
    if (!made) return;
    q.qpn = *made;
    q.alive = true;
    if (i == 3 && in_.flag()) return;  // sometimes leave the last QP unconnected
    PeerInfo peer;
    for (std::uint32_t port = 0; port < kPorts; ++port)
      peer.ports[port] = peer_address(i % 2, port);
    peer.qpn = 0x200 + i;
    peer.first_psn = q.next_in;
    (void)endpoint_.connect(now_, q.qpn, peer);
  }
  void destroy(std::uint32_t i) {
    if (!qps_[i].alive) return;
    take_completions();
    WEFT_ASSERT(endpoint_.destroy_qp(now_, qps_[i].qpn).has_value());
    qps_[i].alive = false;
  }

  void event() {
    const std::uint8_t what = in_.take8();
    const std::uint32_t i = in_.below(static_cast<std::uint32_t>(qps_.size()));
    QpOf& q = qps_[i];
    switch (what % 16) {
      case 0:
      case 1:
        return post_write(q);
      case 2:
        q.receives += endpoint_.post_receive(now_, q.qpn, q.receives).has_value();
        return;
      case 3:
      case 4:
        return transmit();
      case 5:
        now_ += Duration::ns(in_.take16());
        return;
      case 6:
        return deadline();
      case 7:
        return endpoint_.on_port(now_, static_cast<PortIndex>(in_.below(kPorts)),
                                 {.up = in_.flag()});
      case 8:
        return give_raw();
      case 9:
      case 10:
      case 11:
      case 12:
        return give_packets(i);
      case 13:
        return endpoint_.deny_ev(now_, evs_[in_.below(static_cast<std::uint32_t>(evs_.size()))],
                                 in_.flag());
      case 14:
        (void)endpoint_.limit_receive(q.qpn, {.mpr = in_.take8(), .cwnd_penalty = in_.take8()});
        return;
      default:
        if (in_.below(4) == 0) {
          destroy(i);
          create(i);
        } else if (in_.below(4) == 0) {
          (void)endpoint_.fail_qp(now_, q.qpn);
        }
    }
  }

  void post_write(QpOf& q) {
    const std::uint8_t bits = in_.take8();
    const bool posted = endpoint_
                            .post_write(now_, q.qpn,
                                        {.id = q.posted,
                                         .local_at = 0x100,
                                         .remote_at = in_.take32(),
                                         .rkey = in_.take8(),
                                         .size = in_.take16(),
                                         .with_immediate = (bits & 1) != 0,
                                         .immediate = bits,
                                         .signalled = true,
                                         .solicited = (bits & 4) != 0})
                            .has_value();
    q.posted += posted;
  }

  void transmit() {
    std::array<world::PortRoom, kPorts> room;
    for (auto& r : room) r.packets = in_.below(5);
    std::array<world::Datagram, 8> out;
    const std::size_t count = endpoint_.poll_transmit(now_, room, out);
    WEFT_ASSERT(count <= out.size());
    for (const world::Datagram& d : std::span(out).first(count)) {
      WEFT_ASSERT(d.port < kPorts && room[d.port].packets-- > 0);
      const auto packet = wire::parse(d.header);
      WEFT_ASSERT(packet.has_value());
      if (const auto* write = std::get_if<wire::Write>(&packet->body)) {
        last_psn_ = packet->bth.psn;
        last_sent_ = write->sent;
      }
      if (const auto* probe = std::get_if<wire::Probe>(&packet->body))
        last_probe_ = probe->probe_id;
      if (std::holds_alternative<wire::EndpointRequest>(packet->body))
        last_request_ = packet->bth.psn;
    }
  }

  void deadline() {
    const Time at = endpoint_.next_deadline();
    if (at == kNever) return;
    if (at > now_) now_ = at;
    endpoint_.on_deadline(now_, in_.flag() ? Duration::ms(2) : Duration());
    // The endpoint may ask to be called at once again, but not without end.
    for (int again = 0; endpoint_.next_deadline() <= now_; ++again) {
      WEFT_ASSERT(again < 64);
      endpoint_.on_deadline(now_, Duration());
    }
  }

  world::Datagram envelope(std::uint32_t peer) {
    const std::uint8_t bits = in_.take8();
    world::Datagram d;
    d.port = static_cast<PortIndex>(bits & 1);
    d.ecn = (bits & 2) != 0 ? world::Ecn::kCe : world::Ecn::kEct0;
    d.dscp = (bits & 0x1c) == 0x1c
                 ? ((bits & 32) != 0 ? world::Dscp::kTrimmed : world::Dscp::kTrimmedLastHop)
                 : world::Dscp::kTrimmable;
    d.intact = (bits & 0xc0) != 0xc0;
    d.entropy = in_.below(2) << 24 | in_.below(5);
    d.peer = peer_address(peer, d.port);
    d.received_at = now_;
    return d;
  }

  void give_raw() {
    std::array<std::byte, 64> bytes;
    const std::size_t size = in_.below(65);
    for (std::size_t k = 0; k < size; ++k) bytes[k] = static_cast<std::byte>(in_.take8());
    world::Datagram d = envelope(in_.below(3));
    d.header = ConstBytes(bytes).first(size);
    d.payload = {.at = 1, .size = in_.take16()};
    endpoint_.on_datagrams(now_, {&d, 1});
  }

  // Gives a batch of one to four packets, most of them valid and for the same QP.
  void give_packets(std::uint32_t i) {
    std::array<std::array<std::byte, wire::kHeaderSizeMax>, 4> bytes;
    std::array<world::Datagram, 4> batch;
    const std::uint32_t count = 1 + in_.below(4);
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t to = in_.below(8) == 0 ? in_.below(4) : i;
      batch[k] = envelope(in_.below(16) == 0 ? in_.below(3) : to % 2);
      const wire::Packet packet = draw(qps_[to]);
      const std::size_t size = wire::emit(packet, bytes[k]);
      if (in_.below(8) == 0) bytes[k][in_.below(48)] ^= static_cast<std::byte>(in_.take8());
      batch[k].header = ConstBytes(bytes[k]).first(size);
      if (wire::is_write(packet.bth.opcode) && !world::is_trimmed(batch[k].dscp)) {
        batch[k].payload = {.at = 5,
                            .size = in_.below(16) == 0 ? in_.take16() : in_.below(129) * 2};
      }
    }
    endpoint_.on_datagrams(now_, std::span(batch).first(count));
  }

  Psn near(Psn psn) {
    return in_.below(16) == 0 ? Psn(in_.take32()) : psn + static_cast<std::int8_t>(in_.take8()) / 4;
  }

  wire::Packet draw(QpOf& q) {
    const std::uint8_t kind = in_.take8();
    wire::Packet p;
    p.bth.dest_qpn = q.qpn;
    p.bth.rtx = (kind & 0x80) != 0;
    p.bth.ack_request = (kind & 0x40) != 0;
    switch (kind % 8) {
      case 0:
      case 1:
      case 2: {
        p.bth.opcode = static_cast<wire::Opcode>(0xc6 + in_.below(6));
        p.bth.psn = near(q.next_in);
        if (in_.flag()) p.bth.psn = q.next_in = q.next_in + 1;
        wire::Write w;
        w.rqmsn = in_.take8();
        w.sent = {in_.take16()};
        w.va = in_.below(8) == 0 ? in_.take64() : kRegionAt + in_.take16();
        w.rkey = in_.below(16) == 0 ? in_.take32() : kKey;
        w.message_size = in_.below(16) == 0 ? in_.take32() : 0x1'0000;
        w.immediate = wire::has_immediate(p.bth.opcode) ? in_.take8() : 0;
        p.body = w;
        break;
      }
      case 3:
      case 4: {
        p.bth.opcode = wire::Opcode::kSack;
        wire::Sack s;
        s.mark = static_cast<wire::PathMark>(in_.below(3));
        s.answers_probe = in_.below(4) == 0;
        s.trigger_offset =
            s.answers_probe ? std::int16_t{0} : static_cast<std::int16_t>(in_.take16() / 256);
        s.probe_id = s.answers_probe ? static_cast<std::uint16_t>(last_probe_ - in_.below(3))
                                     : std::uint16_t{0};
        s.entropy = in_.below(2) << 24 | in_.below(5);
        s.cack = near(in_.flag() ? last_psn_ : q.first);
        s.mpr = in_.take8();
        s.bitmap_offset =
            in_.below(8) == 0 ? static_cast<std::int16_t>(in_.take16()) : std::int16_t{1};
        s.bitmap = in_.take64();
        s.echo = in_.flag() ? last_sent_ : wire::Timestamp{in_.take16()};
        s.ooo_count = in_.flag() ? in_.take8() : in_.take16() & 0x7fff;
        s.restore_cwnd = in_.flag();
        s.cwnd_penalty = in_.take8() & 0x7f;
        s.rcvd_bytes_256 = in_.take32() & 0xff'ffff;
        p.bth.psn = s.cack;
        p.body = s;
        break;
      }
      case 5: {
        constexpr std::uint8_t kReasons[] = {0x01, 0x02, 0x06, 0x0b, 0x0a, 0x07, 0x19, 0x33};
        p.bth.opcode = wire::Opcode::kNack;
        wire::Nack n;
        n.reason = static_cast<wire::NackReason>(kReasons[in_.below(8)]);
        n.entropy = in_.below(5);
        n.psn = near(last_psn_);
        n.echo = in_.flag() ? last_sent_ : wire::Timestamp{in_.take16()};
        p.bth.psn = n.psn;
        p.body = n;
        break;
      }
      case 6: {
        constexpr wire::AckSyndrome kSyndromes[] = {
            wire::AckSyndrome::kAck, wire::AckSyndrome::kNakInvalidRequest,
            wire::AckSyndrome::kNakRemoteAccess, wire::AckSyndrome::kNakRemoteOperational};
        p.bth.opcode = wire::Opcode::kTransportAck;
        p.bth.psn = near(last_psn_);
        p.body = wire::TransportAck{.syndrome = in_.below(8) == 0 ? kSyndromes[in_.below(4)]
                                                                  : kSyndromes[0]};
        break;
      }
      default:
        draw_endpoint_operation(p);
    }
    return p;
  }

  void draw_endpoint_operation(wire::Packet& p) {
    switch (in_.below(4)) {
      case 0:
        p.bth.opcode = wire::Opcode::kProbe;
        p.body = wire::Probe{.probe_id = in_.take16(), .sent = {in_.take16()}};
        break;
      case 1:
        p.bth.opcode = wire::Opcode::kEndpointRequest;
        p.bth.dest_qpn = wire::kEndpointQpn;
        p.bth.psn = Psn(in_.take16());
        p.body = wire::EndpointRequest{.op = static_cast<wire::EndpointOp>(in_.below(2)),
                                       .port_status = in_.take8()};
        break;
      default:
        p.bth.opcode = wire::Opcode::kEndpointResponse;
        p.bth.dest_qpn = wire::kEndpointQpn;
        p.bth.psn = last_request_ - static_cast<std::int32_t>(in_.below(4));
        p.body = wire::EndpointResponse{};
    }
  }

  // Every write and every receive must complete once and in order.
  void take_completions() {
    std::array<Completion, 8> out;
    for (std::size_t n = out.size(); n == out.size();) {
      n = endpoint_.poll_completions(out);
      for (const Completion& c : std::span(out).first(n)) {
        for (QpOf& q : qps_) {
          if (!q.alive || q.qpn != c.qpn) continue;
          if (c.kind == CompletionKind::kWrite) {
            WEFT_ASSERT(c.id == q.done && q.done < q.posted);
            ++q.done;
          } else {
            WEFT_ASSERT(c.id == q.received && q.received < q.receives);
            ++q.received;
          }
        }
      }
    }
  }

  Input& in_;
  Memory memory_;
  Endpoint endpoint_;
  std::vector<fabric::Ev> evs_;
  std::array<QpOf, 4> qps_;
  Time now_ = Time::from_start(Duration::us(1));
  Psn last_psn_, last_request_;
  wire::Timestamp last_sent_;
  std::uint16_t last_probe_ = 0;
};

}  // namespace
}  // namespace weft::transport

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::transport::Input input(data, size);
  weft::transport::Machine(input).run();
  return 0;
}
