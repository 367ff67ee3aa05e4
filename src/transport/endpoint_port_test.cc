// Ports, planes and paths: port status updates, EV probes, and counters of drops.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "transport/endpoint.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::opcode_of;
using test::Pair;
using wire::Opcode;

// Writes for a while. Returns the ports that the data took.
std::set<PortIndex> ports_used(Pair& pair, const Pair::Qps& qps, int from, Duration d) {
  std::set<PortIndex> ports;
  const Time until = pair.now + d;
  const Pair::Decide before = pair.fate;
  pair.fate = [&](int end, const world::Datagram& datagram) {
    if (end == from && wire::is_write(opcode_of(datagram))) ports.insert(datagram.port);
    return before ? before(end, datagram) : Fate::kDeliver;
  };
  while (pair.now < until) {
    (void)pair.write(from, qps.qpn[from], {.size = 20'000});
    pair.run_for(Duration::us(20));
    pair.completions(from);
  }
  pair.fate = before;
  return ports;
}
using Ports = std::set<PortIndex>;

TEST(EndpointPort, BothEndsLeaveAPortThatIsDown) {
  Pair pair;
  const auto qps = pair.connect();
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(200)), (Ports{0, 1}));
  pair.set_port(1, 0, false);
  pair.run_for(Duration::us(20));
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), Ports{1});
  EXPECT_EQ(ports_used(pair, qps, 1, Duration::us(500)), Ports{1});
  EXPECT_EQ(pair.counter(0, "transport.planes_condemned"), 0u);
  pair.set_port(1, 0, true);
  pair.run_for(Duration::us(20));
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), (Ports{0, 1}));
  EXPECT_EQ(ports_used(pair, qps, 1, Duration::us(500)), (Ports{0, 1}));
  EXPECT_EQ(pair.end(0).qp_state(qps.qpn[0]), QpState::kReadyToSend);
}

TEST(EndpointPort, PacketsInFlightOnADeadPortAreRetransmittedAtOnce) {
  Pair pair;
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 100'000}));
  pair.run_for(Duration::us(2));
  pair.set_port(0, 1, false);
  EXPECT_FALSE(pair.run_for(Duration::us(900)));
  EXPECT_EQ(pair.completions(0).size(), 1u);
  EXPECT_GT(pair.counter(0, "transport.lost_port"), 0u);
  EXPECT_EQ(pair.counter(0, "transport.timeouts"), 0u);
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_bad, 0u);
}

TEST(EndpointPort, PortStatusUpdateIsRepeatedUntilAnswered) {
  Pair pair;
  pair.connect();
  int requests = 0;
  pair.fate = [&](int from, const world::Datagram& d) {
    const auto packet = wire::parse(d.header);
    const auto* request = std::get_if<wire::EndpointRequest>(&packet->body);
    const bool status = request != nullptr && request->op == wire::EndpointOp::kPortStatusUpdate;
    return from == 1 && status && requests++ < 5 ? Fate::kDrop : Fate::kDeliver;
  };
  pair.set_port(1, 0, false);
  // Repeated after 100 us three times, then after 10 ms.
  EXPECT_TRUE(pair.run_for(Duration::us(350)));
  EXPECT_EQ(requests, 4);
  EXPECT_FALSE(pair.run_for(Duration::ms(30)));
  EXPECT_EQ(requests, 6);
  EXPECT_EQ(pair.counter(1, "transport.port_status_updates"), 6u);
}

TEST(EndpointPort, TransfersResumeAfterAllPortsWereDown) {
  Pair pair;
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 100'000}));
  pair.run_for(Duration::us(2));
  for (PortIndex port : {PortIndex{0}, PortIndex{1}}) pair.set_port(0, port, false);
  pair.run_for(Duration::ms(20));
  EXPECT_TRUE(pair.completions(0).empty());
  for (PortIndex port : {PortIndex{0}, PortIndex{1}}) pair.set_port(0, port, true);
  pair.run_for(Duration::ms(1));
  EXPECT_EQ(pair.completions(0).size(), 1u);
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), (Ports{0, 1}));
}

// Each end's only port that is up is the other end's port that is down: packets for that peer
// cannot leave, and packets to other peers must not wait for them.
TEST(EndpointPort, UnreachablePeerDoesNotHoldUpOtherPeers) {
  EndpointConfig config;
  config.port_count = 2;
  config.mtu = 1024;
  test::TestMemory memory({});
  Endpoint endpoint(config, memory, nullptr);
  const auto evs = test::make_evs({.ports = 2, .per_port = 4});
  QpConfig qp;
  qp.evs = evs;
  qp.nscc.rate = Rate::gbps(100);
  qp.nscc.base_rtt = Duration::us(10);
  const Time now = Time::from_start(Duration::us(1));
  std::array<Qpn, 2> qpns{};
  for (int i = 0; i < 2; ++i) {
    qpns[static_cast<std::size_t>(i)] = endpoint.create_qp(qp, Psn(0)).value();
    PeerInfo peer;
    peer.ports = {Pair::address(1 + i, 0), Pair::address(1 + i, 1)};
    peer.qpn = 0x500 + static_cast<std::uint32_t>(i);
    ASSERT_TRUE(endpoint.connect(now, qpns[static_cast<std::size_t>(i)], peer));
  }
  const auto give = [&](int peer, const wire::Bth& bth, const auto& body) {
    std::array<std::byte, wire::kHeaderSizeMax> bytes;
    const std::size_t size = wire::emit(bth, body, bytes);
    const world::Datagram d{
        .port = 1, .peer = Pair::address(1 + peer, 1), .header = ConstBytes(bytes).first(size)};
    endpoint.on_datagrams(now, {&d, 1});
  };
  std::array<world::Datagram, 16> out;
  const std::array<world::PortRoom, 2> room = {world::PortRoom{16}, world::PortRoom{16}};
  // Peer 0 has only port 0 left, and our own port 0 goes down.
  give(0, {.opcode = Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(1)},
       wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = 0b010});
  endpoint.poll_transmit(now, room, out);
  endpoint.on_port(now, 0, {.up = false});
  endpoint.poll_transmit(now, room, out);
  give(0, {.opcode = Opcode::kProbe, .dest_qpn = qpns[0]}, wire::Probe{});
  give(1, {.opcode = Opcode::kProbe, .dest_qpn = qpns[1]}, wire::Probe{});
  const std::size_t count = endpoint.poll_transmit(now, room, out);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(wire::parse(out[0].header)->bth.dest_qpn, 0x501u);
  EXPECT_EQ(out[0].port, 1);
}

TEST(EndpointPort, EvProbeOfAnUnknownHostIsAnswered) {
  for (bool known : {true, false}) {
    Pair pair;
    pair.connect();
    const world::Address from = known ? Pair::address(0, 1) : Address{.high = 1, .low = 2};
    std::array<std::byte, wire::kHeaderSizeMax> bytes;
    const std::size_t size = wire::emit(
        wire::Bth{
            .opcode = Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(4711)},
        wire::EndpointRequest{.sent = {99}}, bytes);
    const world::Datagram d{
        .port = 1, .entropy = 0xabcd, .peer = from, .header = ConstBytes(bytes).first(size)};
    pair.end(1).on_datagrams(pair.now, {&d, 1});
    std::array<world::Datagram, 4> out;
    const std::array<world::PortRoom, 2> room = {world::PortRoom{4}, world::PortRoom{4}};
    ASSERT_EQ(pair.end(1).poll_transmit(pair.now, room, out), 1u);
    const auto answer = wire::parse(out[0].header);
    ASSERT_TRUE(std::holds_alternative<wire::EndpointResponse>(answer->body));
    EXPECT_EQ(answer->bth.psn, Psn(4711));
    EXPECT_EQ(std::get<wire::EndpointResponse>(answer->body).echo.ticks, 99);
    EXPECT_EQ(out[0].dscp, world::Dscp::kControl);
    EXPECT_EQ(out[0].port, 1);
    if (!known) {
      EXPECT_EQ(out[0].peer, from);
      EXPECT_EQ(out[0].entropy, 0xabcdu);
    }
  }
}

TEST(EndpointPort, LatePortStatusUpdateDoesNotUndoANewerOne) {
  Pair pair;
  const auto qps = pair.connect();
  const auto status = [&](std::uint16_t id, std::uint32_t mask) {
    std::array<std::byte, wire::kHeaderSizeMax> bytes;
    const std::size_t size = wire::emit(
        wire::Bth{
            .opcode = Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(id)},
        wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = mask},
        bytes);
    const world::Datagram d{.peer = Pair::address(1, 0), .header = ConstBytes(bytes).first(size)};
    pair.end(0).on_datagrams(pair.now, {&d, 1});
  };
  status(500, 0b110);
  status(499, 0b010);  // the older update arrives late
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(200)), (Ports{0, 1}));
  status(501, 0b100);
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(200)), Ports{1});
  // Since then the request numbers have gone half round: this update is news all the same.
  pair.run_for(Duration::ms(50));
  status(static_cast<std::uint16_t>(501 + 0x9000), 0b110);
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(200)), (Ports{0, 1}));
}

TEST(EndpointPort, PortStatusUpdateOfAnUnknownHostIsDropped) {
  Pair pair;
  pair.connect();
  std::array<std::byte, wire::kHeaderSizeMax> bytes;
  const std::size_t size = wire::emit(
      wire::Bth{.opcode = Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(1)},
      wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = 0}, bytes);
  const world::Datagram d{.peer = {.high = 1, .low = 2}, .header = ConstBytes(bytes).first(size)};
  pair.end(1).on_datagrams(pair.now, {&d, 1});
  EXPECT_EQ(pair.counter(1, "transport.drop_unknown_peer"), 1u);
  pair.run_for(Duration::us(20));
  EXPECT_EQ(pair.sent, 0u);
}

TEST(EndpointPort, DeadPlaneIsNotUsedUntilItWorks) {
  Pair pair;
  const auto qps = pair.connect();
  ports_used(pair, qps, 0, Duration::us(300));
  // Plane 1 drops everything, and its carriers stay up.
  pair.fate = [](int, const world::Datagram& d) {
    return d.port == 1 ? Fate::kDrop : Fate::kDeliver;
  };
  ports_used(pair, qps, 0, Duration::ms(1));
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), Ports{0});
  pair.fate = nullptr;
  pair.run_for(Duration::ms(5));
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), (Ports{0, 1}));
  pair.run_for(Duration::ms(20));
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_bad, 0u);
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_active, 12u);
}

// End 0 writes for a while. Returns the ports that end 1's SACKs took.
Ports ports_of_sacks(Pair& pair, const Pair::Qps& qps, Duration d) {
  Ports ports;
  const Pair::Decide before = pair.fate;
  pair.fate = [&](int end, const world::Datagram& datagram) {
    if (end == 1 && opcode_of(datagram) == Opcode::kSack) ports.insert(datagram.port);
    return before ? before(end, datagram) : Fate::kDeliver;
  };
  ports_used(pair, qps, 0, d);
  pair.fate = before;
  return ports;
}

TEST(EndpointPort, SacksLeaveAPlaneThatDropsThem) {
  Pair pair;
  const auto qps = pair.connect();
  EXPECT_EQ(ports_of_sacks(pair, qps, Duration::ms(2)), (Ports{0, 1}));
  pair.fate = [](int from, const world::Datagram& d) {
    return from == 1 && d.port == 1 ? Fate::kDrop : Fate::kDeliver;
  };
  ports_used(pair, qps, 0, Duration::ms(10));
  EXPECT_EQ(ports_of_sacks(pair, qps, Duration::ms(5)), Ports{0});
  // Data still takes both planes: its direction works.
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), (Ports{0, 1}));
  pair.fate = nullptr;
  ports_used(pair, qps, 0, Duration::ms(5));
  EXPECT_EQ(ports_of_sacks(pair, qps, Duration::ms(2)), (Ports{0, 1}));
}

// Answers to probes come too late, or never, on all planes alike. So no plane is in doubt, and
// SACKs do not all take one plane, which may be the dead one.
TEST(EndpointPort, NoPlaneIsInDoubtWhenNoProbeIsAnswered) {
  Pair pair;
  const auto qps = pair.connect();
  pair.fate = [](int, const world::Datagram& d) {
    return opcode_of(d) == Opcode::kEndpointResponse ? Fate::kDrop : Fate::kDeliver;
  };
  ports_used(pair, qps, 0, Duration::ms(20));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(ports_of_sacks(pair, qps, Duration::ms(1)), (Ports{0, 1})) << i;
}

// All EVs but one die, and ev_min_active keeps some of the dead EVs in rotation. When they work
// again, all of them carry data.
TEST(EndpointPort, EvsThatTheMinimumKeptInRotationCarryDataAgain) {
  auto options = Pair::defaults();
  options.endpoint.port_count = 1;
  options.qp.ev_active = 8;
  options.qp.ev_min_active_share_percent = 50;
  Pair pair(options);
  const auto qps = pair.connect();
  ports_used(pair, qps, 0, Duration::us(300));
  pair.fate = [](int from, const world::Datagram& d) {
    return from == 0 && wire::is_write(opcode_of(d)) && d.entropy > 1 ? Fate::kDrop
                                                                      : Fate::kDeliver;
  };
  ports_used(pair, qps, 0, Duration::ms(3));
  EXPECT_GT(pair.end(0).view(qps.qpn[0]).ev_bad, 4u);
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_active, 4u);
  pair.fate = nullptr;
  for (int i = 0; i < 40; ++i) ports_used(pair, qps, 0, Duration::ms(1));
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_bad, 0u);
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_active, 8u);
}

TEST(EndpointPort, DeniedEvCarriesNothing) {
  Pair pair;
  const auto qps = pair.connect();
  const fabric::Ev ev = test::make_evs({.ports = 2, .per_port = 8})[2];
  pair.end(0).deny_ev(pair.now, ev, true);
  int on_it = 0;
  pair.fate = [&](int from, const world::Datagram& d) {
    on_it += from == 0 && wire::is_write(opcode_of(d)) && d.entropy == ev.value;
    return Fate::kDeliver;
  };
  ports_used(pair, qps, 0, Duration::ms(1));
  EXPECT_EQ(on_it, 0);
  pair.end(0).deny_ev(pair.now, ev, false);
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_active, 12u);
}

TEST(EndpointPort, DeniedEvCarriesNoAnswersEither) {
  Pair pair;
  const auto qps = pair.connect();
  std::set<std::pair<world::PortIndex, std::uint32_t>> used;
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from == 1 && opcode_of(d) == wire::Opcode::kSack) used.insert({d.port, d.entropy});
    return Fate::kDeliver;
  };
  ports_used(pair, qps, 0, Duration::ms(1));
  const auto before = std::exchange(used, {});
  ASSERT_FALSE(before.empty());
  for (const auto& [port, value] : before)
    pair.end(1).deny_ev(pair.now, {.value = value, .port = port}, true);
  ports_used(pair, qps, 0, Duration::ms(1));
  ASSERT_FALSE(used.empty());
  for (const auto& path : used) EXPECT_FALSE(before.contains(path)) << path.second;
}

TEST(EndpointPort, PlaneWhoseEvsAreAllDeniedCarriesNoAnswers) {
  Pair pair;
  const auto qps = pair.connect();
  std::set<world::PortIndex> used;
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from == 1 && opcode_of(d) == wire::Opcode::kSack) used.insert(d.port);
    return Fate::kDeliver;
  };
  const auto evs = test::make_evs({.ports = 2, .per_port = 8});
  const auto set_all = [&](bool denied) {
    for (const fabric::Ev& ev : evs) {
      if (ev.port == 1) pair.end(1).deny_ev(pair.now, ev, denied);
    }
    used.clear();
    ports_used(pair, qps, 0, Duration::ms(1));
  };
  set_all(true);
  EXPECT_EQ(used, (std::set<world::PortIndex>{0}));
  set_all(false);
  EXPECT_EQ(used, (std::set<world::PortIndex>{0, 1}));
}

TEST(EndpointPort, DropsAreCountedByReason) {
  Pair pair;
  const auto qps = pair.connect();
  Endpoint& e = pair.end(1);
  std::array<std::byte, wire::kHeaderSizeMax> bytes{};
  world::Datagram d{.peer = Pair::address(0, 0), .header = ConstBytes(bytes)};
  const auto give = [&](const wire::Packet& packet) {
    d.header = ConstBytes(bytes).first(wire::emit(packet, bytes));
    e.on_datagrams(pair.now, {&d, 1});
  };
  const auto count = [&](std::string_view name) { return pair.counter(1, name); };
  const wire::Packet sack{{.opcode = Opcode::kSack, .dest_qpn = 0x4444}, wire::Sack{}};
  const wire::Packet write{{.opcode = Opcode::kWriteOnly, .dest_qpn = 0x4444}, wire::Write{}};
  give(sack);
  give(write);
  EXPECT_EQ(count("transport.drop_unknown_qp"), 2u);
  for (wire::Packet packet : {sack, write}) {
    packet.bth.dest_qpn = qps.qpn[1];
    d.peer = {.high = 9, .low = 9};
    give(packet);
  }
  EXPECT_EQ(count("transport.drop_unknown_peer"), 2u);
  d.peer = Pair::address(0, 0);
  d.intact = false;
  give(write);
  EXPECT_EQ(count("transport.drop_damaged"), 1u);
  d.intact = true;
  give({{.opcode = Opcode::kEndpointResponse, .dest_qpn = wire::kEndpointQpn, .psn = Psn(55)},
        wire::EndpointResponse{}});
  EXPECT_EQ(count("transport.drop_not_expected"), 1u);
  give({{.opcode = Opcode::kEndpointRequest, .dest_qpn = 3}, wire::EndpointRequest{}});
  EXPECT_EQ(count("transport.drop_bad_header"), 1u);
  d.header = ConstBytes(bytes).first(5);
  e.on_datagrams(pair.now, {&d, 1});
  EXPECT_EQ(count("transport.drop_too_short"), 1u);
  bytes[0] = std::byte{0x01};
  d.header = ConstBytes(bytes);
  e.on_datagrams(pair.now, {&d, 1});
  EXPECT_EQ(count("transport.drop_bad_opcode"), 1u);
  ASSERT_TRUE(e.fail_qp(pair.now, qps.qpn[1]));
  wire::Packet late = sack;
  late.bth.dest_qpn = qps.qpn[1];
  give(late);
  EXPECT_EQ(count("transport.drop_qp_in_error"), 1u);
}

TEST(EndpointPort, PortThatIsDownBeforeTheFirstQpIsReportedAtConnect) {
  Pair pair;
  pair.set_port(1, 0, false);
  const auto qps = pair.connect();
  pair.run_for(Duration::us(50));
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), Ports{1});
  EXPECT_EQ(pair.counter(0, "transport.planes_condemned"), 0u);
}

TEST(EndpointPort, PortThatReturnsWhileThereIsNoQpIsReportedAtTheNextConnect) {
  Pair pair;
  const auto old = pair.connect();
  pair.set_port(1, 0, false);
  pair.run_for(Duration::us(50));
  for (int i = 0; i < Pair::kEnds; ++i) ASSERT_TRUE(pair.end(i).destroy_qp(pair.now, old.qpn[i]));
  pair.set_port(1, 0, true);
  pair.run_for(Duration::ms(1));
  const auto qps = pair.connect();
  pair.run_for(Duration::us(50));
  EXPECT_EQ(ports_used(pair, qps, 0, Duration::us(500)), (Ports{0, 1}));
}

}  // namespace
}  // namespace weft::transport
