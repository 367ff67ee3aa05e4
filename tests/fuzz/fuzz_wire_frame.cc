// Any bytes: parse_frame() must give a frame or a drop reason. A frame must survive emit_frame()
// and parse_frame(), and its ICRC must be right afterwards.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "wire/frame.h"

namespace weft::wire {
namespace {

bool same(ConstBytes a, ConstBytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

void check(ConstBytes bytes) {
  const auto first = parse_frame(bytes);
  if (!first) return;
  std::vector<std::byte> out(frame_size_max(first->content.payload.size()));
  const std::size_t size = emit_frame(first->envelope, first->content, out);
  WEFT_ASSERT(size <= out.size());
  const auto second = parse_frame(ConstBytes(out).first(size));
  WEFT_ASSERT(second.has_value());
  WEFT_ASSERT(second->envelope == first->envelope);
  WEFT_ASSERT(same(second->content.header, first->content.header));
  WEFT_ASSERT(same(second->content.payload, first->content.payload));
  WEFT_ASSERT(second->intact);
}

}  // namespace
}  // namespace weft::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::wire::check({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
