// Many packets: spreading over paths, numbers that wrap or cross messages, and window limits.
#include <map>
#include <set>

#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

// Receives `count` packets and acknowledges each on arrival. Returns the packets in order of
// arrival.
std::vector<ReceivedPacket> receive_packets(Duel& duel, std::uint32_t count) {
  std::vector<ReceivedPacket> out;
  CorrectResponder receipt(duel);
  while (out.size() < count) {
    ReceivedPacket packet = duel.next_where("a WRITE", is_write);
    if (receipt.take(packet)) out.push_back(std::move(packet));
  }
  return out;
}

constexpr std::uint32_t kMany = 256;

void message_uses_several_evs(Session& session) {
  Duel duel(session);
  duel.post(kMany * duel.mtu_bytes());
  std::set<std::uint64_t> paths;
  for (const ReceivedPacket& seen : receive_packets(duel, kMany)) paths.insert(seen.path());
  holds(paths.size() >= 4, "packets of one message on 4 EVs at least", text_of_value(paths.size()));
}

void ports_share_packets(Session& session) {
  Duel duel(session);
  if (duel.tester.plane_count() < 2) skip("the tester sees one port of the device");
  duel.post(kMany * duel.mtu_bytes());
  std::map<std::uint32_t, std::uint32_t> by_plane;
  for (const ReceivedPacket& seen : receive_packets(duel, kMany)) ++by_plane[seen.plane];
  equal("ports used", by_plane.size(), std::size_t{duel.tester.plane_count()});
  for (const auto& [plane, packets] : by_plane) {
    const std::uint32_t share = kMany / duel.tester.plane_count();
    holds(packets >= share / 2 && packets <= 2 * share,
          fmt::format("about {} packets on each port", share),
          fmt::format("{} on port {}", packets, plane + 1));
  }
}

void psns_wrap(Session& session) {
  Duel duel(session, {.device_psn = 0xff'fffe});
  duel.post(5 * duel.mtu_bytes());
  const auto packets = receive_packets(duel, 5);
  std::set<std::uint32_t> psns;
  for (const ReceivedPacket& seen : packets) psns.insert(seen.bth().psn.value());
  const std::set<std::uint32_t> expected = {0xff'fffe, 0xff'ffff, 0, 1, 2};
  holds(psns == expected, "PSNs 0xfffffe, 0xffffff, 0, 1, 2", "others");
  duel.transport_ack(Psn(2), 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

template <ibv_mtu kMtu>
void message_is_cut_by_mtu(Session& session) {
  Duel duel(session, {.mtu = kMtu});
  duel.post(3 * duel.mtu_bytes() + 1);
  const auto packets = duel.message(4);
  equal("payload of the first", packets[0].payload.size(), std::size_t{duel.mtu_bytes()});
  equal("payload of the last", packets[3].payload.size(), 1u);
}

// Sends three messages; the second has an immediate.
void message_numbers_match(Session& session) {
  Duel duel(session);
  duel.post(10, 1);
  duel.post(10, 2, 5);
  duel.post(10, 3);
  duel.post(10, 4, 6);
  const auto packets = duel.message(4);
  const auto msn = [&](std::size_t i) { return packets[i].as<wire::Write>()->msn; };
  const auto rqmsn = [&](std::size_t i) { return packets[i].as<wire::Write>()->rqmsn; };
  for (std::size_t i = 1; i < 4; ++i)
    equal("msn: one more for each message,", msn(i), static_cast<std::uint16_t>(msn(0) + i));
  equal("rqmsn: one more for each immediate,", rqmsn(3), static_cast<std::uint16_t>(rqmsn(1) + 1));
}

// The window of the QP in PSNs: without acknowledgements the device must send nothing beyond it.
void nothing_beyond_window(Session& session) {
  Duel duel(session, {.timeout = 20, .mpr = 1, .end = {.bytes = 1 << 20}});
  duel.post(300 * duel.mtu_bytes());
  std::int32_t highest = 0;
  const auto until = Clock::now() + milliseconds(300);
  while (Clock::now() < until) {
    const auto seen = duel.tester.next(until);
    if (seen && is_write(*seen))
      highest = std::max(highest, seen->bth().psn.since(Psn(duel.options.device_psn)));
  }
  holds(highest < 128, "no PSN beyond the 128 of MPR 1",
        fmt::format("PSN {} of them", highest + 1));
  holds(highest > 0, "packets at all", "none");
}

// The window must move with the cumulative PSN.
void window_follows_cack(Session& session) {
  Duel duel(session, {.mpr = 1, .end = {.bytes = 1 << 20}});
  duel.post(300 * duel.mtu_bytes());
  const auto packets = receive_packets(duel, 300);
  duel.transport_ack(Psn(duel.options.device_psn) + 299, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

void immediates_in_flight(Session& session) {
  Duel duel(session, {.timeout = 20, .max_wimm = 2});
  for (std::uint64_t id = 1; id <= 6; ++id) duel.post(10, id, 7);
  std::set<std::uint32_t> seen;
  const auto until = Clock::now() + milliseconds(300);
  while (Clock::now() < until) {
    const auto packet = duel.tester.next(until);
    if (packet && is_write(*packet)) seen.insert(packet->bth().psn.value());
  }
  equal("immediates on the wire before the first is acknowledged", seen.size(), 2u);
}

void timestamps_count_128_ns(Session& session) {
  Duel duel(session);
  duel.post(10, 1);
  const ReceivedPacket first = duel.next_write();
  const auto& write = *first.as<wire::Write>();
  if (!write.has_timestamp) skip("the device sends no TSETH");
  if (write.timestamp_coarse) skip("the device's timestamps have a unit of its own (tsr = 1)");
  duel.accept(first, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
  const auto pause = milliseconds(3);
  const auto until = Clock::now() + pause;
  while (Clock::now() < until) {
  }
  duel.post(10, 2);
  const ReceivedPacket second = duel.next_write();
  const auto ticks =
      static_cast<std::uint16_t>(second.as<wire::Write>()->sent.ticks - write.sent.ticks);
  const double apart_ns = ticks * 128.0;
  const auto real_ns = static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(second.at - first.at).count());
  if (real_ns > 7e6) skip("the machine was busy: the 16 bits of the timestamp wrapped");
  holds(apart_ns > 2.5e6 && apart_ns < real_ns + 2e6, "timestamps that count 128 ns",
        fmt::format("{:.0f} us between packets {:.0f} us apart", apart_ns / 1e3, real_ns / 1e3));
}

void ports(Session& session) {
  Duel duel(session);
  duel.post(100);
  duel.next_write();  // arrives only at MRC's port: the tester has no other listening socket
  equal("the tester's UDP port", session.options().tester_port, 4791);
}

constexpr Test kTests[] = {
    {.id = "wire.ev.spray",
     .clause = "MRC 9.3.1; paper 2.1",
     .certainty = Certainty::kPaper,
     .what = "packets of one message are spread over EVs",
     .body = message_uses_several_evs},
    {.id = "wire.ev.planes",
     .clause = "MRC 9.3.2; paper 2.1",
     .certainty = Certainty::kPaper,
     .what = "all ports carry about the same number of packets",
     .body = ports_share_packets},
    {.id = "wire.udp.port",
     .clause = "MRC 7.5.5.2; RoCEv2",
     .certainty = Certainty::kOurs,
     .what = "packets go to UDP port 4791",
     .body = ports},
    {.id = "wire.psn.wrap",
     .clause = "MRC 6.2.2, 24-bit PSN",
     .certainty = Certainty::kReaders,
     .what = "PSNs continue from 0xFFFFFF to 0 inside a message, which completes",
     .body = psns_wrap},
    {.id = "wire.mtu.256",
     .clause = "mrc.h: IBV_QP_PATH_MTU",
     .what = "a path MTU of 256 cuts messages into 256 bytes",
     .body = message_is_cut_by_mtu<IBV_MTU_256>},
    {.id = "wire.mtu.2048",
     .clause = "mrc.h: IBV_QP_PATH_MTU",
     .what = "a path MTU of 2048 cuts messages into 2048 bytes",
     .body = message_is_cut_by_mtu<IBV_MTU_2048>},
    {.id = "wire.mtu.4096",
     .clause = "mrc.h: IBV_QP_PATH_MTU",
     .what = "a path MTU of 4096 cuts messages into 4096 bytes",
     .body = message_is_cut_by_mtu<IBV_MTU_4096>},
    {.id = "wire.meth.counts",
     .clause = "MRC 6.2.2, Tables 6-8 and 6-9 (METH)",
     .certainty = Certainty::kReaders,
     .what = "msn counts messages, rqmsn those with immediate",
     .body = message_numbers_match},
    {.id = "wire.window.mpr",
     .clause = "MRC 7.5.1, MPR window",
     .certainty = Certainty::kReaders,
     .what = "with MPR 1 no PSN is sent 128 or more above the cumulative PSN",
     .body = nothing_beyond_window},
    {.id = "wire.window.moves",
     .clause = "MRC 7.5.1, MPR window",
     .certainty = Certainty::kReaders,
     .what = "with MPR 1 a message of 300 packets completes as it is acknowledged",
     .body = window_follows_cack},
    {.id = "wire.window.wimm",
     .clause = "mrc.h: MRC_QP_MAX_WIMM",
     .what = "no more immediates are in flight than max_wimm",
     .body = immediates_in_flight},
    {.id = "wire.tseth.unit",
     .clause = "MRC 6.2.2, Tables 6-6 and 6-7 (TSETH)",
     .certainty = Certainty::kReaders,
     .what = "timestamps count 128 ns",
     .body = timestamps_count_128_ns},
};

}  // namespace

std::span<const Test> wire_stream_tests() { return kTests; }

}  // namespace weft::conformance
