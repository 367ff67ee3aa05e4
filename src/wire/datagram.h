// The UDP payload of a packet and its parts: header, payload, padding, ICRC.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "wire/drop_reason.h"
#include "wire/packet.h"

namespace weft::wire {

// Spans into the datagram. A trimmed datagram has no payload, padding or ICRC, and its header may
// be cut short.
struct DatagramParts {
  ConstBytes header{};   // BTH to the last extension header: what parse() takes
  ConstBytes payload{};  // without padding
  ConstBytes padding{};
  ConstBytes icrc{};
};

// Finds the parts from the opcode, BTH.ts and BTH.pad. The error is kTooShort, kBadOpcode, or
// kBadHeader when BTH.pad exceeds the bytes after the header. Does not check the ICRC.
Result<DatagramParts, DropReason> split_datagram(ConstBytes datagram, ParseOptions options = {});

}  // namespace weft::wire
