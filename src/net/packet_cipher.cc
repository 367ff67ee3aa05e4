#include "net/packet_cipher.h"

#include <openssl/evp.h>

#include "base/assert.h"

namespace weft::net {
namespace {

const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

struct PacketCipher::Context {
  EVP_CIPHER_CTX* evp = EVP_CIPHER_CTX_new();
  Context() { WEFT_ASSERT(evp != nullptr); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_CIPHER_CTX_free(evp); }

  // OpenSSL refuses what is asked here only when it is broken: the sizes are ours.
  void must(int done) const { WEFT_ASSERT(done == 1); }
  void add(bool seals, ConstBytes aad) const {
    if (aad.empty()) return;
    int size = 0;
    const int length = static_cast<int>(aad.size());
    must(seals ? EVP_EncryptUpdate(evp, nullptr, &size, raw(aad.data()), length)
               : EVP_DecryptUpdate(evp, nullptr, &size, raw(aad.data()), length));
  }
};

PacketCipher::PacketCipher(Use use, const Key& key)
    : use_(use), context_(std::make_unique<Context>()) {
  const bool seals = use == Use::kSeal;
  context_->must(EVP_CipherInit_ex(context_->evp, EVP_aes_256_gcm(), nullptr, nullptr, nullptr,
                                   seals ? 1 : 0));
  set_key(key);
}

PacketCipher::PacketCipher(PacketCipher&&) noexcept = default;
PacketCipher& PacketCipher::operator=(PacketCipher&&) noexcept = default;
PacketCipher::~PacketCipher() = default;

void PacketCipher::set_key(const Key& key) {
  context_->must(EVP_CipherInit_ex(context_->evp, nullptr, nullptr, raw(key.data()), nullptr, -1));
}

void PacketCipher::seal(const Nonce& nonce, const Plain& in, Bytes out, Bytes tag) {
  WEFT_ASSERT(use_ == Use::kSeal && out.size() == in.payload.size() + in.padding.size());
  WEFT_ASSERT(!tag.empty() && tag.size() <= kTagSize);
  EVP_CIPHER_CTX* const evp = context_->evp;
  context_->must(EVP_EncryptInit_ex(evp, nullptr, nullptr, nullptr, raw(nonce.data())));
  context_->add(true, in.header);
  int size = 0;
  std::size_t done = 0;
  for (const ConstBytes piece : {in.payload, in.padding}) {
    if (piece.empty()) continue;
    context_->must(EVP_EncryptUpdate(evp, raw(out.data() + done), &size, raw(piece.data()),
                                     static_cast<int>(piece.size())));
    done += piece.size();
  }
  std::byte none{};
  context_->must(EVP_EncryptFinal_ex(evp, raw(&none), &size));
  context_->must(
      EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()), tag.data()));
}

bool PacketCipher::open(const Nonce& nonce, const Sealed& in) {
  WEFT_ASSERT(use_ == Use::kOpen);
  if (in.tag.empty() || in.tag.size() > kTagSize) return false;
  EVP_CIPHER_CTX* const evp = context_->evp;
  context_->must(EVP_DecryptInit_ex(evp, nullptr, nullptr, nullptr, raw(nonce.data())));
  context_->must(EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_GCM_SET_TAG, static_cast<int>(in.tag.size()),
                                     const_cast<std::byte*>(in.tag.data())));
  context_->add(false, in.header);
  int size = 0;
  if (!in.payload.empty()) {
    context_->must(EVP_DecryptUpdate(evp, raw(in.payload.data()), &size, raw(in.payload.data()),
                                     static_cast<int>(in.payload.size())));
  }
  std::byte none{};
  return EVP_DecryptFinal_ex(evp, raw(&none), &size) == 1;
}

}  // namespace weft::net
