// A ring of records in shared memory, from one process to another: ShmWriter and ShmReader are its
// two ends.
//
// A record begins on a cache line with one word that says how long it is. The writer clears the word
// behind a record, then writes the record, then its word: a word that is not zero is a record, so
// that a short record reaches the reader in a single cache line and there is no index of the writer
// to share. The reader's index is shared, for the writer to see what is free.
//
// Neither end believes the other. All positions are private; what is read from shared memory is
// copied once and then checked, and a ring in which something impossible is found is broken for
// good. Payload is read in place: it may change while it is copied, which is the peer's own loss.
//
// Sleeping: the end that wants to sleep says so in the ring, looks once more, and is then woken by
// whatever the link has for that (a word on its socket); who finds nobody asleep calls nobody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "net/bulk_copy.h"
#include "net/shm_memory.h"

namespace weft::net {

inline constexpr std::size_t kShmHeaderMax = 56;  // with its word: one cache line
inline constexpr std::size_t kShmPayloadMax = 65536;

// What one record takes in the ring. Short payload follows its header; one that is copied in bulk
// starts on a cache line.
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
  // REQUIRES fresh memory; it outlives the writer.
  explicit ShmWriter(const ShmMemory& memory);

  // How many records of the largest size fit now; 0 also when the ring is broken.
  std::uint32_t room();
  struct Record {
    ConstBytes header;
    ConstBytes payload;
    std::uint16_t note = 0;                 // given to the reader as it is
    CopyWay way = CopyWay::kThroughCaches;  // for payload that is bulk
  };
  // REQUIRES room() > 0 since the last push, header and payload within the bounds.
  void push(const Record& record);

  // After pushes: true if the reader sleeps and must be woken, once.
  bool take_reader_asleep();
  // Before sleeping: true if there is no room, and the reader will wake us when there is some.
  bool sleep();
  void wake();

  // The reader's index was impossible.
  bool is_broken() const { return broken_; }

 private:
  std::size_t free_bytes() const { return capacity_ - static_cast<std::size_t>(head_ - tail_); }
  void look();

  std::byte* control_;
  std::byte* data_;
  std::size_t capacity_;
  std::uint64_t head_ = 0, tail_ = 0;  // bytes ever written; read, as last seen
  bool broken_ = false;
};

class ShmReader {
 public:
  explicit ShmReader(const ShmMemory& memory);

  struct Record {
    std::uint16_t note = 0;
    std::uint32_t header_size = 0;
    ConstBytes payload;  // in shared memory: valid till release()
  };
  // The next record, its header copied to `header`; false if there is none. REQUIRES
  // header.size() >= kShmHeaderMax.
  bool next(Bytes header, Record& out);
  // Everything that next() gave may be overwritten. True if the writer sleeps for want of room and
  // must be woken, once.
  bool release();

  // Before sleeping: false if something is there already.
  bool sleep();
  void wake();

  // A record was impossible.
  bool is_broken() const { return broken_; }
  // Bytes ever taken.
  std::uint64_t taken() const { return tail_; }

 private:
  std::byte* control_;
  const std::byte* data_;
  std::size_t capacity_;
  std::uint64_t tail_ = 0, released_ = 0;
  std::uint64_t called_at_ = 0;  // what was released when the writer was last asked if it sleeps
  bool broken_ = false;
};

}  // namespace weft::net
