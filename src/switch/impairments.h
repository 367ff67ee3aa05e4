// Impairments: the effect of active faults on packets, on links and at receiving NICs.
//
// A caller asks only for links that it has marked as impaired, so that a healthy fabric pays
// nothing. The simulator and the software switch share this class, so that a fault means the same
// in both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "base/prng.h"
#include "base/time.h"
#include "fabric/fault.h"

namespace weft::switching {

// The part of a packet that a fault depends on.
struct Passing {
  std::uint32_t entropy = 0;
  ConstBytes header{};  // from the BTH on; may be bytes that are not an MRC packet
};

// The effect of all active faults on one packet at one place.
struct Harm {
  bool lost = false;
  bool corrupted = false;
  bool duplicated = false;
  Duration delayed;
};

class Impairments {
 public:
  explicit Impairments(Prng prng) : prng_(prng) {}

  // The most acknowledgements that one kFirstTransportAck or kFirstNak fault drops and remembers.
  // Later acknowledgements pass.
  static constexpr std::size_t kSeenMax = 1u << 20;

  // `place`: a link, kNicReceive or kAllLinks.
  void start(std::uint32_t id, std::uint32_t place, const fabric::Impairment& impairment);
  void end(std::uint32_t id);
  void end_all();
  static constexpr std::uint32_t kNicReceive = 0xffff'fffe;
  static constexpr std::uint32_t kAllLinks = 0xffff'fffd;

  bool on_nics() const { return nic_count_ > 0; }
  bool on_all_links() const { return all_count_ > 0; }
  bool on_link(fabric::LinkId link) const { return links_.contains(link); }
  const std::set<fabric::LinkId>& links() const {
    return links_;
  }  // with an impairment of their own
  bool any() const { return !active_.empty(); }

  Harm at_link(fabric::LinkId link, const Passing& packet);
  Harm at_nic(fabric::HostIndex host, const Passing& packet);

 private:
  struct Active {
    std::uint32_t id = 0;
    std::uint32_t place = 0;
    fabric::Impairment impairment;
    Prng prng;
    std::set<std::uint32_t> in_burst;             // places where packets are being lost in a burst
    std::set<std::array<std::uint32_t, 3>> seen;  // (place, QPN, PSN) of acknowledgements dropped
  };
  void apply(Active& active, std::uint32_t where, const Passing& packet, Harm& harm);
  void recount();

  Prng prng_;
  std::vector<Active> active_;
  std::set<fabric::LinkId> links_;
  std::uint32_t nic_count_ = 0, all_count_ = 0;
};

}  // namespace weft::switching
