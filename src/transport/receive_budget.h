// ReceiveBudget: how many bytes each peer may have in flight to us.
//
// The buffer in which packets wait until we read them (a socket's) is often the smallest queue of
// the whole path, and no sender learns when it overflows. So the buffers of all ports are shared
// among the QPs that receive, and every SACK tells its requestor that QP's share. When a buffer
// overflows all the same, the SACKs of the next 2 ms report it: the missing packets were lost at
// this host, and no path is to blame.
//
// QPs are counted in epochs: a QP that received something in this epoch or the last has a share.
// Owned by the endpoint. In a world whose ports have no bounded buffers (the simulator) no budget
// is reported.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/assert.h"
#include "base/time.h"
#include "transport/config.h"
#include "world/world.h"

namespace weft::transport {

class ReceiveBudget {
 public:
  void on_port(Time now, PortIndex port, const world::PortState& state) {
    Port& p = ports_[port];
    const std::uint32_t share = state.singly ? kShareSingly : kShareInBursts;
    const std::uint32_t shared = state.up ? state.receive_bytes / 16 * share : 0;
    WEFT_ASSERT(total_ >= p.shared);  // total_ is the sum of what each port shares
    total_ += shared;
    total_ -= p.shared;
    p.shared = shared;
    if (state.overflows != p.overflows) overflow_until_ = now + kOverflowTold;
    p.overflows = state.overflows;
  }
  bool is_bounded() const { return total_ > 0; }

  // A QP received something. `last_epoch` is a member of the QP: the epoch in which it last
  // received.
  void on_receive(Time now, std::uint32_t& last_epoch) {
    if (now >= epoch_end_) {
      receiving_before_ = now >= epoch_end_ + kEpoch ? 0 : receiving_;
      receiving_ = 0;
      ++epoch_;
      epoch_end_ = now + kEpoch;
    }
    if (last_epoch == epoch_) return;
    last_epoch = epoch_;
    ++receiving_;
  }

  // The limit that a SACK reports now, with SACK.mpr in units of `unit_bytes`. REQUIRES
  // is_bounded().
  ReceiveLimit limit(Time now, std::uint32_t unit_bytes) const {
    WEFT_ASSERT(is_bounded());
    const std::uint32_t sharing = std::max({receiving_, receiving_before_, 1u});
    const std::uint64_t share = total_ / sharing;
    const bool overflow = now < overflow_until_;
    return {.mpr = static_cast<std::uint8_t>(
                std::clamp<std::uint64_t>(share / std::max(unit_bytes, 1u), 1, 255)),
            .cwnd_penalty = overflow ? kOverflowPenalty : std::uint8_t{0},
            .overflow = overflow};
  }

 private:
  static constexpr Duration kEpoch = Duration::ms(5);
  static constexpr Duration kOverflowTold = Duration::ms(2);
  static constexpr std::uint8_t kOverflowPenalty = 32;

  // Sixteenths of a buffer that are shared as bytes of packets: the kernel's bookkeeping takes room
  // too, and several senders may choose the same port (docs/decisions/0026).
  static constexpr std::uint32_t kShareInBursts = 9, kShareSingly = 6;

  struct Port {
    std::uint32_t shared = 0, overflows = 0;
  };
  std::array<Port, world::kPortsMax> ports_{};
  std::uint64_t total_ = 0;
  std::uint32_t epoch_ = 0, receiving_ = 0, receiving_before_ = 0;
  Time epoch_end_, overflow_until_;
};

}  // namespace weft::transport
