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

CopyWay other(CopyWay way) {
  return way == CopyWay::kThroughCaches ? CopyWay::kPastCaches : CopyWay::kThroughCaches;
}

}  // namespace

void copy_bulk(CopyWay way, std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__SSE2__)
  if (way == CopyWay::kPastCaches) {
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(to) % kLine;
    std::memcpy(to, from, before);
    to += before;
    from += before;
    size -= before;
  }
  const std::size_t lines = size / kLine * kLine;
  if (way == CopyWay::kPastCaches) {
    for (std::size_t at = 0; at < lines; at += kLine) past_caches(to + at, from + at);
    _mm_sfence();
  } else {
    for (std::size_t at = 0; at < lines; at += kLine) through_caches(to + at, from + at);
  }
  std::memcpy(to + lines, from + lines, size - lines);
#else
  (void)way;  // without SSE2 both routines are memcpy
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

// Moves began_ later by the pause since the last call: the time that copying cannot explain. Copies
// are faster than 2 GB/s, and waiting for half a ring (1 MiB in all) takes no longer than kMoment.
void CopyChoice::leave_out_pauses(Time now, std::uint64_t bytes) {
  constexpr Duration kMoment = Duration::us(250);
  constexpr std::int64_t kSlowestPs = 500;  // per byte
  if (bytes == looked_at_) return;
  const Duration most =
      kMoment + Duration::ps(kSlowestPs * static_cast<std::int64_t>(bytes - looked_at_));
  if (const Duration passed = now - looked_; passed > most) began_ += passed - most;
  looked_ = now;
  looked_at_ = bytes;
}

void CopyChoice::look(Time now, std::uint64_t bytes) {
  leave_out_pauses(now, bytes);
  const std::uint64_t copied = bytes - began_at_;
  if (copied < length()) return;
  const double ps_per_byte = static_cast<double>((now - began_).ps()) / static_cast<double>(copied);
  began_ = now;
  began_at_ = bytes;
  switch (phase_) {
    case Phase::kStay:
    case Phase::kSettles:
      phase_ = Phase::kTimed;
      return;
    case Phase::kTimed:
      ours_ += ps_per_byte;
      way_ = other(way_);
      phase_ = Phase::kOtherSettles;
      return;
    case Phase::kOtherSettles:
      phase_ = Phase::kOtherTimed;
      return;
    case Phase::kOtherTimed:
      theirs_ += ps_per_byte;
      judge();
      return;
  }
}

void CopyChoice::judge() {
  // The other routine is taken only if it is clearly faster (8 %). If it is not faster at all in
  // its first turn, the trial ends at once.
  constexpr double kAtAll = 0.97, kClearly = 0.92;
  if (theirs_ < kAtAll * ours_ && ++turns_ < kTurns) {
    way_ = other(way_);
    phase_ = Phase::kSettles;
    return;
  }
  if (theirs_ < kClearly * ours_) {
    stay_ = stay_min_;
  } else {
    way_ = other(way_);
    stay_ = std::min(2 * stay_, kStayMax);
  }
  ours_ = theirs_ = 0;
  turns_ = 0;
  phase_ = Phase::kStay;
}

}  // namespace weft::net
