// PortQueue: one output port of a switch, with a data queue, a control queue of higher priority,
// ECN marking and trimming.
//
// A queue stores times, not packets. `data_free_at` is the time when the last admitted byte has
// left, so the backlog is a difference of times, and admit() returns at once when a packet leaves.
// A hop is therefore one event in the simulator, and the same arithmetic paces a real port.
//
// Control packets and trimmed headers have strict priority over data: they wait only for the packet
// being sent. They do not delay data that was admitted before them, whose departure is already
// scheduled; they delay data that is admitted later. The error of this model is small, because
// control packets are a few per cent of the bytes except under heavy trimming.
//
// The queue length at which trimming begins is drawn per packet from the last quarter of the queue.
// With a fixed length, synchronised senders would always win or always lose for milliseconds, which
// the jitter of real NICs prevents.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "base/rate.h"
#include "base/time.h"

namespace weft::switching {

// The parameters of all ports of one kind. Bytes are on the wire, framing included.
struct QueueParams {
  std::uint64_t data_bytes_max = 0;
  std::uint64_t control_bytes_max = 0;
  std::uint64_t ecn_bytes_min = 0, ecn_bytes_max = 0;  // backlog: marking begins; is certain
  std::uint32_t mtu_wire_size = 0;                     // size of a full packet
  bool ecn = true;
  bool trimming = true;
};

struct Arriving {
  std::uint32_t wire_size = 0;
  std::uint32_t trimmed_wire_size = 0;  // its size after trimming
  bool control = false;                 // true: a control packet or a trimmed header
  bool trimmable = false;
  bool ecn_capable = false;
};

enum class Fate : std::uint8_t { kQueued, kTrimmed, kDropped };

struct Admission {
  Fate fate = Fate::kQueued;
  bool marked = false;
  Time leaves_at;  // when its last byte leaves; not set if the packet is dropped
};

struct PortQueue {
  Time data_free_at, control_free_at;
  std::uint64_t ps_per_byte_q8 = 0;  // in units of 1/256 ps

  void set_rate(Rate rate) { ps_per_byte_q8 = 8'000'000'000'000ull * 256 / rate.bits_per_second(); }
  Duration time_for(std::uint64_t bytes) const {
    return Duration::ps(static_cast<std::int64_t>(bytes * ps_per_byte_q8 >> 8));
  }
  Duration data_backlog(Time now) const {
    return data_free_at > now ? data_free_at - now : Duration();
  }
  Duration control_backlog(Time now) const {
    return control_free_at > now ? control_free_at - now : Duration();
  }

  // Queues a packet, trims it or drops it. `limit`: the bound of the data queue in bytes, which a
  // shared buffer may lower. `prng` decides marks between the thresholds and where trimming begins.
  Admission admit(Time now, const Arriving& packet, const QueueParams& params, std::uint64_t limit,
                  Prng& prng);

 private:
  Time send_control(Time now, std::uint32_t size, const QueueParams& params);
};

inline Time PortQueue::send_control(Time now, std::uint32_t size, const QueueParams& params) {
  // The packet being sent is finished first. Data packets are assumed to be full and back to back,
  // so the packet being sent ends a multiple of the packet time before the last queued packet does.
  Time start = now;
  if (data_free_at > now) {
    const Duration packet = time_for(params.mtu_wire_size);
    start = now + Duration::ps((data_free_at - now).ps() % packet.ps());
  }
  if (control_free_at > start) start = control_free_at;
  const Duration length = time_for(size);
  control_free_at = start + length;
  data_free_at = (data_free_at > now ? data_free_at : now) + length;
  return control_free_at;
}

inline Admission PortQueue::admit(Time now, const Arriving& packet, const QueueParams& params,
                                  std::uint64_t limit, Prng& prng) {
  Admission result;
  if (packet.control) {
    if (control_backlog(now) > time_for(params.control_bytes_max)) {
      result.fate = Fate::kDropped;
      return result;
    }
    result.leaves_at = send_control(now, packet.wire_size, params);
    return result;
  }
  const Duration backlog = data_backlog(now);
  std::uint64_t bound = limit;
  if (params.trimming && packet.trimmable) bound -= (limit / 4) * (prng.next() >> 40) >> 24;
  if (backlog + time_for(packet.wire_size) > time_for(bound)) {
    if (!packet.trimmable || !params.trimming ||
        control_backlog(now) > time_for(params.control_bytes_max)) {
      result.fate = Fate::kDropped;
      return result;
    }
    result.fate = Fate::kTrimmed;
    result.leaves_at = send_control(now, packet.trimmed_wire_size, params);
    return result;
  }
  if (params.ecn && packet.ecn_capable) {
    const Duration low = time_for(params.ecn_bytes_min), high = time_for(params.ecn_bytes_max);
    if (backlog >= high) {
      result.marked = true;
    } else if (backlog > low) {
      // In nanoseconds the products do not overflow: 2^40 ns are 18 minutes.
      const auto share = static_cast<std::uint64_t>((backlog - low).ns());
      const auto whole = static_cast<std::uint64_t>((high - low).ns());
      result.marked = (prng.next() >> 40) * whole < share << 24;
    }
  }
  if (data_free_at < now) data_free_at = now;
  // Data waits for control packets that have not left yet.
  if (control_free_at > data_free_at) data_free_at = control_free_at;
  data_free_at += time_for(packet.wire_size);
  result.leaves_at = data_free_at;
  return result;
}

}  // namespace weft::switching
