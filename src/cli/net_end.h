// NetEnd: one end of connections over the real network: a world of sockets, an endpoint, registered
// memory, and what the two ends tell each other before they can talk.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/host_memory.h"
#include "net/udp_world.h"
#include "transport/endpoint.h"

namespace weft::cli {

struct NetOptions {
  net::UdpWorldConfig world{};
  std::uint32_t mtu = 0;     // payload of a packet; 0: the largest that fits
  std::uint32_t burst = 15;  // packets of one EV in one system call
  std::uint32_t qps_max = 16;
};

// One QP, as its peer must know it. Sent over a stream, out of band.
struct Hello {
  std::uint32_t mtu = 0;  // said outright; 0: what fits
  std::uint32_t qpn = 0, first_psn = 0, rkey = 0;
  std::uint64_t region_at = 0, region_size = 0;
  std::uint32_t secret_fingerprint = 0;  // 0: packets in clear
  std::uint64_t incarnation = 0;         // of the process
  std::uint64_t host = 0;                // net::host_identity()
  bool shared_memory = false;            // it would use it, if we are on one host
  bool encapsulates = false;             // MRC's own SRv6 form
  bool steered = false;                  // by a fabric's uSIDs, in whichever form
  bool as_nic = false;                   // a device whose peers are not Weft (`peers = mrc`)
  bool whole_icrc = false;               // over the payload too (`icrc = full`)
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

class NetEnd {
 public:
  static Result<std::unique_ptr<NetEnd>> open(const NetOptions& options);

  net::UdpWorld& world() { return *world_; }
  transport::Endpoint& endpoint() { return *endpoint_; }

  // A QP and what to tell the peer of it: `region` is what the peer may write to.
  Result<Hello> create_qp(std::span<std::byte> region);
  // What this end can do towards that peer: it is reached over shared memory where both want to and
  // may. Errors: kInvalid when the two ends do not fit, in one line.
  Result<Offer> offer(const Hello& peer);
  // What both can do.
  static Offer agree(const Offer& ours, const Offer& theirs);
  // What carries a QP.
  enum class Carrier : std::uint8_t { kPlanes, kSharedMemory };
  // As the two ends agreed. REQUIRES that this end offered as much. Errors: kInvalid where no payload
  // fits, or not the one that was said outright.
  Result<Carrier> connect(transport::Qpn qpn, const Hello& peer, const Offer& agreed);

 private:
  explicit NetEnd(const NetOptions& options) : options_(options) {}
  Hello hello() const;
  bool shares_memory() const { return world_->port_count() > world_->addresses().size(); }

  NetOptions options_;
  std::unique_ptr<net::UdpWorld> world_;
  std::unique_ptr<net::HostMemory> memory_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  Prng prng_{0};
};

}  // namespace weft::cli
