// EvProfile: the EVs that QPs of one profile spray over, as a value. It is computed from the
// request of a controller, which is checked first.
//
// explicit   the request lists the EVs; duplicates are allowed (they weight a path)
// generated  drawn within the ranges of the fields, no value twice, ports in turn
// automatic  random entropies for fabrics that hash, no value twice, equally many on every port
//
// The state of a profile in a device (INIT, OFFLINE, ONLINE) and of its EVs are kept elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "fabric/ev_format.h"

namespace weft::fabric {

inline constexpr std::uint32_t kEvCountMax = 65'536;

// The values are those of the API.
enum class EvMode : std::uint8_t { kAutomatic = 1, kExplicit = 2, kGenerated = 4 };

// An EV as the controller writes it.
struct ProfileEv {
  EvBytes value{};        // the compact EV
  std::uint8_t port = 0;  // port index, from 0
  friend auto operator<=>(const ProfileEv&, const ProfileEv&) = default;
};

struct EvProfileSpec {
  EvMode mode = EvMode::kAutomatic;
  EvFormat format{};  // automatic: only the mode is used, STEV (32-bit entropies) or UDP (16-bit)
  std::vector<EvField> fields{};  // explicit: empty means free_fields(format); automatic: empty
  std::uint32_t count = 0;        // 1..kEvCountMax
  std::uint32_t min_active = 0;   // at most count
  std::uint8_t port_mask = 1;     // bit p: port p may be used
  std::vector<ProfileEv> evs{};   // explicit: exactly `count` EVs; otherwise empty
};

class EvProfile {
 public:
  // The error says in one line what is invalid. Draws from `prng` only in generated and automatic
  // mode.
  static Result<EvProfile> make(EvProfileSpec spec, Prng& prng);

  EvMode mode() const { return mode_; }
  EvFormatMode format_mode() const { return format_mode_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(evs_.size()); }
  std::uint32_t min_active() const { return min_active_; }
  const std::vector<ProfileEv>& evs() const { return evs_; }
  // The wire bits of each EV, in the order of evs().
  const std::vector<EvBytes>& expanded() const { return expanded_; }
  // The EV for the transport: 32 bits that a peer can echo. STEV and UDP: the bits on the wire.
  // SRv6: the index, because switches consume the address. REQUIRES index < count().
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
