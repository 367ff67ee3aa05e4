// The bits of TraceRecord::flags by kind, as base/trace.h documents them.
#pragma once

#include "base/trace.h"

namespace weft::judge {

// Flags of kReceive.
inline constexpr std::uint8_t kFlagCe = 1, kFlagTrimmed = 2, kFlagDamaged = 4;
// Flags of kPost.
inline constexpr std::uint8_t kFlagWithImmediate = 1, kFlagSignalled = 2;
// Flags of kComplete.
inline constexpr std::uint8_t kFlagReceive = 1;

inline bool is_trimmed(const TraceRecord& received) { return (received.flags & kFlagTrimmed) != 0; }
inline bool is_damaged(const TraceRecord& received) { return (received.flags & kFlagDamaged) != 0; }

}  // namespace weft::judge
