// Gcm by OpenSSL. The context is created once and gets a new nonce for each packet.
#include <openssl/evp.h>

#include "base/assert.h"
#include "seal/gcm.h"

namespace weft::seal {
namespace {

const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

class OpensslGcm final : public Gcm {
 public:
  explicit OpensslGcm(PacketCipher::Use use) : evp_(EVP_CIPHER_CTX_new()) {
    WEFT_ASSERT(evp_ != nullptr);
    must(EVP_CipherInit_ex(evp_, EVP_aes_256_gcm(), nullptr, nullptr, nullptr,
                           use == PacketCipher::Use::kSeal ? 1 : 0));
  }
  OpensslGcm(const OpensslGcm&) = delete;
  OpensslGcm& operator=(const OpensslGcm&) = delete;
  ~OpensslGcm() override { EVP_CIPHER_CTX_free(evp_); }

  void set_key(const Key& key) override {
    must(EVP_CipherInit_ex(evp_, nullptr, nullptr, raw(key.data()), nullptr, -1));
  }

  void seal(const Nonce& nonce, const PacketCipher::Plain& in, Bytes out, Bytes tag) override {
    must(EVP_EncryptInit_ex(evp_, nullptr, nullptr, nullptr, raw(nonce.data())));
    int size = 0;
    if (!in.header.empty()) {
      must(EVP_EncryptUpdate(evp_, nullptr, &size, raw(in.header.data()),
                             static_cast<int>(in.header.size())));
    }
    std::size_t done = 0;
    for (const ConstBytes piece : {in.payload, in.padding}) {
      if (piece.empty()) continue;
      must(EVP_EncryptUpdate(evp_, raw(out.data() + done), &size, raw(piece.data()),
                             static_cast<int>(piece.size())));
      done += piece.size();
    }
    std::byte none{};
    must(EVP_EncryptFinal_ex(evp_, raw(&none), &size));
    must(EVP_CIPHER_CTX_ctrl(evp_, EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()), tag.data()));
  }

  bool open(const Nonce& nonce, const PacketCipher::Sealed& in) override {
    must(EVP_DecryptInit_ex(evp_, nullptr, nullptr, nullptr, raw(nonce.data())));
    must(EVP_CIPHER_CTX_ctrl(evp_, EVP_CTRL_GCM_SET_TAG, static_cast<int>(in.tag.size()),
                             const_cast<std::byte*>(in.tag.data())));
    int size = 0;
    if (!in.header.empty()) {
      must(EVP_DecryptUpdate(evp_, nullptr, &size, raw(in.header.data()),
                             static_cast<int>(in.header.size())));
    }
    if (!in.payload.empty()) {
      must(EVP_DecryptUpdate(evp_, raw(in.payload.data()), &size, raw(in.payload.data()),
                             static_cast<int>(in.payload.size())));
    }
    std::byte none{};
    return EVP_DecryptFinal_ex(evp_, raw(&none), &size) == 1;
  }

 private:
  // OpenSSL can fail here only by its own fault, because we choose the sizes.
  static void must(int done) { WEFT_ASSERT(done == 1); }

  EVP_CIPHER_CTX* evp_;
};

}  // namespace

std::unique_ptr<Gcm> make_openssl_gcm(PacketCipher::Use use) {
  return std::make_unique<OpensslGcm>(use);
}

}  // namespace weft::seal
