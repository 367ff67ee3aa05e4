#include "seal/packet_cipher.h"

#include "base/assert.h"
#include "seal/gcm.h"

namespace weft::seal {
namespace {

std::unique_ptr<Gcm> make_gcm(PacketCipher::Use use, PacketCipher::Library library) {
  if (library == PacketCipher::Library::kBest) {
    if (auto gcm = make_ipsec_mb_gcm()) return gcm;
  }
  return make_openssl_gcm(use);
}

}  // namespace

PacketCipher::PacketCipher(Use use, const Key& key, Library library)
    : use_(use), gcm_(make_gcm(use, library)) {
  set_key(key);
}

PacketCipher::PacketCipher(PacketCipher&&) noexcept = default;
PacketCipher& PacketCipher::operator=(PacketCipher&&) noexcept = default;
PacketCipher::~PacketCipher() = default;

void PacketCipher::set_key(const Key& key) { gcm_->set_key(key); }

void PacketCipher::seal(const Nonce& nonce, const Plain& in, Bytes out, Bytes tag) {
  WEFT_ASSERT(use_ == Use::kSeal && out.size() == in.payload.size() + in.padding.size());
  WEFT_ASSERT(!tag.empty() && tag.size() <= kTagSize);
  gcm_->seal(nonce, in, out, tag);
}

bool PacketCipher::open(const Nonce& nonce, const Sealed& in) {
  WEFT_ASSERT(use_ == Use::kOpen);
  if (in.tag.empty() || in.tag.size() > kTagSize) return false;
  return gcm_->open(nonce, in);
}

}  // namespace weft::seal
