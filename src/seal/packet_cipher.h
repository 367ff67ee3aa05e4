// PacketCipher: AES-256-GCM under one key, either to seal or to open, by the fastest library that
// this host has (gcm.h). Nothing is allocated after construction.
//
// The caller must never give the same nonce twice under one key: see SendCounter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "seal/key_schedule.h"

namespace weft::seal {

class Gcm;

using Nonce = std::array<std::byte, 12>;
inline constexpr std::size_t kTagSize = 16;

class PacketCipher {
 public:
  enum class Use : std::uint8_t { kSeal, kOpen };
  enum class Library : std::uint8_t { kBest, kOpenssl };
  PacketCipher(Use use, const Key& key, Library library = Library::kBest);
  PacketCipher(PacketCipher&&) noexcept;
  PacketCipher& operator=(PacketCipher&&) noexcept;
  ~PacketCipher();

  void set_key(const Key& key);

  // `header` is authenticated and stays in clear. `payload` and `padding` are encrypted; both may
  // be empty. `out` gets encrypted payload and padding, one behind the other.
  struct Plain {
    ConstBytes header{};
    ConstBytes payload{}, padding{};
  };
  // REQUIRES kSeal, out.size() == payload + padding, 1 <= tag.size() <= kTagSize.
  void seal(const Nonce& nonce, const Plain& in, Bytes out, Bytes tag);

  struct Sealed {
    ConstBytes header{};
    Bytes payload{};  // decrypted in place
    ConstBytes tag{};
  };
  // Decrypts and verifies. False: the packet was not sealed under this key and nonce, and `payload`
  // is now invalid. REQUIRES kOpen.
  bool open(const Nonce& nonce, const Sealed& in);

 private:
  Use use_;
  std::unique_ptr<Gcm> gcm_;
};

}  // namespace weft::seal
