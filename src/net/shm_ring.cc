#include "net/shm_ring.h"

#include <cstring>

#include "base/assert.h"

namespace weft::net {
namespace {

// Offsets of the control words. Each is on a cache line of its own, and no two lines are adjacent,
// because the processor fetches adjacent lines in pairs.
constexpr std::size_t kTailAt = 0, kReaderSleepsAt = 128, kWriterSleepsAt = 256;

// The word of every record has these bits set, so that it is never zero.
constexpr std::uint64_t kIsRecord = 0xa5ull << 56;

// The word of a record: kIsRecord, header size (8 bits), note (16), payload size (32).
std::uint64_t to_word(const ShmWriter::Record& r) {
  return kIsRecord | std::uint64_t{r.header.size()} << 48 | std::uint64_t{r.note} << 32 |
         std::uint64_t{r.payload.size()};
}

std::atomic_ref<std::uint64_t> word64(const std::byte* at) {
  return std::atomic_ref<std::uint64_t>(
      *reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(at)));
}

std::atomic_ref<std::uint32_t> flag(std::byte* at) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at));
}

// Both ends exchange the sleep flag atomically. The end that exchanges second sees all that the
// other end wrote before its exchange. So either the sleeping end finds the new record, or it is
// woken. While the peer does not sleep, the cache line stays with this end, which makes the
// exchange cheap.
bool take(std::byte* at) { return flag(at).exchange(0, std::memory_order_acq_rel) != 0; }
void raise(std::byte* at) { flag(at).exchange(1, std::memory_order_acq_rel); }

}  // namespace

// --- the writer --------------------------------------------------------------------------------

ShmWriter::ShmWriter(const ShmMemory& memory)
    : control_(memory.control()), data_(memory.data()), capacity_(memory.capacity()) {}

void ShmWriter::look() {
  const std::uint64_t tail = word64(control_ + kTailAt).load(std::memory_order_acquire);
  // A valid index never goes back, and never exceeds the bytes written.
  if (tail - tail_ > head_ - tail_) {
    broken_ = true;
    return;
  }
  tail_ = tail;
}

std::uint32_t ShmWriter::room() {
  // One cache line stays free for the zero word behind the last record.
  constexpr std::size_t kNeeded = kShmRecordMax + ShmShape::kLine;
  static_assert(kNeeded <= ShmMemory::kCapacityMin / 2);  // ShmReader::release relies on it
  // Read the reader's index only when space is short, because its cache line then moves between the
  // cores.
  if (free_bytes() < capacity_ / 2) look();
  if (broken_ || free_bytes() < kNeeded) return 0;
  return static_cast<std::uint32_t>((free_bytes() - ShmShape::kLine) / kShmRecordMax);
}

void ShmWriter::push(const Record& record) {
  WEFT_ASSERT(record.header.size() <= kShmHeaderMax && record.payload.size() <= kShmPayloadMax);
  const ShmShape shape{.header_size = record.header.size(), .payload_size = record.payload.size()};
  const std::size_t size = shape.size();
  WEFT_ASSERT(size + ShmShape::kLine <= free_bytes());
  std::byte* const at = data_ + (head_ & (capacity_ - 1));
  if (!record.header.empty())
    std::memcpy(at + ShmShape::kWord, record.header.data(), record.header.size());
  if (record.payload.size() >= kBulkMin) {
    copy_bulk(record.routine, at + shape.payload_at(), record.payload.data(),
              record.payload.size());
  } else if (!record.payload.empty()) {
    std::memcpy(at + shape.payload_at(), record.payload.data(), record.payload.size());
  }
  head_ += size;
  word64(data_ + (head_ & (capacity_ - 1))).store(0, std::memory_order_relaxed);
  word64(at).store(to_word(record), std::memory_order_release);
}

bool ShmWriter::take_reader_asleep() { return take(control_ + kReaderSleepsAt); }

bool ShmWriter::sleep() {
  if (room() > 0 || broken_) return false;
  raise(control_ + kWriterSleepsAt);
  if (room() == 0) return true;
  wake();
  return false;
}

void ShmWriter::wake() { take(control_ + kWriterSleepsAt); }

// --- the reader --------------------------------------------------------------------------------

ShmReader::ShmReader(const ShmMemory& memory)
    : control_(memory.control()), data_(memory.data()), capacity_(memory.capacity()) {}

bool ShmReader::next(Bytes header, Record& out) {
  const std::byte* const at = data_ + (tail_ & (capacity_ - 1));
  const std::uint64_t word = word64(at).load(std::memory_order_acquire);
  if (word == 0 || broken_) return false;
  const ShmShape shape{.header_size = static_cast<std::size_t>(word >> 48 & 0xff),
                       .payload_size = static_cast<std::size_t>(word & 0xffff'ffff)};
  // First check the sizes, because later checks rely on them. Then check that the record lies in
  // space that the writer may use: a correct writer never overwrites bytes that are not released.
  if (word >> 56 != kIsRecord >> 56 || shape.header_size > kShmHeaderMax ||
      shape.payload_size > kShmPayloadMax || tail_ + shape.size() - released_ >= capacity_) {
    broken_ = true;
    return false;
  }
  std::memcpy(header.data(), at + ShmShape::kWord, shape.header_size);
  out = {.note = static_cast<std::uint16_t>(word >> 32 & 0xffff),
         .header_size = static_cast<std::uint32_t>(shape.header_size),
         .payload = {at + shape.payload_at(), shape.payload_size}};
  tail_ += shape.size();
  return true;
}

bool ShmReader::release() {
  if (tail_ == released_) return false;
  released_ = tail_;
  word64(control_ + kTailAt).store(tail_, std::memory_order_release);
  // A writer sleeps only while more than half of the ring is not released. The reader releases all
  // of these bytes here, so reading the flag once per quarter of the ring is enough.
  if (tail_ - called_at_ < capacity_ / 4) return false;
  called_at_ = tail_;
  return take(control_ + kWriterSleepsAt);
}

bool ShmReader::sleep() {
  raise(control_ + kReaderSleepsAt);
  const std::byte* const at = data_ + (tail_ & (capacity_ - 1));
  if (word64(at).load(std::memory_order_acquire) == 0) return true;
  wake();
  return false;
}

void ShmReader::wake() { take(control_ + kReaderSleepsAt); }

}  // namespace weft::net
