#include <algorithm>
#include <bit>

#include "judge/rules.h"

namespace weft::judge {
namespace {

constexpr std::uint32_t kMask24 = 0xff'ffff;

// PSNs received above `cack`.
PsnIndex received_above(const Qp& responder, PsnIndex cack) {
  return responder.received.first_missing() - (cack + 1) + responder.received.count_above();
}

void check_bitmap(const Qp& responder, const Place& place, const wire::Sack& sack, PsnIndex cack,
                  Complaints& complaints) {
  const PsnIndex base = cack + sack.bitmap_offset;
  const std::uint64_t invented = sack.bitmap & ~responder.received.bits_from(base);
  if (invented == 0) return;
  complaints.add(place, Rule::kAck, "a SACK reports PSN {}, which never arrived",
                 (sack.cack + (sack.bitmap_offset + std::countr_zero(invented))).value());
}

void check_counts(const Qp& responder, const Place& place, const wire::Sack& sack, PsnIndex cack,
                  Complaints& complaints) {
  const PsnIndex above = received_above(responder, cack);
  if (sack.ooo_count > above) {
    complaints.add(place, Rule::kAck, "a SACK counts {} PSNs above PSN {}, {} arrived",
                   sack.ooo_count, sack.cack.value(), above);
  }
  const std::uint64_t units = (responder.received_bytes + 255) / 256;
  const std::uint64_t short_by = (units - sack.rcvd_bytes_256) & kMask24;
  if (short_by >= kMask24 / 2) {
    complaints.add(place, Rule::kAck, "a SACK counts {} times 256 bytes received, {} arrived",
                   sack.rcvd_bytes_256, units & kMask24);
  }
}

}  // namespace

void check_sack(const Qp& responder, Time at, const wire::Sack& sack, Complaints& complaints) {
  const Place place = responder.place(at);
  const PsnIndex cack =
      index_of_psn(sack.cack, responder.rx_first, responder.received.first_missing());
  if (cack >= responder.received.first_missing()) {
    complaints.add(place, Rule::kAck, "a SACK acknowledges up to PSN {}, but PSN {} never arrived",
                   sack.cack.value(),
                   psn_of_index(responder.received.first_missing(), responder.rx_first).value());
    return;
  }
  check_bitmap(responder, place, sack, cack, complaints);
  check_counts(responder, place, sack, cack, complaints);
}

void check_transport_ack(const Qp& responder, Time at, const wire::Bth& bth,
                         const wire::TransportAck& ack, Complaints& complaints) {
  if (ack.syndrome != wire::AckSyndrome::kAck) return;
  const PsnIndex cumulative =
      index_of_psn(bth.psn, responder.rx_first, responder.received.first_missing());
  if (cumulative < responder.received.first_missing()) return;
  complaints.add(responder.place(at), Rule::kAck,
                 "a Transport ACK acknowledges up to PSN {}, but PSN {} never arrived",
                 bth.psn.value(),
                 psn_of_index(responder.received.first_missing(), responder.rx_first).value());
}

}  // namespace weft::judge
