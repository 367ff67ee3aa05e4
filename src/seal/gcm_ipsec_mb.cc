// Gcm by Intel's IPsec multi-buffer library. It gives the same bytes as OpenSSL, uses the widest
// AES instructions of the CPU, and looks up no parameters for each packet (docs/decisions/0014).
#include "seal/gcm.h"

#if __has_include(<intel-ipsec-mb.h>)
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include <array>

#include "base/assert.h"

namespace weft::seal {
namespace {

// The library's functions for this CPU; null if the CPU has no AES instructions.
const IMB_MGR* functions() {
  static const IMB_MGR* const found = []() -> const IMB_MGR* {
    IMB_MGR* const manager = alloc_mb_mgr(0);
    if (manager == nullptr) return nullptr;
    IMB_ARCH arch = IMB_ARCH_NONE;
    init_mb_mgr_auto(manager, &arch);
    const bool fast = (manager->features & IMB_FEATURE_AESNI) != 0 &&
                      (manager->features & IMB_FEATURE_PCLMULQDQ) != 0;
    if (imb_get_errno(manager) == 0 && arch >= IMB_ARCH_SSE && fast) return manager;
    free_mb_mgr(manager);
    return nullptr;
  }();
  return found;
}

class IpsecMbGcm final : public Gcm {
 public:
  explicit IpsecMbGcm(const IMB_MGR& with) : with_(with) {}
  IpsecMbGcm(const IpsecMbGcm&) = delete;
  IpsecMbGcm& operator=(const IpsecMbGcm&) = delete;
  ~IpsecMbGcm() override {
    OPENSSL_cleanse(&key_, sizeof(key_));
    OPENSSL_cleanse(&context_, sizeof(context_));
  }

  void set_key(const Key& key) override { with_.gcm256_pre(key.data(), &key_); }

  void seal(const Nonce& nonce, const PacketCipher::Plain& in, Bytes out, Bytes tag) override {
    if (in.padding.empty()) {
      with_.gcm256_enc(&key_, &context_, raw(out.data()), raw(in.payload.data()), in.payload.size(),
                       raw(nonce.data()), raw(in.header.data()), in.header.size(), raw(tag.data()),
                       tag.size());
      return;
    }
    with_.gcm256_init(&key_, &context_, raw(nonce.data()), raw(in.header.data()), in.header.size());
    std::size_t done = 0;
    for (const ConstBytes piece : {in.payload, in.padding}) {
      if (piece.empty()) continue;
      with_.gcm256_enc_update(&key_, &context_, raw(out.data() + done), raw(piece.data()),
                              piece.size());
      done += piece.size();
    }
    with_.gcm256_enc_finalize(&key_, &context_, raw(tag.data()), tag.size());
  }

  bool open(const Nonce& nonce, const PacketCipher::Sealed& in) override {
    std::array<std::byte, kTagSize> expected;
    with_.gcm256_dec(&key_, &context_, raw(in.payload.data()), raw(in.payload.data()),
                     in.payload.size(), raw(nonce.data()), raw(in.header.data()), in.header.size(),
                     raw(expected.data()), in.tag.size());
    return CRYPTO_memcmp(expected.data(), in.tag.data(), in.tag.size()) == 0;
  }

 private:
  // The data of an empty span may be null, but the library requires an address.
  static const std::uint8_t* raw(const std::byte* bytes) {
    static constexpr std::uint8_t kNothing = 0;
    return bytes != nullptr ? reinterpret_cast<const std::uint8_t*>(bytes) : &kNothing;
  }
  static std::uint8_t* raw(std::byte* bytes) {
    static std::uint8_t nothing = 0;
    return bytes != nullptr ? reinterpret_cast<std::uint8_t*>(bytes) : &nothing;
  }

  const IMB_MGR& with_;
  gcm_key_data key_{};
  gcm_context_data context_{};
};

}  // namespace

std::unique_ptr<Gcm> make_ipsec_mb_gcm() {
  if (functions() == nullptr) return nullptr;
  return std::make_unique<IpsecMbGcm>(*functions());
}

}  // namespace weft::seal

#else

namespace weft::seal {

std::unique_ptr<Gcm> make_ipsec_mb_gcm() { return nullptr; }

}  // namespace weft::seal

#endif
