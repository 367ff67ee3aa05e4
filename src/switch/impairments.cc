#include "switch/impairments.h"

#include <algorithm>

#include "wire/packet.h"

namespace weft::switching {

using fabric::ImpairmentKind;

void Impairments::start(std::uint32_t id, std::uint32_t place,
                        const fabric::Impairment& impairment) {
  // Each fault and place has its own random stream, so that its draws do not change those of
  // others.
  active_.push_back({.id = id,
                     .place = place,
                     .impairment = impairment,
                     .prng = prng_.fork("impairment", std::uint64_t{id} << 32 | place),
                     .in_burst = {},
                     .seen = {}});
  recount();
}

void Impairments::end(std::uint32_t id) {
  std::erase_if(active_, [id](const Active& a) { return a.id == id; });
  recount();
}

void Impairments::end_all() {
  active_.clear();
  recount();
}

void Impairments::recount() {
  links_.clear();
  nic_count_ = all_count_ = 0;
  for (const Active& a : active_) {
    if (a.place == kNicReceive) {
      ++nic_count_;
    } else if (a.place == kAllLinks) {
      ++all_count_;
    } else {
      links_.insert(a.place);
    }
  }
}

Harm Impairments::at_link(fabric::LinkId link, const Passing& packet) {
  Harm harm;
  for (Active& a : active_) {
    if (a.place == link || a.place == kAllLinks) apply(a, link, packet, harm);
  }
  return harm;
}

Harm Impairments::at_nic(fabric::HostIndex host, const Passing& packet) {
  Harm harm;
  for (Active& a : active_) {
    if (a.place == kNicReceive) apply(a, host, packet, harm);
  }
  return harm;
}

void Impairments::apply(Active& active, std::uint32_t where, const Passing& packet, Harm& harm) {
  const fabric::Impairment& i = active.impairment;
  switch (i.kind) {
    case ImpairmentKind::kLoss:
      harm.lost |= active.prng.chance(i.share_of_2_32);
      break;
    case ImpairmentKind::kBurstLoss: {
      // Gilbert-Elliott model: a burst ends with probability 1 / burst. The probability that a
      // burst begins is chosen so that `share` of all packets is lost.
      const std::uint64_t burst = std::max(i.burst, 1u);
      const std::uint64_t whole = std::uint64_t{1} << 32;
      const bool inside = active.in_burst.contains(where);
      if (inside) {
        harm.lost = true;
        if (active.prng.chance(whole / burst)) active.in_burst.erase(where);
      } else {
        const std::uint64_t begin =
            i.share_of_2_32 >= whole
                ? whole
                : static_cast<std::uint64_t>(static_cast<unsigned __int128>(i.share_of_2_32) *
                                             whole / (burst * (whole - i.share_of_2_32)));
        if (active.prng.chance(begin)) {
          harm.lost = true;
          if (!active.prng.chance(whole / burst)) active.in_burst.insert(where);
        }
      }
      break;
    }
    case ImpairmentKind::kReorder:
      if (active.prng.chance(i.share_of_2_32) && i.delay_max > Duration()) {
        harm.delayed += Duration::ps(static_cast<std::int64_t>(
            active.prng.next() % static_cast<std::uint64_t>(i.delay_max.ps())));
      }
      break;
    case ImpairmentKind::kDuplicate:
      harm.duplicated |= active.prng.chance(i.share_of_2_32);
      break;
    case ImpairmentKind::kCorrupt:
      harm.corrupted |= active.prng.chance(i.share_of_2_32);
      break;
    case ImpairmentKind::kEvLoss:
      if (std::find(i.entropies.begin(), i.entropies.end(), packet.entropy) != i.entropies.end() &&
          active.prng.chance(i.share_of_2_32)) {
        harm.lost = true;
      }
      break;
    case ImpairmentKind::kFirstTransportAck:
    case ImpairmentKind::kFirstNak: {
      const auto parsed = wire::parse(packet.header);
      if (!parsed) break;
      const auto* ack = std::get_if<wire::TransportAck>(&parsed->body);
      if (ack == nullptr) break;
      const bool nak = ack->syndrome != wire::AckSyndrome::kAck;
      if (nak != (i.kind == ImpairmentKind::kFirstNak)) break;
      if (active.seen.size() >= kSeenMax) break;
      if (active.seen.insert({where, parsed->bth.dest_qpn, parsed->bth.psn.value()}).second)
        harm.lost = true;
      break;
    }
  }
}

}  // namespace weft::switching
