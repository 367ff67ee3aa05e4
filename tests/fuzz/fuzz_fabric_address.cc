// Any text: parse_ipv6() must give an address or one short line, and an address must survive
// writing and parsing its canonical text. Any address: if it can be parsed as a host's port or a
// list of uSIDs, that value must give the same address again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "fabric/address.h"

namespace weft::fabric {
namespace {

void check_address(const Ipv6& address) {
  const std::string text = to_text(address);
  const auto again = parse_ipv6(text);
  WEFT_ASSERT(again.has_value() && *again == address && to_text(*again) == text);
  WEFT_ASSERT(text.size() <= 39);
  const auto port = port_of(address);
  if (port) WEFT_ASSERT(address_of(*port) == address);
  const auto usids = usids_of(address);
  if (usids) WEFT_ASSERT(address_of(*usids) == address);
  WEFT_ASSERT(!(port && usids));
}

void check(std::string_view text) {
  const auto parsed = parse_ipv6(text);
  if (parsed) {
    check_address(*parsed);
  } else {
    WEFT_ASSERT(parsed.error().message.size() < 200);
    WEFT_ASSERT(parsed.error().message.find('\n') == std::string::npos);
  }
  // Now the bytes of the input as an address.
  Ipv6 address;
  for (std::size_t i = 0; i < 16; ++i) {
    const unsigned char byte = i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    std::uint64_t& half = i < 8 ? address.high : address.low;
    half = half << 8 | byte;
  }
  check_address(address);
}

}  // namespace
}  // namespace weft::fabric

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fabric::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
