// Any bytes as a peer's description of a group or region. Parsing must give a value, or one line
// that names the mistake. Emitting the value must give exactly the same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "mrclib/description.h"

namespace {

template <typename Description>
void parse(weft::ConstBytes bytes) {
  const auto parsed = Description::from_bytes(bytes);
  if (!parsed) {
    WEFT_ASSERT(!parsed.error().message.empty());
    WEFT_ASSERT(parsed.error().message.find('\n') == std::string::npos);
    return;
  }
  const auto again = parsed->to_bytes();
  WEFT_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes bytes(reinterpret_cast<const std::byte*>(data), size);
  parse<weft::mrclib::GroupDescription>(bytes);
  parse<weft::mrclib::RegionDescription>(bytes);
  return 0;
}
