// Gcm: AES-256-GCM under one key, by one crypto library. PacketCipher is built on it. All libraries
// give the same bytes.
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
  // As PacketCipher::seal() and open(), which have checked the sizes.
  virtual void seal(const Nonce& nonce, const PacketCipher::Plain& in, Bytes out, Bytes tag) = 0;
  virtual bool open(const Nonce& nonce, const PacketCipher::Sealed& in) = 0;
};

std::unique_ptr<Gcm> make_openssl_gcm(PacketCipher::Use use);

// Null if the library was not there at build time, or this CPU lacks the instructions that make the
// library faster than OpenSSL.
std::unique_ptr<Gcm> make_ipsec_mb_gcm();

}  // namespace weft::seal
