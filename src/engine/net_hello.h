// Messages that two ends of the real network exchange over a stream before they connect, and the
// check whether the ends fit. Values and bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "world/world.h"

namespace weft::engine {

// The version of the messages between two ends of `weft bench write`; every change of them raises
// it.
inline constexpr std::uint32_t kBenchVersion = 6;

// All that a peer must know of one QP. Sent over a stream, out of band.
struct Hello {
  std::uint32_t mtu = 0;  // as set; 0: the largest that fits
  std::uint32_t qpn = 0, first_psn = 0, rkey = 0;
  std::uint64_t region_at = 0, region_size = 0;
  std::uint32_t secret_fingerprint = 0;  // 0: packets in clear
  std::uint64_t incarnation = 0;         // of the process
  std::uint64_t host = 0;                // os::host_identity()
  bool shared_memory = false;            // it can use shared memory if both ends are on one host
  bool encapsulates = false;             // MRC's own SRv6 form
  bool steered = false;                  // its packets follow a fabric's uSIDs, in either SRv6 form
  bool as_nic = false;                   // a device whose peers are not Weft (`peers = mrc`)
  bool whole_icrc = false;               // the ICRC covers the payload too (`icrc = full`)
  bool labelled = false;                 // EVs are ports and flow labels (`ev_mode = stev`)
  std::vector<world::Address> ports;     // one in each plane

  static constexpr std::size_t kSize = 8 + 4 * 4 + 2 * 8 + 8 + 8 + 8 + 8 + world::kPortsMax * 18;
  std::array<std::byte, kSize> to_bytes() const;
  // Errors: kInvalid with what is wrong, in one line.
  static Result<Hello> from_bytes(std::span<const std::byte, kSize> bytes);
};

// Errors: kInvalid in one line, if the two ends do not fit.
Result<void> check_fit(const Hello& ours, const Hello& theirs);

// The abilities of one end towards a peer, once it has the peer's Hello. One end proposes; the
// other answers with what both can do, and the answer decides. One end alone cannot know: shared
// memory may belong to another user, or be switched off on one side only.
struct Offer {
  bool shared_memory = false;
  std::uint32_t mtu =
      0;  // payload of a packet over the planes: the largest that fits, 0 if none does

  static constexpr std::size_t kSize = 8;
  std::array<std::byte, kSize> to_bytes() const;
  // Any bytes are a valid offer.
  static Offer from_bytes(std::span<const std::byte, kSize> bytes);
};

// `said`: the MTU that one of the ends has set; 0 if neither has. Errors: kInvalid if no payload
// fits, or not the MTU that was set.
Result<void> check_mtu(const Offer& agreed, std::uint32_t said);

}  // namespace weft::engine
