#include "transport/psn_window.h"

#include <bit>

namespace weft::transport {

PsnBlockPool::PsnBlockPool(std::uint32_t count_max)
    : blocks_(std::make_unique_for_overwrite<PsnBlock[]>(count_max)), count_max_(count_max) {
  free_.reserve(count_max);
}

std::uint32_t PsnBlockPool::take() {
  std::uint32_t index = kNone;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (fresh_ < count_max_) {
    index = fresh_++;
  } else {
    return kNone;
  }
  ++in_use_;
  blocks_[index].lost = 0;
  return index;
}

void PsnBlockPool::give_back(std::uint32_t index) {
  WEFT_ASSERT(index < fresh_ && in_use_ > 0);
  --in_use_;
  free_.push_back(index);
}

PsnWindow::PsnWindow(PsnBlockPool& pool, std::uint32_t window_max, Psn first)
    : pool_(&pool), window_max_(window_max), cack_(first - 1), next_(first), lost_hint_(first) {
  WEFT_ASSERT(window_max > 0 && window_max <= kWindowMax);
  // One block more than the window: the window may begin and end inside a block.
  std::uint32_t count = std::bit_ceil(window_max / PsnBlock::kSize + 2);
  blocks_ = std::make_unique<std::uint32_t[]>(count);
  for (std::uint32_t i = 0; i < count; ++i) blocks_[i] = PsnBlockPool::kNone;
  block_mask_ = count - 1;
}

PsnRecord* PsnWindow::open() {
  if (span() >= window_max_) return nullptr;
  std::uint32_t& block = blocks_[block_slot(next_)];
  if (block == PsnBlockPool::kNone) {
    block = pool_->take();
    if (block == PsnBlockPool::kNone) return nullptr;
  }
  PsnRecord& record = (*pool_)[block].records[next_.value() % PsnBlock::kSize];
  record = PsnRecord{};
  record.state = PsnState::kLost;  // sent() changes this; not counted as lost
  next_ = next_ + 1;
  return &record;
}

void PsnWindow::sent(Psn psn, PsnRecord& record, Time now, std::uint16_t ev) {
  WEFT_ASSERT(record.state == PsnState::kLost);  // lost, or opened and not sent yet
  if (record.copies > 0) {
    WEFT_ASSERT(lost_ > 0);
    --lost_;
    set_lost_bit(psn, false);
  }
  if (record.copies < 0xff) ++record.copies;
  record.state = PsnState::kOutstanding;
  record.sent_at_ps = now.ps();
  record.ev = ev;
  record.blamed = false;
  const auto slot = static_cast<std::uint16_t>(psn.value());
  if (outstanding_ == 0) {
    oldest_ = slot;
  } else {
    WEFT_ASSERT(this->record(psn_of_slot(newest_)).state == PsnState::kOutstanding);
    this->record(psn_of_slot(newest_)).newer = slot;
    record.older = newest_;
  }
  newest_ = slot;
  ++outstanding_;
  check_sums();
}

void PsnWindow::set_lost_bit(Psn psn, bool lost) {
  std::uint64_t& bits = (*pool_)[blocks_[block_slot(psn)]].lost;
  const std::uint64_t bit = 1ull << psn.value() % PsnBlock::kSize;
  WEFT_ASSERT(((bits & bit) != 0) != lost);
  bits ^= bit;
}

void PsnWindow::unlink(Psn psn, const PsnRecord& record) {
  const auto slot = static_cast<std::uint16_t>(psn.value());
  const bool first = slot == oldest_, last = slot == newest_;
  WEFT_ASSERT(outstanding_ > 0);
  WEFT_ASSERT((first && last) == (outstanding_ == 1));
  if (first && !last) oldest_ = record.newer;
  if (last && !first) newest_ = record.older;
  if (!first && !last) {
    PsnRecord& older = this->record(psn_of_slot(record.older));
    PsnRecord& newer = this->record(psn_of_slot(record.newer));
    WEFT_ASSERT(older.newer == slot && newer.older == slot);
    older.newer = record.newer;
    newer.older = record.older;
  }
  --outstanding_;
}

void PsnWindow::lose(Psn psn, PsnRecord& record) {
  WEFT_ASSERT(record.state == PsnState::kOutstanding);
  unlink(psn, record);
  record.state = PsnState::kLost;
  set_lost_bit(psn, true);
  if (lost_++ == 0 || psn.since(lost_hint_) < 0) lost_hint_ = psn;
}

bool PsnWindow::receive(Psn psn, PsnRecord& record) {
  if (record.state == PsnState::kReceived) return false;
  if (record.state == PsnState::kOutstanding) {
    unlink(psn, record);
  } else {
    WEFT_ASSERT(lost_ > 0);
    --lost_;
    set_lost_bit(psn, false);
  }
  record.state = PsnState::kReceived;
  ++received_;
  return true;
}

void PsnWindow::advance(Psn cack) {
  WEFT_ASSERT(contains(cack));
  const auto passed = static_cast<std::uint32_t>(cack.since(cack_));
  WEFT_ASSERT(received_ >= passed);  // each of them was received
  received_ -= passed;
  // Gives back the blocks that lie wholly at or below the new cumulative PSN.
  const Psn old_first = cack_ + 1;
  const std::uint32_t new_block = (cack + 1).value() / PsnBlock::kSize;
  std::uint32_t block = old_first.value() / PsnBlock::kSize;
  cack_ = cack;
  if (lost_hint_.since(cack_) <= 0) lost_hint_ = cack_ + 1;
  constexpr std::uint32_t kBlocks = (Psn::kMask + 1) / PsnBlock::kSize;
  for (; block != new_block; block = (block + 1) % kBlocks) {
    std::uint32_t& index = blocks_[block & block_mask_];
    if (index != PsnBlockPool::kNone) pool_->give_back(index);
    index = PsnBlockPool::kNone;
  }
  if (is_idle() && cack_.value() % PsnBlock::kSize != PsnBlock::kSize - 1) {
    std::uint32_t& index = blocks_[block_slot(cack_)];
    if (index != PsnBlockPool::kNone) pool_->give_back(index);
    index = PsnBlockPool::kNone;
  }
  check_sums();
}

Psn PsnWindow::first_lost() {
  WEFT_ASSERT(lost_ > 0);
  for (Psn psn = lost_hint_;;) {
    const std::uint64_t bits =
        (*pool_)[blocks_[block_slot(psn)]].lost >> psn.value() % PsnBlock::kSize;
    if (bits != 0) return lost_hint_ = psn + std::countr_zero(bits);
    psn = psn + static_cast<std::int32_t>(PsnBlock::kSize - psn.value() % PsnBlock::kSize);
    WEFT_ASSERT(next_.since(psn) > 0);
  }
}

void PsnWindow::clear() {
  for (std::uint32_t i = 0; i <= block_mask_; ++i) {
    if (blocks_[i] != PsnBlockPool::kNone) pool_->give_back(blocks_[i]);
    blocks_[i] = PsnBlockPool::kNone;
  }
  cack_ = next_ - 1;
  outstanding_ = lost_ = received_ = 0;
}

}  // namespace weft::transport
