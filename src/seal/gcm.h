// AES-256-GCM under one key, by one library: what PacketCipher stands on. Values only; which library
// it is makes no difference to the bytes.
//
// One thread at a time calls it. Nothing is allocated after construction.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "seal/packet_cipher.h"

namespace weft::seal {

class Gcm {
 public:
  virtual ~Gcm() = default;
  virtual void set_key(const Key& key) = 0;
  // As PacketCipher's, which has checked the sizes.
  virtual void seal(const Nonce& nonce, const PacketCipher::Plain& in, Bytes out, Bytes tag) = 0;
  virtual bool open(const Nonce& nonce, const PacketCipher::Sealed& in) = 0;
};

std::unique_ptr<Gcm> make_openssl_gcm(PacketCipher::Use use);

// Null where the library was not there at build time, or this CPU lacks what makes it worth while.
std::unique_ptr<Gcm> make_ipsec_mb_gcm();

}  // namespace weft::seal
