// Hellos: two ends get keys although hellos are lost, and recorded hellos are useless.
#include "seal/secure_hello.h"

#include <gtest/gtest.h>

#include <set>

#include "seal/test_secure_pair.h"

namespace weft::seal {
namespace {

using namespace test;

const EndId kA = id_of(1), kB = id_of(2);

TEST(SecureHello, HelloIsParsedBackAndAnyChangedByteIsRefused) {
  const KeySchedule keys = KeySchedule::from_secret(some_secret()).value();
  const SecureHello hello{.from = {.incarnation = 0x1122'3344'5566'7788, .process = 3, .qpn = 7},
                          .to = {.incarnation = 9, .process = 255, .qpn = 0xff'ffff},
                          .drawn = drawn(5),
                          .echo = drawn(6),
                          .established = true};
  const auto packet = hello.emit(keys);
  EXPECT_EQ(parse_hello(packet, keys).value(), hello);
  EXPECT_FALSE(wire::parse(packet)) << "no MRC packet";
  for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
    auto bad = packet;
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    ASSERT_FALSE(parse_hello(bad, keys)) << bit;
  }
  for (std::size_t size = 0; size < packet.size(); ++size)
    EXPECT_EQ(parse_hello(ConstBytes(packet).first(size), keys).error(), DropReason::kTooShort);
  const KeySchedule other = KeySchedule::from_secret(some_secret(2)).value();
  EXPECT_EQ(parse_hello(packet, other).error(), DropReason::kForged);
}

TEST(Handshake, BothEndsGetKeysWhicheverHellosAreLost) {
  // In each round another subset of the first eight packets is lost; later packets all arrive.
  for (unsigned lost = 0; lost < 256; ++lost) {
    TestEnd a(config_of(kA, kB, 1)), b(config_of(kB, kA, 2));
    unsigned sent = 0;
    for (int round = 0; round < 12; ++round) {
      const Time now = kStart + Duration::ms(1) * round;
      // Each end has data to send. An end without keys sends a hello instead. An end with keys
      // sends data, and a peer without keys, which cannot open it, sends a hello.
      for (TestEnd* from : {&a, &b}) {
        TestEnd* to = from == &a ? &b : &a;
        auto packet = from->speak(now);
        for (int i = 0; packet && i < 10; ++i) {
          if (sent++ < 8 && (lost >> (sent - 1) & 1) != 0) break;
          packet = to->hear(*packet, now);
          std::swap(from, to);
        }
      }
    }
    ASSERT_TRUE(a.session.is_established() && b.session.is_established()) << "lost " << lost;
    ASSERT_EQ(a.session.out().key_id(), b.session.in().key_id()) << "lost " << lost;
    ASSERT_EQ(b.session.out().key_id(), a.session.in().key_id()) << "lost " << lost;
  }
}

TEST(Handshake, TheRateOfHellosIsLimited) {
  TestEnd a(config_of(kA, kB, 1)), b(config_of(kB, kA, 2));
  const auto hello = a.speak();
  ASSERT_TRUE(hello);
  EXPECT_FALSE(a.speak()) << "one a millisecond";
  EXPECT_FALSE(a.speak(kStart + Duration::us(999)));
  EXPECT_TRUE(a.speak(kStart + Duration::ms(1)));
  int answers = 0;
  for (int i = 0; i < 1000; ++i) answers += b.hear(*hello) ? 1 : 0;
  EXPECT_LE(answers, 16);
  EXPECT_FALSE(b.session.is_established()) << "nothing in it is fresh";
  EXPECT_TRUE(b.hear(*hello, kStart + Duration::ms(1)));
}

// A process is killed. Another takes its slot and, by chance, its QPN. Packets recorded from the
// killed process are useless, and no key is used a second time.
TEST(Handshake, PacketsRecordedFromAnEarlierIncarnationAreRefused) {
  std::vector<SecureHello::Packet> hellos;
  std::vector<std::vector<std::byte>> packets;
  std::set<std::uint64_t> key_ids;
  const auto record = [&](std::optional<SecureHello::Packet> p) {
    if (p) hellos.push_back(*p);
    return p;
  };
  {
    TestEnd a(config_of(kA, kB, 1)), b(config_of(kB, kA, 2));
    auto p = record(b.hear(*record(a.speak())));
    p = record(a.hear(*p));
    ASSERT_FALSE(b.hear(*p));
    ASSERT_TRUE(b.session.is_established());
    for (int i = 0; i < 5; ++i) packets.push_back(sealed(a.session.out(), nack_header()));
    key_ids = {a.session.out().key_id(), b.session.out().key_id()};
  }
  ASSERT_EQ(hellos.size(), 3u);
  // All ids are equal on purpose, even the incarnation; only the drawn random values differ.
  TestEnd a(config_of(kA, kB, 3)), b(config_of(kB, kA, 4));
  for (const auto& hello : hellos) {
    b.hear(hello);
    a.hear(hello);
  }
  EXPECT_FALSE(a.session.is_established());
  EXPECT_FALSE(b.session.is_established());
  shake_hands(a, b, kStart + Duration::ms(2));
  ASSERT_TRUE(b.session.is_established());
  const std::uint64_t key_id = a.session.out().key_id();
  for (const auto& hello : hellos) {
    EXPECT_FALSE(b.hear(hello, kStart + Duration::ms(4)));
    EXPECT_FALSE(a.hear(hello, kStart + Duration::ms(4)));
  }
  EXPECT_EQ(a.session.out().key_id(), key_id) << "keys once made stay";
  EXPECT_TRUE(key_ids.insert(key_id).second) << "a key of the first incarnation again";
  EXPECT_TRUE(key_ids.insert(b.session.out().key_id()).second);
  for (auto& packet : packets)
    EXPECT_EQ(opened(b.session.in(), packet).error(), DropReason::kForged);
  auto packet = sealed(a.session.out(), nack_header());
  EXPECT_TRUE(opened(b.session.in(), packet));
}

}  // namespace
}  // namespace weft::seal
