// The UDP payload of a packet and its parts: header, payload, padding, ICRC.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "wire/drop_reason.h"
#include "wire/packet.h"

namespace weft::wire {

// Spans into the datagram. A trimmed one has neither payload nor padding nor ICRC, and maybe not
// all of its header.
struct DatagramParts {
  ConstBytes header{};   // BTH to the last extension header: what parse() takes
  ConstBytes payload{};  // without padding
  ConstBytes padding{};
  ConstBytes icrc{};
};

// Where the parts are, by opcode, BTH.ts and BTH.pad. Says kTooShort, kBadOpcode, or kBadHeader
// when the padding is larger than what is there. Does not look at the ICRC.
Result<DatagramParts, DropReason> split_datagram(ConstBytes datagram, ParseOptions options = {});

}  // namespace weft::wire
