#include "wire/pcap.h"

#include "base/assert.h"

namespace weft::wire {

namespace {

constexpr std::uint32_t kMagicNanoseconds = 0xa1b2'3c4d;
constexpr std::uint16_t kVersionMajor = 2, kVersionMinor = 4;
constexpr std::uint32_t kLinkTypeEthernet = 1;
constexpr std::size_t kFileHeaderSize = 24, kRecordHeaderSize = 16;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

Pcap::Pcap(const Config& config) : buffer_bytes_max_(config.buffer_bytes_max) {
  WEFT_ASSERT(buffer_bytes_max_ >= kFileHeaderSize + kRecordHeaderSize + kFrameSizeMax);
  buffer_.reserve(buffer_bytes_max_);
  put32(kMagicNanoseconds);
  put16(kVersionMajor);
  put16(kVersionMinor);
  put32(0);  // time zone
  put32(0);  // accuracy of the times
  put32(kFrameSizeMax);
  put32(kLinkTypeEthernet);
}

bool Pcap::append(Time at, ConstBytes frame) {
  WEFT_ASSERT(frame.size() <= kFrameSizeMax && at >= Time());
  if (buffer_.size() + kRecordHeaderSize + frame.size() > buffer_bytes_max_) return false;
  const std::int64_t ns = at.since_start().ns();
  put32(static_cast<std::uint32_t>(ns / kNsPerSecond));
  put32(static_cast<std::uint32_t>(ns % kNsPerSecond));
  put32(static_cast<std::uint32_t>(frame.size()));  // bytes in the file
  put32(static_cast<std::uint32_t>(frame.size()));  // bytes of the frame on the link
  buffer_.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  return true;
}

// The magic number tells readers the byte order of a file. We write little-endian on every machine.
void Pcap::put16(std::uint16_t value) {
  buffer_.push_back(static_cast<char>(value & 0xff));
  buffer_.push_back(static_cast<char>(value >> 8));
}

void Pcap::put32(std::uint32_t value) {
  put16(static_cast<std::uint16_t>(value & 0xffff));
  put16(static_cast<std::uint16_t>(value >> 16));
}

}  // namespace weft::wire
