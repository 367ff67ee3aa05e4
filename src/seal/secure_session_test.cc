// Packets between two ends that have keys, without sockets.
#include "seal/secure_session.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/prng.h"
#include "seal/test_secure_pair.h"

namespace weft::seal {
namespace {

using namespace test;

const EndId kA = id_of(1), kB = id_of(2);

class SecurePairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shake_hands(a, b);
    ASSERT_TRUE(a.session.is_established());
    ASSERT_TRUE(b.session.is_established());
  }
  SendDirection& a_out() { return a.session.out(); }
  ReceiveDirection& b_in() { return b.session.in(); }
  DropReason why(std::vector<std::byte> packet, ReceiveDirection::Options options = {.ev = kEv}) {
    const auto result = b_in().open(packet, options);
    EXPECT_FALSE(result);
    return result ? DropReason::kTooShort : result.error();
  }

  TestEnd a{config_of(kA, kB, 1)}, b{config_of(kB, kA, 2)};
};

TEST_F(SecurePairTest, PacketsOfEverySizeAreOpenedToTheBytesThatWereSealed) {
  EXPECT_EQ(a_out().key_id(), b_in().key_id());
  EXPECT_NE(a_out().key_id(), b.session.out().key_id());
  for (const std::size_t size : {0u, 1u, 2u, 3u, 4u, 5u, 1023u, 1024u, 4095u, 4096u}) {
    const auto header = write_header(size);
    const auto payload = some_payload(size);
    auto packet = sealed(a_out(), header, payload);
    EXPECT_EQ(packet.size(), sealed_size({.header_size = header.size(), .payload_size = size}));
    if (size >= 16) {
      EXPECT_EQ(std::search(packet.begin(), packet.end(), payload.begin(), payload.begin() + 16),
                packet.end())
          << "the payload is in clear";
    }
    const auto out = opened(b_in(), packet);
    ASSERT_TRUE(out) << size;
    EXPECT_TRUE(std::equal(out->header.begin(), out->header.end(), header.begin(), header.end()));
    EXPECT_TRUE(
        std::equal(out->payload.begin(), out->payload.end(), payload.begin(), payload.end()));
  }
  const auto header = nack_header();
  auto packet = sealed(a_out(), header);
  EXPECT_EQ(packet.size(), header.size() + kSealedControlExtra);
  const auto out = opened(b_in(), packet);
  ASSERT_TRUE(out);
  EXPECT_TRUE(std::equal(out->header.begin(), out->header.end(), header.begin(), header.end()));
  EXPECT_TRUE(out->payload.empty());
}

// Changes of byte 4 of the BTH are not detected, because switches may change it and no receiver
// reads it.
TEST_F(SecurePairTest, EveryFlippedBitIsDetected) {
  const auto payload = some_payload(61);
  for (const auto& [header, body] :
       {std::pair{write_header(61), ConstBytes(payload)}, std::pair{nack_header(), ConstBytes()}}) {
    const auto genuine = sealed(a_out(), header, body);
    for (std::size_t bit = 0; bit < genuine.size() * 8; ++bit) {
      auto packet = genuine;
      packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const auto out = opened(b_in(), packet);
      if (bit / 8 == 4) continue;
      ASSERT_FALSE(out) << "bit " << bit;
    }
    // The packet with a changed byte 4 was accepted, so the original now counts as a replay.
    EXPECT_EQ(why(genuine), DropReason::kReplayed);
  }
}

TEST_F(SecurePairTest, TruncatedAndLengthenedPacketsAreDropped) {
  const auto payload = some_payload(100);
  const auto genuine = sealed(a_out(), write_header(100), payload);
  for (std::size_t size = 0; size < genuine.size(); ++size) {
    std::vector<std::byte> packet(genuine.begin(),
                                  genuine.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(opened(b_in(), packet)) << size;
  }
  auto longer = genuine;
  longer.push_back(std::byte{});
  EXPECT_EQ(why(longer), DropReason::kForged);
  auto packet = genuine;
  EXPECT_TRUE(opened(b_in(), packet));
}

TEST_F(SecurePairTest, ATrimmedPacketIsStillAuthentic) {
  const auto header = write_header(4096);
  const auto payload = some_payload(4096);
  const std::size_t kept = header.size() + kCounterSize + kHeaderTagSize;
  EXPECT_LE(wire::kUdpSize + kept, kSealedTrimmedSizeAfterIp);
  const ReceiveDirection::Options trimmed{.ev = kEv, .trimmed = true};
  auto genuine = sealed(a_out(), header, payload);
  for (std::size_t bit = 0; bit < kept * 8; ++bit) {
    if (bit / 8 == 4) continue;
    std::vector<std::byte> packet(genuine.begin(), genuine.begin() + static_cast<long>(kept));
    packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    ASSERT_FALSE(opened(b_in(), packet, trimmed)) << bit;
  }
  std::vector<std::byte> cut(genuine.begin(), genuine.begin() + static_cast<long>(kept) - 1);
  EXPECT_EQ(why(cut, trimmed), DropReason::kTooShort) << "the switch must keep the header tag";
  for (const std::size_t more : {std::size_t{0}, std::size_t{9}}) {
    std::vector<std::byte> packet(genuine.begin(),
                                  genuine.begin() + static_cast<long>(kept + more));
    const auto out = opened(b_in(), packet, trimmed);
    ASSERT_TRUE(out);
    EXPECT_TRUE(std::equal(out->header.begin(), out->header.end(), header.begin(), header.end()));
    EXPECT_TRUE(out->payload.empty());
    EXPECT_EQ(why(packet, trimmed), DropReason::kReplayed);
    genuine = sealed(a_out(), header, payload);
  }
}

TEST_F(SecurePairTest, EachPacketIsAcceptedOnceWhateverTheOrder) {
  std::vector<std::vector<std::byte>> packets;
  for (std::uint32_t i = 0; i < 5000; ++i) packets.push_back(sealed(a_out(), nack_header()));
  auto last = packets[4095];
  ASSERT_TRUE(opened(b_in(), last));
  for (std::size_t i = 4095; i-- > 0;) {
    auto packet = packets[i];
    ASSERT_TRUE(opened(b_in(), packet)) << i;
    packet = packets[i];
    ASSERT_EQ(opened(b_in(), packet).error(), DropReason::kReplayed);
  }
  ASSERT_TRUE(opened(b_in(), packets[4999]));
  EXPECT_EQ(why(packets[4999 - 4096]), DropReason::kReplayed) << "too old";
}

TEST_F(SecurePairTest, APacketIsOpenedOnlyByItsOwnSession) {
  const auto packet = sealed(a_out(), nack_header());
  // A packet that is reflected to its sender is refused.
  auto copy = packet;
  EXPECT_EQ(opened(a.session.in(), copy).error(), DropReason::kForged);
  // A packet with another EV than it was sealed for is refused.
  EXPECT_EQ(why(packet, {.ev = kEv + 1}), DropReason::kForged);
  // `refuses`: a session that differs in QP, process, incarnation, random values or secret refuses
  // the packet.
  const auto refuses = [&](EndId self, EndId peer, std::uint8_t ours, std::uint8_t theirs,
                           std::uint8_t secret) {
    TestEnd c(config_of(self, peer, ours), secret), d(config_of(peer, self, theirs), secret);
    shake_hands(c, d);
    ASSERT_TRUE(c.session.is_established());
    auto bytes = packet;
    const auto out = opened(c.session.in(), bytes);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error(), DropReason::kForged);
  };
  refuses(id_of(2, 0x124), kA, 2, 1, 1);
  refuses(id_of(2, 0x123, 1), kA, 2, 1, 1);
  refuses(kB, id_of(1, 0x124), 2, 1, 1);
  refuses(kB, id_of(1, 0x123, 1), 2, 1, 1);
  refuses(id_of(3), kA, 2, 1, 1);
  refuses(kB, kA, 3, 1, 1);
  refuses(kB, kA, 2, 3, 1);
  refuses(kB, kA, 2, 1, 2);
  copy = packet;
  EXPECT_TRUE(opened(b_in(), copy));
}

TEST(Rekey, BothEndsChangeKeysTogetherAndLatePacketsAreOpened) {
  constexpr std::uint32_t kShift = 6;  // 64 packets per key
  TestEnd a(config_of(kA, kB, 1, kShift)), b(config_of(kB, kA, 2, kShift));
  shake_hands(a, b);
  std::set<std::uint64_t> key_ids;
  Prng prng(1);
  std::vector<std::vector<std::byte>> waiting;
  std::size_t taken = 0;
  const std::size_t count = 64 * 20;
  for (std::size_t i = 0; i < count; ++i) {
    waiting.push_back(sealed(a.session.out(), nack_header()));
    key_ids.insert(a.session.out().key_id());
    if (waiting.size() < 8 && i + 1 < count) continue;
    // Opens the packets in random order, also across the change of keys.
    while (!waiting.empty()) {
      const std::size_t at = prng.below(static_cast<std::uint32_t>(waiting.size()));
      ASSERT_TRUE(opened(b.session.in(), waiting[at])) << i;
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
      ++taken;
    }
  }
  EXPECT_EQ(taken, count);
  EXPECT_EQ(key_ids.size(), 20u) << "a key for each 64 packets, none twice";
  EXPECT_EQ(a.session.out().key_id(), b.session.in().key_id());
}

TEST(Rekey, AForgedPacketOfALaterEpochDoesNotChangeTheEpoch) {
  constexpr std::uint32_t kShift = 6;
  TestEnd a(config_of(kA, kB, 1, kShift)), b(config_of(kB, kA, 2, kShift));
  shake_hands(a, b);
  const std::size_t counter_at = nack_header().size();
  const auto genuine = sealed(a.session.out(), nack_header());
  for (const std::uint64_t counter : {64u, 65u, 128u, 1'000'000u}) {
    auto packet = genuine;
    base::store64(Bytes(packet), counter_at, counter);
    EXPECT_EQ(opened(b.session.in(), packet).error(), DropReason::kForged);
  }
  for (int i = 0; i < 200; ++i) {
    auto packet = sealed(a.session.out(), nack_header());
    ASSERT_TRUE(opened(b.session.in(), packet)) << i;
  }
}

// Seals 2^24 + 1 packets, more than there are PSNs. The counter on the wire grows with each packet,
// even when the keys change, and the nonce contains all of its bits.
TEST(Nonce, NeverRepeatsUnderAKey) {
  constexpr std::uint32_t kShift = 20;
  TestEnd a(config_of(kA, kB, 1, kShift)), b(config_of(kB, kA, 2, kShift));
  shake_hands(a, b);
  ASSERT_TRUE(a.session.is_established());
  const auto header = nack_header();
  std::array<std::byte, 256> packet;
  std::set<std::uint64_t> key_ids;
  std::uint64_t next = 0;
  bool grows = true;
  for (std::uint64_t i = 0; i <= 1u << 24; ++i) {
    const std::size_t size = a.session.out().seal({.header = header, .ev = kEv}, packet);
    ASSERT_GT(size, 0u);
    const std::uint64_t counter = base::load64(ConstBytes(packet), header.size());
    grows &= counter >= next;
    next = counter + 1;
    key_ids.insert(a.session.out().key_id());
  }
  EXPECT_TRUE(grows);
  EXPECT_EQ(next, (1u << 24) + 1);
  EXPECT_EQ(key_ids.size(), 17u) << "a key for each 2^20 packets, none twice";
  static_assert(kEpochShift < 32, "a new key before 2^32 packets");
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1} << 24, ~std::uint64_t{0}}) {
    EXPECT_EQ(base::load64(ConstBytes(make_nonce(kEv, n)), 4), n);
    EXPECT_NE(make_nonce(kEv, n), make_nonce(kEv, n ^ 1));
  }
}

// seal() takes the counter from SendCounter, also for a retransmission of the same packet.
TEST_F(SecurePairTest, EveryPacketSentTakesANewCounter) {
  const auto header = write_header(8);
  const auto payload = some_payload(8);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto packet = sealed(a_out(), header, payload);
    ASSERT_EQ(base::load64(ConstBytes(packet), header.size()), i);
  }
}

}  // namespace
}  // namespace weft::seal
