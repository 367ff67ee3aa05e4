// What two ends of the real network tell each other before they can talk, over a stream, and whether
// they fit. Values and bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "world/world.h"

namespace weft::engine {

// Of what two ends of `weft bench write` tell each other; raised with every change of it.
inline constexpr std::uint32_t kBenchVersion = 6;

// One QP, as its peer must know it. Sent over a stream, out of band.
struct Hello {
  std::uint32_t mtu = 0;  // said outright; 0: what fits
  std::uint32_t qpn = 0, first_psn = 0, rkey = 0;
  std::uint64_t region_at = 0, region_size = 0;
  std::uint32_t secret_fingerprint = 0;  // 0: packets in clear
  std::uint64_t incarnation = 0;         // of the process
  std::uint64_t host = 0;                // os::host_identity()
  bool shared_memory = false;            // it would use it, if we are on one host
  bool encapsulates = false;             // MRC's own SRv6 form
  bool steered = false;                  // by a fabric's uSIDs, in whichever form
  bool as_nic = false;                   // a device whose peers are not Weft (`peers = mrc`)
  bool whole_icrc = false;               // over the payload too (`icrc = full`)
  bool labelled = false;                 // EVs are ports and flow labels (`ev_mode = stev`)
  std::vector<world::Address> ports;     // one a plane

  static constexpr std::size_t kSize = 8 + 4 * 4 + 2 * 8 + 8 + 8 + 8 + 8 + world::kPortsMax * 18;
  std::array<std::byte, kSize> to_bytes() const;
  // Errors: kInvalid with what is wrong, in one line.
  static Result<Hello> from_bytes(std::span<const std::byte, kSize> bytes);
};

// Errors: kInvalid when the two ends do not fit, in one line.
Result<void> check_fit(const Hello& ours, const Hello& theirs);

// What an end can do towards a peer, once it has its hello. One end proposes, the other answers with
// what both can do, and the answer decides: each alone cannot know, as shared memory may be another
// user's or switched off on one side only.
struct Offer {
  bool shared_memory = false;
  std::uint32_t mtu =
      0;  // payload of a packet over the planes: the largest that fits, 0 if none does

  static constexpr std::size_t kSize = 8;
  std::array<std::byte, kSize> to_bytes() const;
  // Any bytes are an offer.
  static Offer from_bytes(std::span<const std::byte, kSize> bytes);
};

// `said`: outright, by one of the ends; 0: by neither. Errors: kInvalid where no payload fits, or
// not the one that was said.
Result<void> check_mtu(const Offer& agreed, std::uint32_t said);

}  // namespace weft::engine
