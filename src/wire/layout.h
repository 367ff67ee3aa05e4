// The layout tables, one per header: offsets in bytes from the start of that header. Fields are
// big-endian. Where a field shares its 16 or 32 bits with flags, the constant names the whole word
// and masks select its parts. docs/wire.md shows the same tables for people.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wire {

namespace bth_at {
inline constexpr std::size_t kOpcodeWord = 0;  // opcode[8] SE[1] M[1] pad[2] tver[4] pkey[16]
inline constexpr std::size_t kQpnWord = 4;     // var-res[8] (outside the ICRC) dest_qpn[24]
inline constexpr std::size_t kPsnWord = 8;     // A[1] r[1] rtx[1] ts[1] inv-res[4] psn[24]
inline constexpr std::size_t kSize = 12;
inline constexpr std::size_t kFlags = 1;    // the byte with SE, M, pad and tver
inline constexpr std::size_t kVariant = 4;  // the byte var-res

inline constexpr std::uint32_t kSolicited = 0x0080'0000;
inline constexpr std::uint32_t kMigrated = 0x0040'0000;
inline constexpr unsigned kPadShift = 20;
inline constexpr std::uint32_t kVersionMask = 0x000f'0000;
inline constexpr std::uint32_t kAckRequest = 0x8000'0000;
inline constexpr std::uint32_t kRtx = 0x2000'0000;
inline constexpr std::uint32_t kTimestamp = 0x1000'0000;
}  // namespace bth_at

namespace meth_at {
inline constexpr std::size_t kRqmsn = 0, kMsn = 2, kSize = 4;
}  // namespace meth_at

// TSETH; the same four bytes end a PETH and an ERTH.
namespace tseth_at {
inline constexpr std::size_t kTimestamp = 0, kFlags = 2, kSize = 4;
inline constexpr std::uint32_t kCoarse = 0x8000;  // the tsr bit
// value of the low nibble: the first two bytes are a timestamp
inline constexpr std::uint32_t kFtype = 0x0001;
}  // namespace tseth_at

namespace reth_at {
inline constexpr std::size_t kVa = 0, kRkey = 8, kLength = 12, kSize = 16;
}  // namespace reth_at

namespace immdt_at {
inline constexpr std::size_t kValue = 0, kSize = 4;
}  // namespace immdt_at

namespace aeth_at {
inline constexpr std::size_t kWord = 0, kSize = 4;  // syndrome[8] msn[24]
}  // namespace aeth_at

// SETH has 28 bytes, CC_STATE the 8 bytes after it. They always come together.
namespace seth_at {
inline constexpr std::size_t kFlags = 0;    // type[4] nh[5] m[2] r[3] pr[1] r[1]
inline constexpr std::size_t kTrigger = 2;  // ack_psn_offset, or probe_id when pr is set
inline constexpr std::size_t kEntropy = 4, kSpdcid = 8, kDpdcid = 10;
inline constexpr std::size_t kCackWord = 12;  // r[8] cack_psn[24]
inline constexpr std::size_t kCc = 16;        // cc_type[4] cc_flags[4]
inline constexpr std::size_t kMpr = 17, kBitmapOffset = 18, kBitmap = 20;
inline constexpr std::size_t kEcho = 28, kOooCount = 30;  // ooo_count: r[1] count[15]
inline constexpr std::size_t kRcvdWord = 32;              // r_c[1] rcv_cwnd_pen[7] rcvd_bytes[24]
inline constexpr std::size_t kSize = 36;
inline constexpr unsigned kMarkShift = 5;
inline constexpr std::uint32_t kAnswersProbe = 0x0002;
inline constexpr std::uint32_t kOooCountMask = 0x7fff;
inline constexpr std::uint32_t kRestoreCwnd = 0x8000'0000;
inline constexpr unsigned kPenaltyShift = 24;
inline constexpr std::uint32_t kPenaltyMask = 0x7f;
}  // namespace seth_at

namespace neth_at {
inline constexpr std::size_t kZero = 0, kReason = 2, kVendorInfo = 3, kEntropy = 4;
inline constexpr std::size_t kSpdcid = 8, kDpdcid = 10;
inline constexpr std::size_t kPsnWord = 12;  // r[8] nack_psn[24]
inline constexpr std::size_t kCc = 16;       // cc_type[4] cc_flags[4]
inline constexpr std::size_t kReserved = 17, kEcho = 18, kSize = 20;
}  // namespace neth_at

namespace peth_at {
inline constexpr std::size_t kVendorWord = 0;  // zero[16] r[8] vendor_info[8]
inline constexpr std::size_t kProbeId = 4, kReserved = 6, kSpdcid = 8, kDpdcid = 10;
inline constexpr std::size_t kTimestamp = 12, kSize = 16;  // kTimestamp: as a TSETH
}  // namespace peth_at

namespace erth_at {
inline constexpr std::size_t kWord = 0;  // r[14] op[2] r[8] vendor_info[8]
inline constexpr std::size_t kPortStatus = 4, kReserved = 8;
inline constexpr std::size_t kTimestamp = 12, kSize = 16;  // kTimestamp: as a TSETH
inline constexpr unsigned kOpShift = 16;
}  // namespace erth_at

namespace eeth_at {
inline constexpr std::size_t kWord = 0;  // r[12] op[2] r[18]
inline constexpr std::size_t kReserved = 4, kEcho = 28, kTail = 30, kSize = 36;
inline constexpr unsigned kOpShift = 18;
}  // namespace eeth_at

inline constexpr std::uint32_t kMask24 = 0xff'ffff;
inline constexpr std::uint32_t kEndpointOpMask = 0x3;

}  // namespace weft::wire
