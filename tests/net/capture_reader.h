// CaptureReader: what went over the wire of a secured job, read by one who has the job secret and
// nothing else. Hellos tell it, in clear, what the ends drew, from which it makes the keys of every
// session; each sealed packet belongs to the key under which its tags match.
//
// It keeps who used which key with which counter, and finds out if anybody did twice. None of the
// code that seals or opens packets for the processes is used: a replay window would hide what it
// looks for.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "packet_tap.h"
#include "seal/key_schedule.h"
#include "seal/packet_cipher.h"

namespace weft::hostile {

class CaptureReader {
 public:
  explicit CaptureReader(ConstBytes job_secret)
      : keys_(seal::KeySchedule::from_secret(job_secret).value()) {}

  // In the order of the wire.
  void take(const PacketTap::Seen& packet);

  // Packets sealed by each process that was ever there: its slot, its incarnation.
  using Process = std::pair<std::uint16_t, std::uint64_t>;
  const std::map<Process, std::uint64_t>& sealed_by() const { return sealed_by_; }
  std::uint64_t least_sealed() const;
  std::uint64_t attributed() const { return attributed_; }
  std::size_t key_count() const;
  // Packets that belong to no key: what the reader does not understand it does not vouch for.
  std::uint64_t unattributed() const { return unattributed_; }
  // (key, nonce) that occurred again, in words; and (key, counter) alone, which is never to be.
  const std::vector<std::string>& repeated() const { return repeated_; }

 private:
  // One direction of a session. By key, so that sessions that came to one key would be one.
  struct Direction {
    seal::EndId from{}, to{};
    seal::PacketCipher payload, header;
    std::set<std::uint64_t> counters{};
    std::set<seal::Nonce> nonces{};
  };

  void take_hello(ConstBytes packet);
  void add(const seal::SessionEnd& from, const seal::SessionEnd& to);
  struct Shape {
    std::size_t header_size = 0;
    bool is_write = false;
    std::uint32_t dest_qpn = 0;
  };
  static bool opens(Direction& direction, const Shape& shape, const seal::Nonce& nonce,
                    std::vector<std::byte> packet);

  seal::KeySchedule keys_;
  std::map<seal::Key, Direction> directions_;
  std::map<Process, std::uint64_t> sealed_by_;
  std::uint64_t attributed_ = 0, unattributed_ = 0;
  std::vector<std::string> repeated_;
};

}  // namespace weft::hostile
