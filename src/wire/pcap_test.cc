#include "wire/pcap.h"

#include <gtest/gtest.h>

#include "wire/test_packets.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::hex;

Buffer bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Buffer(data, data + text.size());
}

TEST(Pcap, BufferStartsWithTheFileHeader) {
  const Pcap pcap({});
  EXPECT_EQ(bytes_of(pcap.pending()),
            hex("4d 3c b2 a1 02 00 04 00 00 00 00 00 00 00 00 00 ff ff 00 00 01 00 00 00"));
}

TEST(Pcap, RecordTimesAreRoundedDownToNanoseconds) {
  Pcap pcap({});
  pcap.clear();
  const Time at = Time::from_start(Duration::s(3) + Duration::ns(258) + Duration::ps(999));
  ASSERT_TRUE(pcap.append(at, hex("aa bb cc")));
  EXPECT_EQ(bytes_of(pcap.pending()),
            hex("03 00 00 00 02 01 00 00 03 00 00 00 03 00 00 00 | aa bb cc"));
}

TEST(Pcap, AFullBufferRefusesFramesUntilItIsCleared) {
  Pcap pcap({.buffer_bytes_max = 24 + 16 + Pcap::kFrameSizeMax});
  const Buffer frame(Pcap::kFrameSizeMax);
  ASSERT_TRUE(pcap.append(Time(), frame));
  const std::size_t size = pcap.pending().size();
  EXPECT_EQ(size, 24 + 16 + Pcap::kFrameSizeMax);
  EXPECT_FALSE(pcap.append(Time(), hex("aa")));
  EXPECT_EQ(pcap.pending().size(), size);
  pcap.clear();
  EXPECT_TRUE(pcap.append(Time(), hex("aa")));
  EXPECT_EQ(pcap.pending().size(), 17u);
}

TEST(Pcap, TheBufferIsNeverReallocated) {
  Pcap pcap({.buffer_bytes_max = 1 << 17});
  const char* const at = pcap.pending().data();
  while (pcap.append(Time(), hex("01 02 03 04"))) {
  }
  EXPECT_EQ(pcap.pending().data(), at);
}

}  // namespace
}  // namespace weft::wire
