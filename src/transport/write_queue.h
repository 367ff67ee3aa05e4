// WriteQueue: the posted writes of one requestor; finds the write that a packet is part of.
//
// Oldest first: writes that are done and not yet polled, writes that are sent and not done, and
// writes that are not sent completely. Packets are cut from them in order, so PSNs follow the order
// of posting. Owned by one requestor; memory taken at construction.
//
// Invariant: done <= sent <= posted, each a count from the front. The writes between done and sent
// have all their PSNs.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/psn.h"
#include "base/ring.h"
#include "transport/work.h"
#include "wire/packet.h"

namespace weft::transport {

class WriteQueue {
 public:
  struct Entry {
    WriteRequest request;
    Psn first, last;  // valid once the first packet is sent
    std::uint16_t msn = 0, rqmsn = 0;
    std::uint32_t packets_sent = 0;
    Status status = Status::kOk;
  };
  struct Piece {  // one packet's part of a write
    std::uint32_t offset = 0, size = 0;
    wire::Opcode opcode = wire::Opcode::kWriteOnly;
  };

  // `mtu`: payload bytes of a full packet. REQUIRES it is not 0.
  WriteQueue(std::uint32_t count_max, std::uint32_t mtu) : queue_(count_max), mtu_(mtu) {
    WEFT_ASSERT(mtu > 0);
  }

  bool is_full() const { return queue_.full(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(queue_.size()); }
  std::size_t bytes() const { return queue_.bytes(); }
  bool has_unsent() const { return sent_count_ < queue_.size(); }
  // There are writes that are sent completely and not done.
  bool has_under_way() const { return done_count_ < sent_count_; }
  bool has_incomplete() const { return done_count_ < queue_.size(); }
  std::uint16_t immediates_under_way() const { return immediates_under_way_; }

  // REQUIRES !is_full().
  void post(const WriteRequest& request);

  // The first write that is not sent completely. REQUIRES has_unsent().
  const Entry& first_unsent() const {
    WEFT_ASSERT(has_unsent());
    return queue_[sent_count_];
  }
  // first_unsent() is the last write of the queue.
  bool is_last_unsent() const { return sent_count_ + 1 == queue_.size(); }
  // The next packet of first_unsent() is sent as `psn`, which follows the PSN before.
  void on_sent(Psn psn);

  // The oldest write that is not done. REQUIRES has_incomplete().
  const Entry& oldest() const {
    WEFT_ASSERT(has_incomplete());
    return queue_[done_count_];
  }
  // The oldest write is done: all its packets are received and acknowledged. REQUIRES
  // has_under_way().
  void retire();

  // The write that a sent PSN belongs to. REQUIRES that this write is not done.
  const Entry& entry_of(Psn psn) const { return queue_[index_of(psn)]; }
  Piece piece(const Entry& entry, std::uint32_t index) const;
  Piece piece_of(Psn psn, const Entry& entry) const {
    return piece(entry, static_cast<std::uint32_t>(psn.since(entry.first)));
  }
  std::uint32_t packet_count(const Entry& entry) const {
    const std::uint32_t size = entry.request.size;
    return size == 0 ? 1 : (size - 1) / mtu_ + 1;
  }
  // The nominal size of a packet, as both ends count bytes in flight; and of a packet of `mtu`
  // bytes.
  static std::int64_t nominal_size(const Piece& piece);
  std::int64_t full_size() const {
    return nominal_size({.size = mtu_, .opcode = wire::Opcode::kWriteMiddle});
  }

  // Takes a write that is done; false if there is none. Unsignalled writes that succeeded have no
  // completion: take_unsignalled_done() counts them.
  bool poll_completion(Qpn qpn, Completion& out);
  // The number of writes that were done without a completion since the last call.
  std::uint32_t take_unsignalled_done() {
    const std::uint32_t count = unsignalled_done_;
    unsignalled_done_ = 0;
    return count;
  }
  // Ends all writes: `status` for the write that holds `refused` (if null, the oldest), flushed for
  // the rest.
  void fail(Status status, const Psn* refused);

 private:
  std::size_t index_of(Psn psn) const;

  Ring<Entry> queue_;
  std::uint32_t mtu_;
  std::uint32_t done_count_ = 0;        // from the front: finished, and not yet polled
  std::uint32_t sent_count_ = 0;        // from the front: all packets sent once
  std::uint32_t unsignalled_done_ = 0;  // finished without a completion, not yet taken
  std::uint16_t next_msn_ = 0, next_rqmsn_ = 0;
  std::uint16_t immediates_under_way_ = 0;
};

}  // namespace weft::transport
