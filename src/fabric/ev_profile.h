// EvProfile: the EVs that QPs of one profile spray over, as a value. What the controller asked for,
// checked and worked out.
//
// explicit   the EVs are given, duplicates allowed (they weight a path)
// generated  drawn within the fields' ranges, no value twice, ports in turn
// automatic  random entropies for fabrics that hash, no value twice, equally many on every port
//
// The states of a profile in a device (INIT, OFFLINE, ONLINE) and of its EVs are not here.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "fabric/ev_format.h"

namespace weft::fabric {

inline constexpr std::uint32_t kEvCountMax = 65'536;

// The values are the API's.
enum class EvMode : std::uint8_t { kAutomatic = 1, kExplicit = 2, kGenerated = 4 };

// An EV as the controller writes it. It is the same as another when value and port are.
struct ProfileEv {
  EvBytes value{};        // compact
  std::uint8_t port = 0;  // index, from 0
  friend auto operator<=>(const ProfileEv&, const ProfileEv&) = default;
};

struct EvProfileSpec {
  EvMode mode = EvMode::kAutomatic;
  EvFormat format{};  // automatic: only its mode counts, STEV (32-bit entropies) or UDP (16)
  std::vector<EvField> fields{};  // explicit: none means free_fields(format); automatic: none
  std::uint32_t count = 0;        // 1..kEvCountMax
  std::uint32_t min_active = 0;   // at most count
  std::uint8_t port_mask = 1;     // bit p: port p may be used
  std::vector<ProfileEv> evs{};   // explicit: exactly `count`; otherwise none
};

class EvProfile {
 public:
  // The error says in one line what cannot be. Draws from `prng` only in generated and automatic
  // mode.
  static Result<EvProfile> make(EvProfileSpec spec, Prng& prng);

  EvMode mode() const { return mode_; }
  EvFormatMode format_mode() const { return format_mode_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(evs_.size()); }
  std::uint32_t min_active() const { return min_active_; }
  const std::vector<ProfileEv>& evs() const { return evs_; }
  // The bits on the wire of each, in the same order.
  const std::vector<EvBytes>& expanded() const { return expanded_; }
  // As the transport uses it: 32 bits that a peer can echo. STEV and UDP: the bits on the wire;
  // SRv6: the index, since the address is consumed on the way. REQUIRES index < count().
  Ev ev(std::uint32_t index) const;

 private:
  EvProfile() = default;
  EvMode mode_ = EvMode::kAutomatic;
  EvFormatMode format_mode_ = EvFormatMode::kStev;
  std::uint32_t min_active_ = 0;
  std::vector<ProfileEv> evs_;
  std::vector<EvBytes> expanded_;
};

}  // namespace weft::fabric
