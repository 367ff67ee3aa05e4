#include "seal/key_schedule.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace weft::seal {
namespace {

ConstBytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

OSSL_PARAM octets(const char* name, ConstBytes bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()),
                                           bytes.size());
}

struct HkdfInput {
  ConstBytes key;
  ConstBytes salt;
  ConstBytes info;
};

// HKDF, extract and expand. OpenSSL fails here only if it is broken or out of memory; a peer cannot
// cause that.
void hkdf(const HkdfInput& in, Bytes out) {
  const std::unique_ptr<EVP_KDF, FreeKdf> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  WEFT_ASSERT(kdf != nullptr);
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(EVP_KDF_CTX_new(kdf.get()));
  WEFT_ASSERT(context != nullptr);
  char digest[] = "SHA256";
  const std::array<OSSL_PARAM, 5> params = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets(OSSL_KDF_PARAM_KEY, in.key), octets(OSSL_KDF_PARAM_SALT, in.salt),
      octets(OSSL_KDF_PARAM_INFO, in.info), OSSL_PARAM_construct_end()};
  const int done = EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()),
                                  out.size(), params.data());
  WEFT_ASSERT(done == 1);
}

// Derives a key from `key` for the purpose that the label names.
template <typename T>
T derive(ConstBytes key, std::string_view label) {
  T out{};
  hkdf({.key = key, .salt = bytes_of("weft 1"), .info = bytes_of(label)}, out);
  return out;
}

constexpr std::size_t kIdSize = 8 + 2 + 4;
void store_id(Bytes out, std::size_t at, const EndId& id) {
  base::store64(out, at, id.incarnation);
  base::store16(out, at + 8, id.process);
  base::store32(out, at + 10, id.qpn);
}

}  // namespace

Result<SessionRandom> draw_random() {
  SessionRandom out;
  for (;;) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got == static_cast<ssize_t>(out.size())) return out;
    if (got < 0 && errno != EINTR)
      return Error{ErrorKind::kSystem, std::string("getrandom: ") + std::strerror(errno)};
  }
}

Result<KeySchedule> KeySchedule::from_secret(ConstBytes job_secret) {
  if (job_secret.size() < kSecretSizeMin) {
    return Error{ErrorKind::kInvalid, "a job secret has at least 32 bytes, this one has " +
                                          std::to_string(job_secret.size()) +
                                          "; make one with `head -c 32 /dev/urandom > FILE`"};
  }
  KeySchedule out;
  out.session_ = derive<Key>(job_secret, "session");
  out.hello_ = derive<Key>(job_secret, "hello");
  const auto print = derive<std::array<std::byte, 4>>(job_secret, "fingerprint");
  out.fingerprint_ = std::max(base::load32(ConstBytes(print), 0), 1u);
  return out;
}

HelloTag KeySchedule::hello_tag(ConstBytes hello) const {
  std::array<std::byte, 32> whole;
  unsigned int size = whole.size();
  const auto* const done = HMAC(EVP_sha256(), hello_.data(), static_cast<int>(hello_.size()),
                                reinterpret_cast<const unsigned char*>(hello.data()), hello.size(),
                                reinterpret_cast<unsigned char*>(whole.data()), &size);
  WEFT_ASSERT(done != nullptr && size == whole.size());
  HelloTag tag;
  std::copy_n(whole.begin(), tag.size(), tag.begin());
  return tag;
}

Key KeySchedule::traffic_secret(const SessionEnd& from, const SessionEnd& to) const {
  WEFT_ASSERT(from.id != to.id);
  // Both directions have the same salt; the other inputs differ.
  const bool in_order = from.id < to.id;
  const SessionEnd& low = in_order ? from : to;
  const SessionEnd& high = in_order ? to : from;
  std::array<std::byte, 2 * std::tuple_size_v<SessionRandom>> salt;
  std::copy(low.random.begin(), low.random.end(), salt.begin());
  std::copy(high.random.begin(), high.random.end(), salt.begin() + low.random.size());
  constexpr std::string_view kLabel = "weft 1 traffic";
  std::array<std::byte, kLabel.size() + 2 * kIdSize> info;
  std::memcpy(info.data(), kLabel.data(), kLabel.size());
  store_id(info, kLabel.size(), from.id);
  store_id(info, kLabel.size() + kIdSize, to.id);
  Key out;
  hkdf({.key = session_, .salt = salt, .info = info}, out);
  return out;
}

TrafficKeys traffic_keys(const Key& traffic_secret) {
  const auto id = derive<std::array<std::byte, 8>>(traffic_secret, "key id");
  return {.payload = derive<Key>(traffic_secret, "payload"),
          .header = derive<Key>(traffic_secret, "header"),
          .id = base::load64(ConstBytes(id), 0)};
}

Key next_traffic_secret(const Key& traffic_secret) {
  return derive<Key>(traffic_secret, "next epoch");
}

bool is_equal_in_constant_time(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace weft::seal
