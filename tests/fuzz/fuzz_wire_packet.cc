// Any bytes: parse() must give a packet or a drop reason. A packet must survive emit() and parse().
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "wire/datagram.h"
#include "wire/packet.h"

namespace weft::wire {
namespace {

void check(ConstBytes bytes, ParseOptions options) {
  const auto first = parse(bytes, options);
  if (!first) {
    WEFT_ASSERT(to_string(first.error()) != "unknown");
    return;
  }
  WEFT_ASSERT(!to_string(*first).empty());
  std::array<std::byte, kHeaderSizeMax> out;
  const std::size_t size = emit(*first, out);
  const auto second = parse(ConstBytes(out).first(size), options);
  WEFT_ASSERT(second.has_value());
  WEFT_ASSERT(*second == *first);
}

// Header and payload together must be the whole datagram. If parse() accepts the datagram, the
// header must have the size that parse() found.
void check_split(ConstBytes bytes, ParseOptions options) {
  const auto parts = split_datagram(bytes, options);
  if (!parts) return;
  const std::size_t size =
      parts->header.size() + parts->payload.size() + parts->padding.size() + parts->icrc.size();
  WEFT_ASSERT(parts->icrc.empty() ? size <= bytes.size() : size == bytes.size());
  const auto whole = parse(bytes, options);
  const auto header = parse(parts->header, options);
  WEFT_ASSERT(whole.has_value() == header.has_value());
  if (whole) WEFT_ASSERT(*whole == *header);
}

}  // namespace
}  // namespace weft::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes bytes(reinterpret_cast<const std::byte*>(data), size);
  for (bool trimmed : {false, true}) {
    weft::wire::check(bytes, {.trimmed = trimmed});
    weft::wire::check_split(bytes, {.trimmed = trimmed});
  }
  return 0;
}
