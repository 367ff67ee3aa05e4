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

constexpr std::uint64_t kMagic = 0x7765'6674'0000'0000 | kBenchVersion;  // "weft"

// --- do two ends fit? Errors: kInvalid, in one line ---------------------------------------------

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

// `words` has two places: first the end for which it is true, then the other end.
Error of_one_end(bool ours, fmt::format_string<const char*, const char*> words) {
  return {ErrorKind::kInvalid,
          fmt::format(words, ours ? "this end" : "the other end", ours ? "the other" : "this one")};
}

Result<void> check_evs(const Hello& ours, const Hello& theirs) {
  if (ours.steered != theirs.steered) {
    return of_one_end(ours.steered,
                      "{} is steered through a fabric, {} is not; give both --fabric FILE, or "
                      "neither");
  }
  if (ours.encapsulates != theirs.encapsulates) {
    return of_one_end(ours.encapsulates,
                      "{} sends uSIDs in MRC's own form, {} does not; give both the same --srv6");
  }
  if (ours.labelled != theirs.labelled) {
    return of_one_end(ours.labelled,
                      "EVs of {} are ports and flow labels, those of {} are ports; give both "
                      "the same --ev-mode");
  }
  return {};
}

Result<void> check_icrcs(const Hello& ours, const Hello& theirs) {
  if (ours.as_nic != theirs.as_nic) {
    return of_one_end(ours.as_nic,
                      "{} has peers = mrc, {} has not; give both devices the same (WEFT_PEERS)");
  }
  if (ours.whole_icrc != theirs.whole_icrc) {
    return of_one_end(ours.whole_icrc,
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
  WEFT_CHECK(check_icrcs(ours, theirs));  // after SRv6: MRC's own form implies whole ICRCs
  return check_secrets(ours, theirs);
}

Result<void> check_mtu(const Offer& agreed, std::uint32_t said) {
  if (agreed.mtu != 1024 && agreed.mtu != 2048 && agreed.mtu != 4096) {
    return Error{ErrorKind::kInvalid,
                 "not even a payload of 1024 fits the planes between the two ends; raise their MTU "
                 "(`weft doctor` has that of this host's, `tracepath` what is between)"};
  }
  if (said != 0 && agreed.mtu < said) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("--mtu {} does not fit the planes between the two ends, {} does; leave "
                    "--mtu out, or raise their MTU (`weft doctor` has that of this host's, "
                    "`tracepath` what is between)",
                    said, agreed.mtu)};
  }
  return {};
}

std::array<std::byte, Hello::kSize> Hello::to_bytes() const {
  std::array<std::byte, kSize> bytes{};
  const Bytes out(bytes);
  base::store64(out, 0, kMagic);
  base::store32(out, 8, mtu);
  base::store32(out, 12, qpn);
  base::store32(out, 16, first_psn);
  base::store32(out, 20, rkey);
  base::store64(out, 24, region_at);
  base::store64(out, 32, region_size);
  base::store32(out, 40, static_cast<std::uint32_t>(ports.size()));
  base::store32(out, 44, secret_fingerprint);
  base::store64(out, 48, incarnation);
  base::store64(out, 56,
                (shared_memory ? 1u : 0u) | (encapsulates ? 2u : 0u) | (as_nic ? 4u : 0u) |
                    (whole_icrc ? 8u : 0u) | (steered ? 16u : 0u) | (labelled ? 32u : 0u));
  base::store64(out, 64, host);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    base::store_ipv6(out, 72 + 18 * i, ports[i].ip());
    base::store16(out, 88 + 18 * i, ports[i].process);
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
  Hello hello;
  hello.mtu = base::load32(in, 8);
  hello.qpn = base::load32(in, 12) & wire::kQpnMask;
  hello.first_psn = base::load32(in, 16) & Psn::kMask;
  hello.rkey = base::load32(in, 20);
  hello.region_at = base::load64(in, 24);
  hello.region_size = base::load64(in, 32);
  hello.secret_fingerprint = base::load32(in, 44);
  hello.incarnation = base::load64(in, 48);
  hello.shared_memory = (base::load64(in, 56) & 1) != 0;
  hello.encapsulates = (base::load64(in, 56) & 2) != 0;
  hello.as_nic = (base::load64(in, 56) & 4) != 0;
  hello.whole_icrc = (base::load64(in, 56) & 8) != 0;
  hello.steered = (base::load64(in, 56) & 16) != 0;
  hello.labelled = (base::load64(in, 56) & 32) != 0;
  hello.host = base::load64(in, 64);
  const std::uint32_t count = base::load32(in, 40);
  if (count == 0 || count > world::kPortsMax)
    return Error{ErrorKind::kInvalid, "the other end names no planes, or too many"};
  for (std::size_t i = 0; i < count; ++i) {
    hello.ports.push_back(
        world::Address::of(base::load_ipv6(in, 72 + 18 * i), base::load16(in, 88 + 18 * i)));
    if (hello.ports.back().process >= wire::kProcessesMax)
      return Error{ErrorKind::kInvalid, "the other end names a process slot that cannot be"};
  }
  return hello;
}

std::array<std::byte, Offer::kSize> Offer::to_bytes() const {
  std::array<std::byte, kSize> bytes{};
  base::store32(Bytes(bytes), 0, shared_memory ? 1 : 0);
  base::store32(Bytes(bytes), 4, mtu);
  return bytes;
}

Offer Offer::from_bytes(std::span<const std::byte, kSize> bytes) {
  const ConstBytes in(bytes);
  return {.shared_memory = (base::load32(in, 0) & 1) != 0, .mtu = base::load32(in, 4)};
}

}  // namespace weft::engine
