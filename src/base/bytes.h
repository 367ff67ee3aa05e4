// Byte spans, and the big-endian loads and stores that convert between bytes and integers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weft {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

namespace base {

static_assert(std::endian::native == std::endian::little, "the loads and stores below swap bytes");

// REQUIRES at + size of the value <= in.size(). Not checked here: callers check once per header.
inline std::uint8_t load8(ConstBytes in, std::size_t at) {
  return std::to_integer<std::uint8_t>(in[at]);
}
inline std::uint16_t load16(ConstBytes in, std::size_t at) {
  std::uint16_t value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return __builtin_bswap16(value);
}
inline std::uint32_t load24(ConstBytes in, std::size_t at) {
  return static_cast<std::uint32_t>(load8(in, at)) << 16 | load16(in, at + 1);
}
inline std::uint32_t load32(ConstBytes in, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return __builtin_bswap32(value);
}
inline std::uint64_t load64(ConstBytes in, std::size_t at) {
  std::uint64_t value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return __builtin_bswap64(value);
}

// Each function stores the low bits of `value` and ignores the others.
inline void store8(Bytes out, std::size_t at, std::uint32_t value) {
  out[at] = static_cast<std::byte>(value & 0xff);
}
inline void store16(Bytes out, std::size_t at, std::uint32_t value) {
  const std::uint16_t swapped = __builtin_bswap16(static_cast<std::uint16_t>(value & 0xffff));
  std::memcpy(out.data() + at, &swapped, sizeof swapped);
}
inline void store24(Bytes out, std::size_t at, std::uint32_t value) {
  store8(out, at, value >> 16);
  store16(out, at + 1, value);
}
inline void store32(Bytes out, std::size_t at, std::uint32_t value) {
  const std::uint32_t swapped = __builtin_bswap32(value);
  std::memcpy(out.data() + at, &swapped, sizeof swapped);
}
inline void store64(Bytes out, std::size_t at, std::uint64_t value) {
  const std::uint64_t swapped = __builtin_bswap64(value);
  std::memcpy(out.data() + at, &swapped, sizeof swapped);
}

}  // namespace base
}  // namespace weft
