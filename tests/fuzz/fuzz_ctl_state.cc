// Any bytes as the body of a controller's state file. Parsing must give a consistent model, or one
// line that names the mistake. A model must survive emitting and parsing.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "control/ctl_codec.h"
#include "control/ctl_profiles.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto raw = weft::control::ctl_model_from(bytes);
  WEFT_ASSERT(raw || !raw.error().message.empty());
  // The header gets a valid checksum, so that the parser reads the body.
  const auto file = weft::control::with_ctl_header(bytes);
  const auto model = weft::control::ctl_model_from(file);
  if (!model) {
    WEFT_ASSERT(!model.error().message.empty());
    WEFT_ASSERT(model.error().message.find('\n') == std::string::npos);
    return 0;
  }
  WEFT_ASSERT(weft::control::check_model(*model).has_value());
  WEFT_ASSERT(weft::control::to_bytes(*model) == file);
  return 0;
}
