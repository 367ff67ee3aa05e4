#include "engine/net_hello.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/psn.h"
#include "net/steering.h"
#include "os/address.h"
#include "os/interfaces.h"
#include "wire/packet.h"

namespace weft::engine {
namespace {

// "weft" in ASCII, then the version
constexpr std::uint64_t kMagic = 0x7765'6674'0000'0000 | kBenchVersion;

// --- are the two ends compatible? Errors: kInvalid with a one-line message ----------------------

Result<void> check_hosts(const Hello& ours, const Hello& theirs) {
  if (ours.host == 0 || theirs.host == 0 || ours.host == theirs.host) return {};
  const auto loops = [](const auto& ports) {
    return std::any_of(ports.begin(), ports.end(),
                       [](const world::Address& a) { return base::is_loopback(a.ip()); });
  };
  if (loops(ours.ports) || loops(theirs.ports)) {
    return Error{ErrorKind::kInvalid,
                 "the two ends are on different hosts (or in different network namespaces), and "
                 "their planes on the loopback lead nowhere; name interfaces with --ifname, at "
                 "both ends (in a lab: --fabric or --planes)"};
  }
  const auto twice = std::find_first_of(
      ours.ports.begin(), ours.ports.end(), theirs.ports.begin(), theirs.ports.end(),
      [](const world::Address& a, const world::Address& b) { return a.ip() == b.ip(); });
  if (twice != ours.ports.end()) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("the two ends are on different hosts and both have the address {}; give "
                    "each planes of its own with --planes (in a lab: --fabric)",
                    os::text_of(twice->ip()))};
  }
  return {};
}

Result<void> check_planes(const Hello& ours, const Hello& theirs) {
  if (theirs.mtu != 0 && ours.mtu != 0 && theirs.mtu != ours.mtu) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("this end has an MTU of {}, the other of {}; give both the same --mtu",
                             ours.mtu, theirs.mtu)};
  }
  if (theirs.ports.size() != ours.ports.size()) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("this end has {} planes, the other {}; give both as many with --planes "
                    "or --ifname",
                    ours.ports.size(), theirs.ports.size())};
  }
  for (std::size_t p = 0; p < ours.ports.size(); ++p) {
    if (base::is_ipv4(ours.ports[p].ip()) == base::is_ipv4(theirs.ports[p].ip())) continue;
    return Error{
        ErrorKind::kInvalid,
        fmt::format("plane {}: this end has the address {}, the other {}; give both IPv4 or "
                    "both IPv6 with --planes",
                    p, os::text_of(ours.ports[p].ip()), os::text_of(theirs.ports[p].ip()))};
  }
  return {};
}

// An error that is true of one end only. `words` has two placeholders: first that end, then the
// other.
Error of_one_end(bool ours, fmt::format_string<const char*, const char*> words) {
  return {ErrorKind::kInvalid,
          fmt::format(words, ours ? "this end" : "the other end", ours ? "the other" : "this one")};
}

Result<void> check_evs(const Hello& ours, const Hello& theirs) {
  if (ours.uses_usids != theirs.uses_usids) {
    return of_one_end(ours.uses_usids,
                      "{} is steered through a fabric, {} is not; give both --fabric FILE, or "
                      "neither");
  }
  if (ours.uses_mrc_srv6 != theirs.uses_mrc_srv6) {
    return of_one_end(ours.uses_mrc_srv6,
                      "{} sends uSIDs in MRC's own form, {} does not; give both the same --srv6");
  }
  if (ours.has_flow_labels != theirs.has_flow_labels) {
    return of_one_end(ours.has_flow_labels,
                      "EVs of {} are ports and flow labels, those of {} are ports; give both "
                      "the same --ev-mode");
  }
  return {};
}

Result<void> check_icrcs(const Hello& ours, const Hello& theirs) {
  if (ours.peers_are_nics != theirs.peers_are_nics) {
    return of_one_end(ours.peers_are_nics,
                      "{} has peers = mrc, {} has not; give both devices the same (WEFT_PEERS)");
  }
  if (ours.icrc_covers_payload != theirs.icrc_covers_payload) {
    return of_one_end(ours.icrc_covers_payload,
                      "ICRCs of {} cover the payload, those of {} do not; give both devices the "
                      "same (WEFT_ICRC)");
  }
  return {};
}

Result<void> check_secrets(const Hello& ours, const Hello& theirs) {
  if (theirs.secret_fingerprint != ours.secret_fingerprint) {
    const bool here = ours.secret_fingerprint != 0, there = theirs.secret_fingerprint != 0;
    const char* const what = here && there ? "the two ends have different job secrets"
                             : here        ? "this end has a job secret, the other has none"
                                           : "the other end has a job secret, this one has none";
    return Error{ErrorKind::kInvalid, fmt::format("{}; give both the same --secret-file", what)};
  }
  return {};
}

}  // namespace

Result<void> check_fit(const Hello& ours, const Hello& theirs) {
  WEFT_CHECK(check_hosts(ours, theirs));
  WEFT_CHECK(check_planes(ours, theirs));
  WEFT_CHECK(check_evs(ours, theirs));
  // after check_evs(): MRC's own SRv6 form implies ICRCs over the payload
  WEFT_CHECK(check_icrcs(ours, theirs));
  return check_secrets(ours, theirs);
}

Result<void> check_mtu(std::uint32_t fits, std::uint32_t mtu_set) {
  if (fits != 1024 && fits != 2048 && fits != 4096) {
    return Error{ErrorKind::kInvalid,
                 "not even a payload of 1024 fits the planes between the two ends; raise their MTU "
                 "(`weft doctor` has that of this host's, `tracepath` what is between)"};
  }
  if (mtu_set != 0 && fits < mtu_set) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("--mtu {} does not fit the planes between the two ends, {} does; leave "
                    "--mtu out, or raise their MTU (`weft doctor` has that of this host's, "
                    "`tracepath` what is between)",
                    mtu_set, fits)};
  }
  return {};
}

// Byte offsets of the fields of a Hello.
namespace hello_at {
constexpr std::size_t kMtu = 8, kQpn = 12, kFirstPsn = 16, kPortCount = 20, kFlags = 24,
                      kFingerprint = 28, kIncarnation = 32, kHost = 40, kPorts = 48, kPortSize = 18;
static_assert(kPorts + world::kPortsMax * kPortSize == Hello::kSize);
}  // namespace hello_at

std::array<std::byte, Hello::kSize> Hello::to_bytes() const {
  std::array<std::byte, kSize> bytes{};
  const Bytes out(bytes);
  base::store64(out, 0, kMagic);
  base::store32(out, hello_at::kMtu, mtu);
  base::store32(out, hello_at::kQpn, qpn);
  base::store32(out, hello_at::kFirstPsn, first_psn);
  base::store32(out, hello_at::kPortCount, static_cast<std::uint32_t>(ports.size()));
  base::store32(out, hello_at::kFlags,
                (shared_memory ? 1u : 0u) | (uses_mrc_srv6 ? 2u : 0u) | (peers_are_nics ? 4u : 0u) |
                    (icrc_covers_payload ? 8u : 0u) | (uses_usids ? 16u : 0u) |
                    (has_flow_labels ? 32u : 0u));
  base::store32(out, hello_at::kFingerprint, secret_fingerprint);
  base::store64(out, hello_at::kIncarnation, incarnation);
  base::store64(out, hello_at::kHost, host);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::size_t at = hello_at::kPorts + hello_at::kPortSize * i;
    base::store_ipv6(out, at, ports[i].ip());
    base::store16(out, at + 16, ports[i].process);
  }
  return bytes;
}

Result<Hello> Hello::from_bytes(std::span<const std::byte, kSize> bytes) {
  const ConstBytes in(bytes);
  if (base::load64(in, 0) >> 32 != kMagic >> 32)
    return Error{ErrorKind::kInvalid, "what answered there is not weft"};
  if (base::load64(in, 0) != kMagic) {
    return Error{ErrorKind::kInvalid,
                 "the other end speaks another version; install the same weft on both"};
  }
  const std::uint32_t flags = base::load32(in, hello_at::kFlags);
  Hello hello;
  hello.mtu = base::load32(in, hello_at::kMtu);
  hello.qpn = base::load32(in, hello_at::kQpn) & wire::kQpnMask;
  hello.first_psn = base::load32(in, hello_at::kFirstPsn) & Psn::kMask;
  hello.secret_fingerprint = base::load32(in, hello_at::kFingerprint);
  hello.incarnation = base::load64(in, hello_at::kIncarnation);
  hello.host = base::load64(in, hello_at::kHost);
  hello.shared_memory = (flags & 1) != 0;
  hello.uses_mrc_srv6 = (flags & 2) != 0;
  hello.peers_are_nics = (flags & 4) != 0;
  hello.icrc_covers_payload = (flags & 8) != 0;
  hello.uses_usids = (flags & 16) != 0;
  hello.has_flow_labels = (flags & 32) != 0;
  const std::uint32_t count = base::load32(in, hello_at::kPortCount);
  if (count == 0 || count > world::kPortsMax)
    return Error{ErrorKind::kInvalid, "the other end names no planes, or too many"};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = hello_at::kPorts + hello_at::kPortSize * i;
    hello.ports.push_back(world::Address::of(base::load_ipv6(in, at), base::load16(in, at + 16)));
    if (hello.ports.back().process >= wire::kProcessesMax)
      return Error{ErrorKind::kInvalid, "the other end names a process slot that cannot be"};
  }
  return hello;
}

std::array<std::byte, RegionHello::kSize> RegionHello::to_bytes() const {
  std::array<std::byte, kSize> bytes{};
  const Bytes out(bytes);
  base::store64(out, 0, at);
  base::store64(out, 8, size);
  base::store32(out, 16, rkey);
  base::store32(out, 20, static_cast<std::uint32_t>(descriptor));
  base::store64(out, 24, host);
  base::store64(out, 32, process);
  base::store64(out, 40, inode);
  return bytes;
}

Result<RegionHello> RegionHello::from_bytes(ConstBytes in) {
  if (in.size() != kSize) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("a region's description has {} bytes; expected {}", in.size(), kSize)};
  }
  return RegionHello{.at = base::load64(in, 0),
                     .size = base::load64(in, 8),
                     .rkey = base::load32(in, 16),
                     .descriptor = static_cast<std::int32_t>(base::load32(in, 20)),
                     .host = base::load64(in, 24),
                     .process = base::load64(in, 32),
                     .inode = base::load64(in, 40)};
}

}  // namespace weft::engine
