#include "net/bulk_copy.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weft::net {
namespace {

#if defined(__SSE2__)

constexpr std::size_t kLine = 64;

const __m128i* vectors(const std::byte* at) { return reinterpret_cast<const __m128i*>(at); }
__m128i* vectors(std::byte* at) { return reinterpret_cast<__m128i*>(at); }

// Plain stores in place of memcpy: for such sizes glibc's memcpy is one `rep movsb`, whose stores
// bypass the caches on some processors. The compiler may turn a plain loop into the same
// instruction.
void through_caches(std::byte* to, const std::byte* from) {
  const __m128i a = _mm_loadu_si128(vectors(from)), b = _mm_loadu_si128(vectors(from) + 1);
  const __m128i c = _mm_loadu_si128(vectors(from) + 2), d = _mm_loadu_si128(vectors(from) + 3);
  _mm_storeu_si128(vectors(to), a);
  _mm_storeu_si128(vectors(to) + 1, b);
  _mm_storeu_si128(vectors(to) + 2, c);
  _mm_storeu_si128(vectors(to) + 3, d);
}

void past_caches(std::byte* to, const std::byte* from) {
  const __m128i a = _mm_loadu_si128(vectors(from)), b = _mm_loadu_si128(vectors(from) + 1);
  const __m128i c = _mm_loadu_si128(vectors(from) + 2), d = _mm_loadu_si128(vectors(from) + 3);
  _mm_stream_si128(vectors(to), a);
  _mm_stream_si128(vectors(to) + 1, b);
  _mm_stream_si128(vectors(to) + 2, c);
  _mm_stream_si128(vectors(to) + 3, d);
}

#endif

CopyRoutine other(CopyRoutine routine) {
  return routine == CopyRoutine::kThroughCaches ? CopyRoutine::kPastCaches
                                                : CopyRoutine::kThroughCaches;
}

}  // namespace

void copy_bulk(CopyRoutine routine, std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__SSE2__)
  if (routine == CopyRoutine::kPastCaches) {
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(to) % kLine;
    std::memcpy(to, from, before);
    to += before;
    from += before;
    size -= before;
  }
  const std::size_t lines = size / kLine * kLine;
  if (routine == CopyRoutine::kPastCaches) {
    for (std::size_t at = 0; at < lines; at += kLine) past_caches(to + at, from + at);
    _mm_sfence();
  } else {
    for (std::size_t at = 0; at < lines; at += kLine) through_caches(to + at, from + at);
  }
  std::memcpy(to + lines, from + lines, size - lines);
#else
  (void)routine;  // without SSE2 both routines are memcpy
  std::memcpy(to, from, size);
#endif
}

std::uint64_t CopyChoice::length() const {
  switch (phase_) {
    case Phase::kStay:
      return stay_;
    case Phase::kSettles:
    case Phase::kOtherSettles:
      return kSettle;
    case Phase::kTimed:
    case Phase::kOtherTimed:
      return kTimed;
  }
  return stay_;
}

// Moves phase_began_ later by the pause since the last call: the time that copying cannot explain. Copies
// are faster than 2 GB/s, and waiting for half a ring (1 MiB in all) takes no longer than kMoment.
void CopyChoice::leave_out_pauses(Time now, std::uint64_t bytes) {
  constexpr Duration kMoment = Duration::us(250);
  constexpr std::int64_t kSlowestPs = 500;  // per byte
  if (bytes == progress_bytes_) return;
  const Duration most =
      kMoment + Duration::ps(kSlowestPs * static_cast<std::int64_t>(bytes - progress_bytes_));
  if (const Duration passed = now - progress_time_; passed > most) phase_began_ += passed - most;
  progress_time_ = now;
  progress_bytes_ = bytes;
}

void CopyChoice::look(Time now, std::uint64_t bytes) {
  leave_out_pauses(now, bytes);
  const std::uint64_t copied = bytes - phase_began_bytes_;
  if (copied < length()) return;
  const double ps_per_byte =
      static_cast<double>((now - phase_began_).ps()) / static_cast<double>(copied);
  phase_began_ = now;
  phase_began_bytes_ = bytes;
  switch (phase_) {
    case Phase::kStay:
    case Phase::kSettles:
      phase_ = Phase::kTimed;
      return;
    case Phase::kTimed:
      current_cost_ += ps_per_byte;
      routine_ = other(routine_);
      phase_ = Phase::kOtherSettles;
      return;
    case Phase::kOtherSettles:
      phase_ = Phase::kOtherTimed;
      return;
    case Phase::kOtherTimed:
      other_cost_ += ps_per_byte;
      judge();
      return;
  }
}

void CopyChoice::judge() {
  // The other routine is taken only if it is clearly faster (8 %). If it is not faster at all in
  // its first turn, the trial ends at once.
  constexpr double kFasterAtAll = 0.97, kClearlyFaster = 0.92;
  if (other_cost_ < kFasterAtAll * current_cost_ && ++turns_ < kTurns) {
    routine_ = other(routine_);
    phase_ = Phase::kSettles;
    return;
  }
  if (other_cost_ < kClearlyFaster * current_cost_) {
    stay_ = stay_min_;
  } else {
    routine_ = other(routine_);
    stay_ = std::min(2 * stay_, kStayMax);
  }
  current_cost_ = other_cost_ = 0;
  turns_ = 0;
  phase_ = Phase::kStay;
}

}  // namespace weft::net
