// Messages that two ends of the real network exchange over a stream before they connect, and the
// check whether the ends fit. Values and bytes.
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

// The version of the messages between two ends of `weft bench write`; every change of them raises
// it.
inline constexpr std::uint32_t kBenchVersion = 7;

// All that a peer must know of one QP. Sent over a stream, out of band.
struct Hello {
  std::uint32_t mtu = 0;  // as set; 0: the largest that fits
  std::uint32_t qpn = 0, first_psn = 0;
  std::uint32_t secret_fingerprint = 0;  // 0: packets in clear
  std::uint64_t incarnation = 0;         // of the process
  std::uint64_t host = 0;                // os::host_identity()
  bool shared_memory = false;            // it can use shared memory if both ends are on one host
  bool encapsulates = false;             // MRC's own SRv6 form
  bool uses_usids = false;               // its packets follow a fabric's uSIDs, in either SRv6 form
  bool peers_are_nics = false;           // a device whose peers are not Weft (`peers = mrc`)
  bool whole_icrc = false;               // the ICRC covers the payload too (`icrc = full`)
  bool labelled = false;                 // EVs are ports and flow labels (`ev_mode = stev`)
  std::vector<world::Address> ports;     // one in each plane

  static constexpr std::size_t kSize = 48 + world::kPortsMax * 18;
  std::array<std::byte, kSize> to_bytes() const;
  // Errors: kInvalid with what is wrong, in one line.
  static Result<Hello> from_bytes(std::span<const std::byte, kSize> bytes);
};

// Errors: kInvalid in one line, if the two ends do not fit.
Result<void> check_fit(const Hello& ours, const Hello& theirs);

// All that a peer must know of a region of memory.
struct RegionHello {
  std::uint64_t at = 0, size = 0;
  std::uint32_t rkey = 0;
  // The memfd behind it, as other processes of this host find it; no descriptor: it cannot be mapped.
  std::int32_t descriptor = -1;
  std::uint64_t host = 0, process = 0, inode = 0;

  static constexpr std::size_t kSize = 48;
  std::array<std::byte, kSize> to_bytes() const;
  // Errors: kInvalid for another size; any bytes of that size are a region.
  static Result<RegionHello> from_bytes(ConstBytes bytes);
};

// `fits`: the payload of a packet that fits the planes between two ends. `said`: the MTU that one of
// them has set; 0 if neither has. Errors: kInvalid if no payload fits, or not the MTU that was set.
Result<void> check_mtu(std::uint32_t fits, std::uint32_t said);

}  // namespace weft::engine
