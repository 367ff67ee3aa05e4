// Probes and port status updates: how the device answers packets without data, and how it reacts to
// a peer's port status.
#include <set>

#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

wire::Packet probe(const Duel& duel, std::uint16_t id) {
  return {.bth = {.opcode = wire::Opcode::kProbe, .dest_qpn = duel.end.qpn()},
          .body = wire::Probe{.probe_id = id, .sent = {0x6789}}};
}
bool answers(const ReceivedPacket& seen, std::uint16_t id) {
  const auto* const sack = seen.as<wire::Sack>();
  return sack != nullptr && sack->answers_probe && sack->probe_id == id;
}
ReceivedPacket send_probe(Duel& duel, std::uint16_t id, const Tester::SendOptions& how = {}) {
  duel.tester.send(probe(duel, id), {}, how);
  return duel.next_where("a SACK with pr = 1 and the probe's id",
                         [&](const ReceivedPacket& s) { return answers(s, id); });
}

void probe_is_answered(Session& session) {
  Duel duel(session);
  const ReceivedPacket seen = send_probe(duel, 0xbeef);
  equal_hex("destination: the requestor's QPN,", seen.bth().dest_qpn, Duel::kQpn);
  equal_hex("tx_timestamp reflected", seen.as<wire::Sack>()->echo.ticks, 0x6789);
  equal_hex("cack_psn: nothing received yet,", seen.as<wire::Sack>()->cack.value(),
            duel.psn(-1).value());
}
void answer_reports_state(Session& session) {
  Duel duel(session);
  for (const std::int32_t psn : {0, 2, 4}) duel.send({.psn = psn, .to = 64, .size = 16});
  duel.next_sack();
  const ReceivedPacket seen = send_probe(duel, 7);
  const auto& sack = *seen.as<wire::Sack>();
  equal_hex("cack_psn", sack.cack.value(), duel.psn(0).value());
  equal("ooo_count", sack.ooo_count, 2);
  equal("sack_offset: from the edge on,", sack.bitmap_offset, 1);
  equal_hex("sack_bitmap", sack.bitmap, 0b1010);
}
void answer_has_mark(Session& session) {
  Duel duel(session);
  const ReceivedPacket seen = send_probe(duel, 7, {.ecn = 3});
  equal("m of a marked probe: SKIP_ONCE,", static_cast<int>(seen.as<wire::Sack>()->mark), 1);
}
void probe_uses_no_psn(Session& session) {
  Duel duel(session);
  for (std::uint16_t id = 0; id < 5; ++id) send_probe(duel, static_cast<std::uint16_t>(100 + id));
  duel.expect_still_works(0);
}

// --- endpoint operations

wire::Packet endpoint_request(std::uint16_t id, wire::EndpointOp op, std::uint32_t ports) {
  return {.bth = {.opcode = wire::Opcode::kEndpointRequest,
                  .dest_qpn = wire::kEndpointQpn,
                  .psn = Psn(id)},
          .body = wire::EndpointRequest{.op = op, .port_status = ports, .sent = {0x2468}}};
}
ReceivedPacket send_endpoint_request(Duel& duel, std::uint16_t id, wire::EndpointOp op,
                                     std::uint32_t ports = 0) {
  duel.tester.send(endpoint_request(id, op, ports));
  return duel.next_where(
      "an endpoint response with the request's id", [&](const ReceivedPacket& s) {
        return s.as<wire::EndpointResponse>() != nullptr && (s.bth().psn.value() & 0xffff) == id;
      });
}

void ev_probe_is_answered(Session& session) {
  Duel duel(session);
  const ReceivedPacket seen = send_endpoint_request(duel, 0x42, wire::EndpointOp::kEvProbe);
  equal_hex("destination QPN", seen.bth().dest_qpn, wire::kEndpointQpn);
  equal_hex("tx_timestamp reflected", seen.as<wire::EndpointResponse>()->echo.ticks, 0x2468);
}
void repeated_ev_probe_is_answered(Session& session) {
  Duel duel(session);
  send_endpoint_request(duel, 1, wire::EndpointOp::kEvProbe);
  send_endpoint_request(duel, 1, wire::EndpointOp::kEvProbe);
}
void psu_answered(Session& session) {
  Duel duel(session);
  const std::uint32_t all = (2u << duel.tester.plane_count()) - 2;
  send_endpoint_request(duel, 0x43, wire::EndpointOp::kPortStatusUpdate, all);
}

// The peer reports that its last port cannot be reached: the device must send no data there, until
// the peer reports the port as usable again.
void psu_obeyed(Session& session) {
  Duel duel(session);
  const std::uint32_t ports = duel.tester.plane_count();
  if (ports < 2) skip("the tester sees one port of the device");
  const std::uint32_t all = (2u << ports) - 2;
  CorrectResponder receipt(duel);
  const auto planes_of = [&](std::uint64_t id) {
    duel.post(64 * duel.mtu_bytes(), id);
    const Psn last = Psn(duel.options.device_psn) + static_cast<std::int32_t>(id * 64 - 1);
    std::set<std::uint32_t> planes;
    while (receipt.cack() != last) {
      const ReceivedPacket seen = duel.next_where("a WRITE", is_write);
      if (receipt.take(seen)) planes.insert(seen.plane);
    }
    duel.transport_ack(last, static_cast<std::uint32_t>(id));
    completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, id);
    return planes;
  };
  send_endpoint_request(duel, 0x50, wire::EndpointOp::kPortStatusUpdate, all & ~(1u << ports));
  holds(planes_of(1).count(ports - 1) == 0, "no data on the port that the peer reports as down",
        "some of it");
  send_endpoint_request(duel, 0x51, wire::EndpointOp::kPortStatusUpdate, all);
  equal("ports used after it is back", planes_of(2).size(), std::size_t{ports});
}

// A port of the device is disabled: the device must send its peers an update with the remaining
// ports.
void psu_sent(Session& session) {
  Duel duel(session);
  const std::uint32_t ports = duel.tester.plane_count();
  if (ports < 2) skip("the tester sees one port of the device");
  duel.post(100);
  duel.accept(duel.next_write(), 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
  const auto set = [&](mrc_ctl_port_admin_state state) {
    mrc_ctl_port_attr attr{.port_admin_state = state};
    return duel.host.library.mrc_ctl_modify_port(
        duel.host.context, static_cast<std::uint8_t>(ports), &attr, MRC_CTL_PORT_ADMIN_STATE);
  };
  const int disabled = set(MRC_CTL_PORT_ADMIN_DISABLED);
  if (disabled == -1 && errno == EPERM) skip("changing ports needs CAP_NET_ADMIN");
  works("mrc_ctl_modify_port to DISABLED", disabled);
  const std::uint32_t left = ((2u << ports) - 2) & ~(1u << ports);
  try {
    duel.next_where(
        "a port status update with that port's bit clear", [&](const ReceivedPacket& s) {
          const auto* const request = s.as<wire::EndpointRequest>();
          return request != nullptr && request->op == wire::EndpointOp::kPortStatusUpdate &&
                 request->port_status == left;
        });
  } catch (...) {
    set(MRC_CTL_PORT_ADMIN_ENABLED);
    throw;
  }
  set(MRC_CTL_PORT_ADMIN_ENABLED);
}

#define WEFT_PROBE "MRC 7.4.6; 7.5.5, Tables 7-18 and 7-19 (PETH)"
#define WEFT_EP "MRC 7.4.7, 7.4.8; Tables 7-20 to 7-23 (ERTH, EETH)"
constexpr Test kTests[] = {
    {.id = "wire.probe.answered",
     .clause = WEFT_PROBE,
     .certainty = Certainty::kReaders,
     .what = "a reliability probe is answered with a SACK, pr = 1, its id and timestamp",
     .body = probe_is_answered},
    {.id = "wire.probe.reports",
     .clause = WEFT_PROBE,
     .certainty = Certainty::kReaders,
     .what = "the answer reports cumulative PSN, count, and bitmap from the cumulative PSN on",
     .body = answer_reports_state},
    {.id = "wire.probe.marked",
     .clause = WEFT_PROBE,
     .certainty = Certainty::kReaders,
     .what = "the answer to a CE-marked probe has m = 1",
     .body = answer_has_mark},
    {.id = "wire.probe.no-psn",
     .clause = WEFT_PROBE,
     .certainty = Certainty::kReaders,
     .what = "probes consume no PSN",
     .body = probe_uses_no_psn},
    {.id = "wire.endpoint.ev-probe",
     .clause = WEFT_EP,
     .certainty = Certainty::kReaders,
     .what = "an EV probe is answered with its id, to QPN 2, and its timestamp",
     .body = ev_probe_is_answered},
    {.id = "wire.endpoint.twice",
     .clause = WEFT_EP,
     .certainty = Certainty::kOurs,
     .what = "a repeated EV probe is answered again",
     .body = repeated_ev_probe_is_answered},
    {.id = "wire.endpoint.psu",
     .clause = WEFT_EP,
     .certainty = Certainty::kReaders,
     .what = "a port status update of a peer is answered",
     .body = psu_answered},
    {.id = "wire.endpoint.psu-obeyed",
     .clause = WEFT_EP,
     .certainty = Certainty::kReaders,
     .what = "no data goes to a port that the peer reports as down, until it is back",
     .body = psu_obeyed},
    {.id = "wire.endpoint.psu-sent",
     .clause = WEFT_EP,
     .certainty = Certainty::kReaders,
     .what = "when a port is disabled, the device tells its peers the remaining ports",
     .body = psu_sent},
};

}  // namespace

std::span<const Test> wire_probe_tests() { return kTests; }

}  // namespace weft::conformance
