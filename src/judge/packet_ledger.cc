#include "judge/packet_ledger.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "judge/trace_flags.h"
#include "wire/packet.h"

namespace weft::judge {
namespace {

constexpr std::size_t kBthSize = 12;
constexpr std::size_t kBucketsMin = 1024;

// Only data packets are trimmed, and a trimming switch keeps at least the BTH.
std::size_t hashed_size(const std::byte* header, std::size_t size) {
  const bool is_data = size >= kBthSize && wire::is_write(static_cast<wire::Opcode>(header[0]));
  return is_data ? kBthSize : size;
}

}  // namespace

PacketLedger::PacketLedger(Config config) : config_(config), buckets_(kBucketsMin, kNone) {
  WEFT_ASSERT(config.packets_max > 0);
}

std::uint64_t PacketLedger::hash(const std::byte* header, std::size_t size, std::uint32_t to) {
  std::uint64_t state = 0x243f6a8885a308d3u ^ to;
  size = hashed_size(header, size);
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, header + at, std::min<std::size_t>(8, size - at));
    state = (state ^ word) * 0x9fb21c651e98df25u;
    state ^= state >> 32;
  }
  return state;
}

std::uint64_t PacketLedger::hash(const TraceRecord& record, std::uint32_t to) {
  return hash(record.header.data(), record.header_bytes().size(), to);
}

std::uint64_t PacketLedger::hash(const Entry& entry) {
  return hash(entry.header.data(), entry.header_size, entry.to);
}

void PacketLedger::on_send(const TraceRecord& sent) {
  forget_old(sent.at);
  const std::uint64_t key = hash(sent, sent.peer);
  for (Slot slot = bucket(key); slot != kNone; slot = entries_[slot].bucket_next) {
    Entry& entry = entries_[slot];
    if (entry.to == sent.peer && entry.size == sent.size && entry.header_size == sent.header_size &&
        std::memcmp(entry.header.data(), sent.header.data(), sent.header_size) == 0) {
      ++entry.copies;
      return;
    }
  }
  if (count_ == config_.packets_max) {
    forgot_beyond_bound_ = true;
    forget(oldest_);
  }
  insert(sent, key);
}

bool PacketLedger::on_receive(const TraceRecord& received) {
  Slot slot = find(received, received.host);
  if (slot == kNone) slot = find(received, TraceRecord::kUnknownHost);
  if (slot == kNone) return forgot_beyond_bound_;
  if (!config_.duplicates && --entries_[slot].copies == 0) forget(slot);
  return true;
}

PacketLedger::Slot PacketLedger::find(const TraceRecord& received, std::uint32_t to) {
  const bool trimmed = is_trimmed(received);
  const std::size_t size = received.header_size;
  if (trimmed && size < kBthSize) return kNone;
  for (Slot slot = bucket(hash(received, to)); slot != kNone; slot = entries_[slot].bucket_next) {
    const Entry& entry = entries_[slot];
    const bool fits = trimmed ? size <= entry.header_size
                              : size == entry.header_size && entry.size == received.size;
    if (entry.to == to && fits &&
        std::memcmp(entry.header.data(), received.header.data(), size) == 0) {
      return slot;
    }
  }
  return kNone;
}

void PacketLedger::insert(const TraceRecord& sent, std::uint64_t key) {
  Slot slot = free_;
  if (slot == kNone) {
    slot = static_cast<Slot>(entries_.size());
    entries_.emplace_back();
  } else {
    free_ = entries_[slot].bucket_next;
  }
  Entry& entry = entries_[slot];
  entry.at = sent.at;
  entry.to = sent.peer;
  entry.size = sent.size;
  entry.copies = 1;
  entry.header_size = sent.header_size;
  entry.header = sent.header;
  entry.bucket_next = bucket(key);
  bucket(key) = slot;
  entry.older = newest_;
  entry.newer = kNone;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = slot;
  newest_ = slot;
  if (++count_ > buckets_.size()) rehash();
}

void PacketLedger::forget(Slot slot) {
  Entry& entry = entries_[slot];
  Slot* link = &bucket(hash(entry));
  while (*link != slot) link = &entries_[*link].bucket_next;
  *link = entry.bucket_next;
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  entry.bucket_next = free_;
  free_ = slot;
  --count_;
}

void PacketLedger::forget_old(Time now) {
  while (oldest_ != kNone && entries_[oldest_].at < now - config_.life) forget(oldest_);
}

void PacketLedger::rehash() {
  buckets_.assign(buckets_.size() * 2, kNone);
  for (Slot slot = oldest_; slot != kNone; slot = entries_[slot].newer) {
    Slot& head = bucket(hash(entries_[slot]));
    entries_[slot].bucket_next = head;
    head = slot;
  }
}

}  // namespace weft::judge
