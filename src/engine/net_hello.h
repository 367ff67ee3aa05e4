// The messages that two ends on the real network exchange over a stream before they connect, and
// the check whether the two ends are compatible. Values and bytes only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "world/world.h"

namespace weft::engine {

// The version of all messages between two ends of `weft bench write`; each change of a message
// raises it.
inline constexpr std::uint32_t kBenchVersion = 7;

// Everything that a peer must know about one QP. Sent over a stream, not in MRC packets.
struct Hello {
  std::uint32_t mtu = 0;  // the MTU that the user set; 0: the largest that fits
  std::uint32_t qpn = 0, first_psn = 0;
  std::uint32_t secret_fingerprint = 0;  // 0: packets are not sealed
  std::uint64_t incarnation = 0;         // of this end's process
  std::uint64_t host = 0;                // os::host_identity()
  bool shared_memory = false;         // this end can use shared memory with a peer on the same host
  bool uses_mrc_srv6 = false;         // uses MRC's own SRv6 form
  bool uses_usids = false;            // packets follow a fabric's uSIDs, in either SRv6 form
  bool peers_are_nics = false;        // this end takes its peers for NICs, not Weft (`peers = mrc`)
  bool icrc_covers_payload = false;   // the ICRC also covers the payload (`icrc = full`)
  bool has_flow_labels = false;       // EVs are ports and flow labels (`ev_mode = stev`)
  std::vector<world::Address> ports;  // one address in each plane

  static constexpr std::size_t kSize = 48 + world::kPortsMax * 18;
  std::array<std::byte, kSize> to_bytes() const;
  // Errors: kInvalid, with a one-line message that says what is wrong.
  static Result<Hello> from_bytes(std::span<const std::byte, kSize> bytes);
};

// Errors: kInvalid with a one-line message, if the two ends are not compatible.
Result<void> check_fit(const Hello& ours, const Hello& theirs);

// Everything that a peer must know about a region of memory.
struct RegionHello {
  std::uint64_t at = 0, size = 0;
  std::uint32_t rkey = 0;
  // The region's memfd, as other processes of this host find it. -1: the region cannot be mapped.
  std::int32_t descriptor = -1;
  std::uint64_t host = 0, process = 0, inode = 0;

  static constexpr std::size_t kSize = 48;
  std::array<std::byte, kSize> to_bytes() const;
  // Errors: kInvalid if the size is not kSize. Any kSize bytes are a valid region.
  static Result<RegionHello> from_bytes(ConstBytes bytes);
};

// `fits`: the largest payload that the planes between the two ends carry. `mtu_set`: the MTU that an
// end has set; 0 if neither has. Errors: kInvalid if no payload fits, or the set MTU does not.
Result<void> check_mtu(std::uint32_t fits, std::uint32_t mtu_set);

}  // namespace weft::engine
