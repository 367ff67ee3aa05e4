// CaptureReader: decrypts captured packets of a secured job, given only the job secret. Hellos show
// the random values of both ends in clear; the reader derives the keys of every session from them.
// A sealed packet belongs to the key under which its tags match.
//
// It records which process used which key with which counter, and reports a pair that was used
// twice. It does not use seal::ReceiveDirection, because a replay window would hide exactly these
// repetitions.
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

  // Reads the next captured packet. REQUIRES the order in which the packets crossed the wire.
  void take(const PacketTap::Seen& packet);

  // The number of packets that each process sealed. A process is named by slot and incarnation.
  using Process = std::pair<std::uint16_t, std::uint64_t>;
  const std::map<Process, std::uint64_t>& sealed_by() const { return sealed_by_; }
  std::uint64_t least_sealed() const;
  std::uint64_t attributed() const { return attributed_; }
  std::size_t key_count() const;
  // The number of packets that match no key. A test must check that it is 0, because nothing is
  // known about such packets.
  std::uint64_t unattributed() const { return unattributed_; }
  // Each pair (key, nonce) or (key, counter) that occurred twice, as text. Neither may ever repeat.
  const std::vector<std::string>& repeated() const { return repeated_; }

 private:
  // One direction of a session. Indexed by key, so that two sessions with the same key would share
  // one entry.
  struct Direction {
    seal::EndId from{}, to{};
    seal::PacketCipher payload, header;
    std::set<std::uint64_t> counters{};
    std::set<seal::Nonce> nonces{};
  };

  void take_hello(ConstBytes packet);
  void add(const seal::SessionEnd& from, const seal::SessionEnd& to);
  struct PacketShape {
    std::size_t header_size = 0;
    bool is_write = false;
    std::uint32_t dest_qpn = 0;
  };
  static bool opens(Direction& direction, const PacketShape& shape, const seal::Nonce& nonce,
                    std::vector<std::byte> packet);

  seal::KeySchedule keys_;
  std::map<seal::Key, Direction> directions_;
  std::map<Process, std::uint64_t> sealed_by_;
  std::uint64_t attributed_ = 0, unattributed_ = 0;
  std::vector<std::string> repeated_;
};

}  // namespace weft::hostile
