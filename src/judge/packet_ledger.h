// PacketLedger: every datagram that left an endpoint and has not arrived yet. A packet that arrives
// must be in the ledger.
//
// A packet is identified by its destination host and all its header bytes, a trimmed packet by the
// bytes that it kept. Lost packets never arrive. The ledger therefore forgets entries older than
// `life`, and the oldest ones if there are more than `packets_max`. Once it has forgotten an entry
// because of `packets_max`, it accepts every packet, because it can no longer be sure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "base/trace.h"

namespace weft::judge {

class PacketLedger {
 public:
  struct Config {
    Duration life = Duration::s(30);
    std::size_t packets_max = std::size_t{1} << 18;
    bool duplicates = false;  // a packet may arrive more often than it was sent
  };
  explicit PacketLedger(Config config);

  void on_send(const TraceRecord& sent);
  // Returns false if the packet was not sent. REQUIRES a packet that is not damaged.
  bool on_receive(const TraceRecord& received);

  std::size_t size() const { return count_; }

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffff'ffff;

  struct Entry {
    Time at;
    std::uint32_t to = 0;
    std::uint32_t size = 0;
    std::uint32_t copies = 0;
    Slot bucket_next = kNone;
    Slot older = kNone, newer = kNone;
    std::uint8_t header_size = 0;
    std::array<std::byte, 48> header{};
  };

  static std::uint64_t hash(const TraceRecord& record, std::uint32_t to);
  static std::uint64_t hash(const Entry& entry);
  static std::uint64_t hash(const std::byte* header, std::size_t size, std::uint32_t to);
  Slot& bucket(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  Slot find(const TraceRecord& received, std::uint32_t to);
  void insert(const TraceRecord& sent, std::uint64_t hash);
  void forget(Slot slot);
  void forget_old(Time now);
  void rehash();

  Config config_;
  std::vector<Entry> entries_;
  std::vector<Slot> buckets_;
  Slot free_ = kNone;  // first free entry; the next ones follow by bucket_next
  Slot oldest_ = kNone, newest_ = kNone;
  std::size_t count_ = 0;
  bool forgot_beyond_bound_ = false;
};

}  // namespace weft::judge
