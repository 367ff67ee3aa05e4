#include "wire/datagram.h"

#include <algorithm>

#include "wire/framing.h"
#include "wire/layout.h"

namespace weft::wire {

Result<DatagramParts, DropReason> split_datagram(ConstBytes datagram, ParseOptions options) {
  if (datagram.size() < bth_at::kSize) return DropReason::kTooShort;
  const std::uint32_t word = base::load32(datagram, bth_at::kOpcodeWord);
  const std::uint32_t psn_word = base::load32(datagram, bth_at::kPsnWord);
  const auto opcode = static_cast<Opcode>(word >> 24);
  const std::size_t size =
      header_size({.opcode = opcode, .has_timestamp = (psn_word & bth_at::kTimestamp) != 0});
  if (size == 0) return DropReason::kBadOpcode;
  if (options.trimmed && is_write(opcode)) {
    return DatagramParts{.header = datagram.first(std::min(size, datagram.size()))};
  }
  const std::size_t pad = word >> bth_at::kPadShift & 0x3;
  if (datagram.size() < size + kIcrcSize) return DropReason::kTooShort;
  const ConstBytes body = datagram.subspan(size, datagram.size() - size - kIcrcSize);
  if (body.size() < pad) return DropReason::kBadHeader;
  return DatagramParts{.header = datagram.first(size),
                       .payload = body.first(body.size() - pad),
                       .padding = body.last(pad),
                       .icrc = datagram.last(kIcrcSize)};
}

}  // namespace weft::wire
