// Any bytes as the other end's Hello. Parsing must give a Hello, or one line that names the
// mistake. A Hello must survive emitting and parsing.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "engine/net_hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::engine::Hello;
  std::array<std::byte, Hello::kSize> bytes{};
  std::copy_n(reinterpret_cast<const std::byte*>(data), std::min(size, bytes.size()),
              bytes.begin());
  const auto hello = Hello::from_bytes(bytes);
  if (!hello) {
    WEFT_ASSERT(!hello.error().message.empty());
    WEFT_ASSERT(hello.error().message.find('\n') == std::string::npos);
    return 0;
  }
  WEFT_ASSERT(!hello->ports.empty() && hello->ports.size() <= weft::world::kPortsMax);
  const auto again = hello->to_bytes();
  const auto second = Hello::from_bytes(again);
  WEFT_ASSERT(second.has_value());
  WEFT_ASSERT(second->to_bytes() == again);
  return 0;
}
