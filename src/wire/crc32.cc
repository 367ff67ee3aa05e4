#include "wire/crc32.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::wire {

namespace {

constexpr std::uint32_t multiply_by_x(std::uint32_t value) {
  return value >> 1 ^ (value & 1 ? kCrc32Polynomial : 0);
}

// tables[k][b]: the register after byte b and k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t value = b;
    for (int bit = 0; bit < 8; ++bit) value = multiply_by_x(value);
    tables[0][b] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

#if defined(__x86_64__)

// x^n mod P, in the bit order that a carry-less multiplication of reflected values needs.
constexpr std::int64_t fold_by(int n) {
  std::uint32_t value = 0x8000'0000;
  for (int i = 0; i < n; ++i) value = multiply_by_x(value);
  return std::int64_t{value} << 1;
}
// The published constants for this polynomial: Gopal et al., "Fast CRC Computation ... Using
// PCLMULQDQ", Intel, 2009.
static_assert(fold_by(512 + 32) == 0x1'5444'2bd4 && fold_by(512 - 32) == 0x1'c6e4'1596);
static_assert(fold_by(128 + 32) == 0x1'7519'97d0 && fold_by(128 - 32) == 0x0'ccaa'009e);
static_assert(fold_by(64) == 0x1'63cd'6124);
constexpr std::int64_t kPolynomial33 = std::int64_t{kCrc32Polynomial} << 1 | 1;
// floor(x^64 / P), from the same paper.
constexpr std::int64_t kQuotient = 0x1'f701'1641;

[[gnu::target("pclmul,sse2")]] inline __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// Multiplies both halves of `value` by the powers of x in `by` (see fold_by), which shifts the
// value to the place of `next`, and adds `next`.
[[gnu::target("pclmul,sse2")]] inline __m128i fold(__m128i value, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Reduces 128 bits to the 32-bit register. The first multiplication leaves 96 bits, the second 64.
// A Barrett reduction (one multiplication by the quotient, one by the polynomial) does the rest.
[[gnu::target("pclmul,sse4.1")]] inline std::uint32_t reduce(__m128i value) {
  const __m128i by_16 = _mm_set_epi64x(fold_by(128 - 32), 0);
  const __m128i by_8 = _mm_set_epi64x(0, fold_by(64));
  const __m128i barrett = _mm_set_epi64x(kQuotient, kPolynomial33);
  const __m128i low32 = _mm_set_epi32(0, -1, 0, -1);
  value = _mm_xor_si128(_mm_clmulepi64_si128(value, by_16, 0x10), _mm_srli_si128(value, 8));
  value = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(value, low32), by_8, 0x00),
                        _mm_srli_si128(value, 4));
  __m128i times = _mm_clmulepi64_si128(_mm_and_si128(value, low32), barrett, 0x10);
  times = _mm_clmulepi64_si128(_mm_and_si128(times, low32), barrett, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(value, times), 1));
}

// Folds the `count` bytes (1 to 15) before `end` into `value`. The first `count` bytes of `value`
// are folded; its other bytes and the last `count` bytes form the new lane. REQUIRES at least 16
// bytes before `end`.
[[gnu::target("pclmul,sse4.1")]] inline __m128i fold_tail(__m128i value, __m128i by_16,
                                                          const std::byte* end,
                                                          std::ptrdiff_t count) {
  // A table of shuffle masks: 16 bytes read at offset 16 keep every byte in its place; each step
  // further moves the bytes down by one, each step back moves them up. 0x80 writes a zero.
  static constexpr std::array<std::byte, 48> kMoves = [] {
    std::array<std::byte, 48> moves{};
    moves.fill(std::byte{0x80});
    for (std::size_t i = 0; i < 16; ++i) moves[16 + i] = static_cast<std::byte>(i);
    return moves;
  }();
  const __m128i up = load(kMoves.data() + count), down = load(kMoves.data() + 16 + count);
  const __m128i left = _mm_blendv_epi8(_mm_shuffle_epi8(value, down), load(end - 16), down);
  return fold(_mm_shuffle_epi8(value, up), by_16, left);
}

// Folds four lanes of 16 bytes, 64 bytes per round, then folds them into one lane, which takes the
// remaining bytes. REQUIRES bytes.size() >= 16.
[[gnu::target("pclmul,sse4.1")]] std::uint32_t update_by_folding(std::uint32_t state,
                                                                 ConstBytes bytes) {
  const __m128i by_16 = _mm_set_epi64x(fold_by(128 - 32), fold_by(128 + 32));
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  __m128i a = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(state)));
  at += 16;
  if (end - at >= 48) {
    const __m128i by_64 = _mm_set_epi64x(fold_by(512 - 32), fold_by(512 + 32));
    __m128i b = load(at), c = load(at + 16), d = load(at + 32);
    for (at += 48; end - at >= 64; at += 64) {
      a = fold(a, by_64, load(at));
      b = fold(b, by_64, load(at + 16));
      c = fold(c, by_64, load(at + 32));
      d = fold(d, by_64, load(at + 48));
    }
    a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
  }
  for (; end - at >= 16; at += 16) a = fold(a, by_16, load(at));
  if (at != end) a = fold_tail(a, by_16, end, end - at);
  return reduce(a);
}

#endif

}  // namespace

std::uint32_t crc32_update_by_table(std::uint32_t state, ConstBytes bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint32_t low, high;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= state;
    state = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
            kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][high >> 8 & 0xff] ^
            kTables[1][high >> 16 & 0xff] ^ kTables[0][high >> 24];
  }
  for (; left > 0; ++at, --left) {
    state = state >> 8 ^ kTables[0][(state ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
  }
  return state;
}

std::uint32_t crc32_update(std::uint32_t state, ConstBytes bytes) {
#if defined(__x86_64__)
  static const bool folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (bytes.size() >= 16 && folds) return update_by_folding(state, bytes);
#endif
  return crc32_update_by_table(state, bytes);
}

}  // namespace weft::wire
