// PsnWindow: the requestor's record of each packet that it sent: outstanding, lost or received.
//
// One record per PSN from cack + 1 to the newest sent. Records live in blocks of 64, which come
// from the endpoint's pool as the window opens and return to it as cack passes them: an idle QP
// holds no block. The ring of blocks has a power-of-two size, so that it has no seam where PSNs
// wrap at 2^24.
//
// Each PSN is in one state: outstanding (sent, nothing known), lost (to be retransmitted),
// received. The outstanding PSNs form a list in the order in which their newest copies were sent;
// loss detection reads its head. They are exactly the packets in flight.
//
// Invariants: cack < next; each PSN between them is in one of the three states, except a PSN that
// was just opened and not sent yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/assert.h"
#include "base/psn.h"
#include "base/time.h"
#include "world/world.h"

namespace weft::transport {

enum class PsnState : std::uint8_t { kOutstanding, kLost, kReceived };

struct PsnRecord {
  std::int64_t sent_at_ps;  // when the newest copy was sent
  std::uint16_t ev;         // path set slot of the newest copy's EV
  std::uint16_t older;      // neighbours in the list of send order, as PSN mod 2^16
  std::uint16_t newer;
  std::uint8_t copies;  // how often it was sent, saturating
  PsnState state : 2;
  bool blamed : 1;  // the loss counts against its EV
  bool full : 1;    // a full packet without immediate: its size is known

  Time sent_at() const { return Time::from_start(Duration::ps(sent_at_ps)); }
};
static_assert(sizeof(PsnRecord) == 16 && std::is_trivially_default_constructible_v<PsnRecord>);

struct PsnBlock {
  static constexpr std::uint32_t kSize = 64;
  std::uint64_t lost;  // bit i: records[i] is lost
  PsnRecord records[kSize];
};

// The PSN blocks of all QPs of an endpoint. Bounded; never grows after construction.
class PsnBlockPool {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  explicit PsnBlockPool(std::uint32_t count_max);
  // Returns kNone when the bound is reached.
  std::uint32_t take();
  void give_back(std::uint32_t index);
  PsnBlock& operator[](std::uint32_t index) { return blocks_[index]; }
  std::uint32_t in_use() const { return in_use_; }
  // Bytes of memory that were ever touched.
  std::size_t bytes() const { return fresh_ * sizeof(PsnBlock) + free_.capacity() * 4; }

 private:
  std::unique_ptr<PsnBlock[]> blocks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t fresh_ = 0;  // first untouched block: memory is used up to it
  std::uint32_t count_max_ = 0;
  std::uint32_t in_use_ = 0;
};

class PsnWindow {
 public:
  // For windows up to `window_max` PSNs; `first` is the first PSN that will be sent. REQUIRES 0 <
  // window_max <= kWindowMax.
  static constexpr std::uint32_t kWindowMax = 0x8000;  // a PSN mod 2^16 names one of the window
  PsnWindow(PsnBlockPool& pool, std::uint32_t window_max, Psn first);

  Psn cack() const { return cack_; }  // every PSN up to this one is received
  Psn next() const { return next_; }  // the next PSN to be sent for the first time
  std::uint32_t span() const { return static_cast<std::uint32_t>(next_.since(cack_)) - 1; }
  std::uint32_t window_max() const { return window_max_; }
  std::uint32_t outstanding() const { return outstanding_; }
  std::uint32_t lost() const { return lost_; }
  std::uint32_t received_above_cack() const { return received_; }
  bool is_idle() const { return span() == 0; }
  std::size_t bytes() const { return (block_mask_ + 1) * sizeof(blocks_[0]); }
  bool contains(Psn psn) const { return psn.since(cack_) > 0 && next_.since(psn) > 0; }

  // REQUIRES contains(psn).
  PsnRecord& record(Psn psn) {
    WEFT_ASSERT(contains(psn));
    return pool_->operator[](blocks_[block_slot(psn)]).records[psn.value() % PsnBlock::kSize];
  }

  // Takes the next new PSN. Null when the pool is exhausted or the ring is full: the caller retries
  // later.
  PsnRecord* open();
  // A copy of `psn` was sent: the PSN is outstanding, and newest in send order. REQUIRES that it is
  // not outstanding.
  void sent(Psn psn, PsnRecord& record, Time now, std::uint16_t ev);
  // Outstanding -> lost. REQUIRES state kOutstanding.
  void lose(Psn psn, PsnRecord& record);
  // Any state -> received. False if it was received already.
  bool receive(Psn psn, PsnRecord& record);
  // Moves the cumulative PSN to `cack`. REQUIRES that every PSN up to it is received, and
  // contains(cack).
  void advance(Psn cack);

  // The outstanding PSN whose newest copy was sent first, and the PSN after it in send order.
  // REQUIRES outstanding() > 0.
  Psn oldest() const {
    WEFT_ASSERT(outstanding_ > 0);
    return psn_of_slot(oldest_);
  }
  Psn after(const PsnRecord& record) const { return psn_of_slot(record.newer); }
  // The lowest PSN in state lost. REQUIRES lost() > 0.
  Psn first_lost();

  // The memory of the records that the next acknowledgement reads first, for prefetching.
  world::Node::Part prefetch() {
    constexpr std::uint32_t kBytes = 128;
    const Psn first = cack_ + 1;
    return contains(first) ? world::Node::Part{&record(first), kBytes} : world::Node::Part();
  }

  // Gives all blocks back. Nothing is outstanding after that.
  void clear();

 private:
  std::uint32_t block_slot(Psn psn) const { return psn.value() / PsnBlock::kSize & block_mask_; }
  Psn psn_of_slot(std::uint16_t slot) const {
    return cack_ + static_cast<std::uint16_t>(slot - static_cast<std::uint16_t>(cack_.value()));
  }
  void unlink(Psn psn, const PsnRecord& record);
  void set_lost_bit(Psn psn, bool lost);
  void check_sums() const {
    WEFT_ASSERT(next_.since(cack_) > 0);
    WEFT_ASSERT(outstanding_ + lost_ + received_ == span());
  }

  PsnBlockPool* pool_;
  std::unique_ptr<std::uint32_t[]> blocks_;
  std::uint32_t block_mask_ = 0;
  std::uint32_t window_max_ = 0;
  Psn cack_, next_, lost_hint_;
  std::uint32_t outstanding_ = 0, lost_ = 0, received_ = 0;
  std::uint16_t oldest_ = 0, newest_ = 0;  // ends of the list of send order
};

}  // namespace weft::transport
