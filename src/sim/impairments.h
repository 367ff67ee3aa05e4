// Impairments: what links and receiving NICs do to packets while a fault lasts.
//
// Looked up by link, and only for links that are marked as impaired: a healthy fabric pays nothing.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "fabric/fault.h"
#include "sim/packet_pool.h"

namespace weft::sim {

// What happens to one packet at one place.
struct Harm {
  bool lost = false;
  bool corrupted = false;
  bool duplicated = false;
  Duration delayed;
};

class Impairments {
 public:
  explicit Impairments(Prng prng) : prng_(prng) {}

  // `place`: a link, or kNicReceive / kAllLinks below.
  void start(std::uint32_t id, std::uint32_t place, const fabric::Impairment& impairment);
  void end(std::uint32_t id);
  static constexpr std::uint32_t kNicReceive = 0xffff'fffe;
  static constexpr std::uint32_t kAllLinks = 0xffff'fffd;

  bool on_nics() const { return nic_count_ > 0; }
  bool on_all_links() const { return all_count_ > 0; }
  bool on_link(fabric::LinkId link) const { return links_.contains(link); }
  bool any() const { return !active_.empty(); }

  Harm at_link(fabric::LinkId link, const Packet& packet);
  Harm at_nic(fabric::HostIndex host, const Packet& packet);

 private:
  struct Active {
    std::uint32_t id = 0;
    std::uint32_t place = 0;
    fabric::Impairment impairment;
    Prng prng;
    std::set<std::uint32_t> in_burst;  // places where a burst is under way
    std::set<std::array<std::uint32_t, 3>>
        seen;  // (host, QPN, PSN) whose first acknowledgement was lost
  };
  void apply(Active& active, std::uint32_t where, const Packet& packet, Harm& harm);
  void recount();

  Prng prng_;
  std::vector<Active> active_;
  std::set<fabric::LinkId> links_;
  std::uint32_t nic_count_ = 0, all_count_ = 0;
};

}  // namespace weft::sim
