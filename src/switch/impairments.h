// Impairments: what links and receiving NICs do to packets while a fault lasts.
//
// Looked up by link, and only for links that are marked as impaired: a healthy fabric pays nothing.
// The simulator and the software switch share it: what a fault means is said once.
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

// What of a packet a fault looks at.
struct Passing {
  std::uint32_t entropy = 0;
  ConstBytes header{};  // from the BTH on; bytes that are no MRC packet are no acknowledgement
};

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

  // First acknowledgements that are remembered, a fault; those that come later pass.
  static constexpr std::size_t kSeenMax = 1u << 20;

  // `place`: a link, or kNicReceive / kAllLinks below.
  void start(std::uint32_t id, std::uint32_t place, const fabric::Impairment& impairment);
  void end(std::uint32_t id);
  void end_all();
  static constexpr std::uint32_t kNicReceive = 0xffff'fffe;
  static constexpr std::uint32_t kAllLinks = 0xffff'fffd;

  bool on_nics() const { return nic_count_ > 0; }
  bool on_all_links() const { return all_count_ > 0; }
  bool on_link(fabric::LinkId link) const { return links_.contains(link); }
  bool any() const { return !active_.empty(); }

  Harm at_link(fabric::LinkId link, const Passing& packet);
  Harm at_nic(fabric::HostIndex host, const Passing& packet);

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
  void apply(Active& active, std::uint32_t where, const Passing& packet, Harm& harm);
  void recount();

  Prng prng_;
  std::vector<Active> active_;
  std::set<fabric::LinkId> links_;
  std::uint32_t nic_count_ = 0, all_count_ = 0;
};

}  // namespace weft::switching
