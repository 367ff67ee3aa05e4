// PacketCipher gives the test vectors of the standard, and opens no packet that was changed.
#include "seal/packet_cipher.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/prng.h"
#include "seal/key_schedule.h"

namespace weft::seal {
namespace {

std::vector<std::byte> hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
  return out;
}

template <typename T>
T array_of(std::string_view text) {
  T out{};
  const auto bytes = hex(text);
  EXPECT_EQ(bytes.size(), out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

// Test cases 14 and 16 for AES-256, from the GCM specification (McGrew and Viega, submitted to
// NIST).
void check_vectors(PacketCipher::Library library) {
  {
    PacketCipher cipher(PacketCipher::Use::kSeal, Key{}, library);
    const std::vector<std::byte> plain(16);
    std::vector<std::byte> out(16), tag(16);
    cipher.seal(Nonce{}, {.payload = plain}, out, tag);
    EXPECT_EQ(out, hex("cea7403d4d606b6e074ec5d3baf39d18"));
    EXPECT_EQ(tag, hex("d0d1c8a799996bf0265b98b5d48ab919"));
  }
  const auto key =
      array_of<Key>("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  const auto nonce = array_of<Nonce>("cafebabefacedbaddecaf888");
  const auto aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const auto plain =
      hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
          "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
  const auto sealed =
      hex("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
          "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662");
  PacketCipher cipher(PacketCipher::Use::kSeal, Key{}, library);
  cipher.set_key(key);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{17}, plain.size()}) {
    std::vector<std::byte> out(plain.size()), tag(16);
    cipher.seal(nonce,
                {.header = aad,
                 .payload = ConstBytes(plain).first(cut),
                 .padding = ConstBytes(plain).subspan(cut)},
                out, tag);
    EXPECT_EQ(out, sealed) << "cut at " << cut;
    EXPECT_EQ(tag, hex("76fc6ece0f4e1768cddf8853bb2d551b"));
  }
  PacketCipher opener(PacketCipher::Use::kOpen, key, library);
  auto bytes = sealed;
  EXPECT_TRUE(opener.open(
      nonce, {.header = aad, .payload = bytes, .tag = hex("76fc6ece0f4e1768cddf8853bb2d551b")}));
  EXPECT_EQ(bytes, plain);
  bytes = sealed;
  EXPECT_TRUE(opener.open(nonce, {.header = aad, .payload = bytes, .tag = hex("76fc6ece0f4e1768")}))
      << "a tag may be cut";
  bytes = sealed;
  EXPECT_FALSE(
      opener.open(nonce, {.header = aad, .payload = bytes, .tag = hex("76fc6ece0f4e1769")}));
  EXPECT_FALSE(opener.open(nonce, {.header = aad, .payload = bytes, .tag = {}})) << "no tag at all";
}

TEST(PacketCipher, EqualsTheTestVectorsOfTheSpecification) {
  check_vectors(PacketCipher::Library::kBest);
}

TEST(PacketCipher, EqualsTheTestVectorsOfTheSpecificationWithOpenssl) {
  check_vectors(PacketCipher::Library::kOpenssl);
}

TEST(PacketCipher, EachLibraryOpensPacketsThatTheOtherSealed) {
  Prng prng(7);
  Key key{};
  for (std::byte& b : key) b = static_cast<std::byte>(prng.below(256));
  using Library = PacketCipher::Library;
  PacketCipher best(PacketCipher::Use::kSeal, key, Library::kBest);
  PacketCipher opener(PacketCipher::Use::kOpen, key, Library::kOpenssl);
  PacketCipher plain(PacketCipher::Use::kSeal, key, Library::kOpenssl);
  PacketCipher best_opener(PacketCipher::Use::kOpen, key, Library::kBest);
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<std::byte> header(prng.below(80)), payload(prng.below(4100)), padding(turn % 4);
    for (std::byte& b : header) b = static_cast<std::byte>(prng.below(256));
    for (std::byte& b : payload) b = static_cast<std::byte>(prng.below(256));
    std::vector<std::byte> out(payload.size() + padding.size()), tag(1 + prng.below(kTagSize));
    const Nonce nonce = {static_cast<std::byte>(turn), static_cast<std::byte>(turn >> 8)};
    (turn % 2 == 0 ? best : plain)
        .seal(nonce, {.header = header, .payload = payload, .padding = padding}, out, tag);
    auto forged = out;
    PacketCipher& reader = turn % 2 == 0 ? opener : best_opener;
    ASSERT_TRUE(reader.open(nonce, {.header = header, .payload = out, .tag = tag})) << turn;
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), out.begin())) << turn;
    if (forged.empty() || tag.size() < 4) continue;
    forged[prng.below(static_cast<std::uint32_t>(forged.size()))] ^= std::byte{1};
    EXPECT_FALSE(reader.open(nonce, {.header = header, .payload = forged, .tag = tag})) << turn;
  }
}

TEST(KeySchedule, EachPurposeAndEachEndHasItsOwnKey) {
  const std::vector<std::byte> secret(32, std::byte{1}), other(32, std::byte{2});
  const KeySchedule keys = KeySchedule::from_secret(secret).value();
  const SessionEnd a{.id = {.incarnation = 1, .process = 0, .qpn = 7}, .random = {std::byte{1}}};
  const SessionEnd b{.id = {.incarnation = 2, .process = 0, .qpn = 7}, .random = {std::byte{2}}};
  std::vector<Key> all = {keys.traffic_secret(a, b), keys.traffic_secret(b, a)};
  const auto vary = [&](auto change) {
    SessionEnd c = b;
    change(c);
    all.push_back(keys.traffic_secret(a, c));
  };
  vary([](SessionEnd& e) { e.id.incarnation = 3; });
  vary([](SessionEnd& e) { e.id.process = 1; });
  vary([](SessionEnd& e) { e.id.qpn = 8; });
  vary([](SessionEnd& e) { e.random[15] = std::byte{1}; });
  all.push_back(KeySchedule::from_secret(other).value().traffic_secret(a, b));
  all.push_back(next_traffic_secret(all[0]));
  const TrafficKeys traffic = traffic_keys(all[0]);
  all.push_back(traffic.payload);
  all.push_back(traffic.header);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " and " << j;
  }
  EXPECT_EQ(keys.traffic_secret(a, b), all[0]) << "both ends compute the same";
  EXPECT_NE(keys.fingerprint(), KeySchedule::from_secret(other).value().fingerprint());
}

TEST(KeySchedule, ShortSecretsAreRefused) {
  EXPECT_EQ(KeySchedule::from_secret(std::vector<std::byte>(31)).error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace weft::seal
