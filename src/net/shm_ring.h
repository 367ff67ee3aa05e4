// A ring of records in shared memory, from one process to another. ShmWriter and ShmReader are its
// two ends.
//
// A record begins on a cache line with one word that holds its sizes. The writer clears the word
// behind a record, then writes the record, then its word. A non-zero word shows a complete record.
// So a short record reaches the reader in a single cache line, and the writer needs no shared
// index. The reader has a shared index, which shows the writer the free space.
//
// Neither end trusts the other. Each end keeps its own positions in private memory. Values read
// from shared memory are copied once and then checked; a ring with an impossible value is broken
// for good. Payload is read in place: if it changes while it is copied, only the peer that changed
// it is harmed.
//
// Sleeping: an end that wants to sleep sets its flag in the ring, then checks the ring once more.
// The peer wakes it over the link's socket. If no flag is set, no wake-up is sent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "net/bulk_copy.h"
#include "net/shm_memory.h"

namespace weft::net {

inline constexpr std::size_t kShmHeaderMax = 56;  // with the record's word: one cache line
inline constexpr std::size_t kShmPayloadMax = 65536;

// The layout of one record in the ring. Short payload follows its header. Longer payload starts on
// a cache line, because it is copied in bulk.
struct ShmShape {
  std::size_t header_size = 0, payload_size = 0;

  static constexpr std::size_t kLine = 64, kWord = 8;
  constexpr std::size_t payload_at() const {
    const std::size_t end = kWord + header_size;
    return payload_size <= 256 ? end : (end + kLine - 1) / kLine * kLine;
  }
  constexpr std::size_t size() const {
    return (payload_at() + payload_size + kLine - 1) / kLine * kLine;
  }
};
inline constexpr std::size_t kShmRecordMax =
    ShmShape{.header_size = kShmHeaderMax, .payload_size = kShmPayloadMax}.size();

class ShmWriter {
 public:
  // REQUIRES memory from create(), which outlives the writer.
  explicit ShmWriter(const ShmMemory& memory);

  // How many records of the largest size fit now; 0 also when the ring is broken.
  std::uint32_t room();
  struct Record {
    ConstBytes header;
    ConstBytes payload;
    std::uint16_t note = 0;                             // passed to the reader unchanged
    CopyRoutine routine = CopyRoutine::kThroughCaches;  // how bulk payload is copied
  };
  // Writes a record. REQUIRES room() > 0 after the previous push(), and header and payload of at
  // most their maximum sizes.
  void push(const Record& record);

  // To be called after pushes. True, once, if the reader sleeps and must be woken.
  bool take_reader_asleep();
  // To be called before sleeping. True if the ring has no room: the reader then wakes us when there
  // is room.
  bool sleep();
  void wake();

  // The reader's index had an impossible value.
  bool is_broken() const { return broken_; }

 private:
  std::size_t free_bytes() const { return capacity_ - static_cast<std::size_t>(head_ - tail_); }
  void look();

  std::byte* control_;
  std::byte* data_;
  std::size_t capacity_;
  std::uint64_t head_ = 0, tail_ = 0;  // bytes written; bytes released by the reader, as last read
  bool broken_ = false;
};

class ShmReader {
 public:
  explicit ShmReader(const ShmMemory& memory);

  struct Record {
    std::uint16_t note = 0;
    std::uint32_t header_size = 0;
    ConstBytes payload;  // in shared memory; valid until release()
  };
  // The next record, with its header copied to `header`; false if there is none. REQUIRES
  // header.size() >= kShmHeaderMax.
  bool next(Bytes header, Record& out);
  // Releases all records that next() gave, so that the writer may overwrite them. True, once, if
  // the writer sleeps for lack of space and must be woken.
  bool release();

  // To be called before sleeping. False if a record is already there.
  bool sleep();
  void wake();

  // A record was invalid.
  bool is_broken() const { return broken_; }
  // Bytes read so far.
  std::uint64_t taken() const { return tail_; }

 private:
  std::byte* control_;
  const std::byte* data_;
  std::size_t capacity_;
  std::uint64_t tail_ = 0, released_ = 0;
  std::uint64_t called_at_ = 0;  // tail_ when release() last read the writer's sleep flag
  bool broken_ = false;
};

}  // namespace weft::net
