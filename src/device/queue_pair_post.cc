// QueuePair: posting. Copies the work requests of verbs into the QP's rings.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "device/queue_pair.h"

namespace weft::device {

namespace {

// The size of the whole message, or some number above the maximum.
std::uint64_t size_of(std::span<const ibv_sge> sges) {
  std::uint64_t size = 0;
  for (const ibv_sge& sge : sges) size += sge.length;
  return size;
}

}  // namespace

void QueuePair::put_pieces(std::uint32_t slot, std::span<const ibv_sge> sges) {
  Piece* const pieces = qp_.sends.pieces(slot).data();
  std::uint16_t count = 0;
  for (const ibv_sge& sge : sges) {
    if (sge.length > 0) pieces[count++] = {.at = sge.addr, .size = sge.length, .key = sge.lkey};
  }
  SendQueue::Work& work = qp_.sends.work(slot);
  work.piece_count = count;
  work.key = pieces[0].key;
  work.request.local_at = pieces[0].at;
}

void QueuePair::put_inline(std::uint32_t slot, std::span<const ibv_sge> sges) {
  std::byte* const bytes = qp_.sends.inline_bytes(slot).data();
  std::byte* to = bytes;
  for (const ibv_sge& sge : sges) {
    if (sge.length > 0) std::memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
    to += sge.length;
  }
  SendQueue::Work& work = qp_.sends.work(slot);
  work.piece_count = 1;
  work.request.local_at = reinterpret_cast<std::uintptr_t>(bytes);
}

// All checks come before the first store, so that a refused work request changes nothing. Nearly
// every write has one piece, which needs no loop.
[[gnu::always_inline]] inline int QueuePair::put(const ibv_send_wr& from) {
  if (static_cast<unsigned>(from.opcode) >= 32 || (options_.opcodes >> from.opcode & 1) == 0)
    return EINVAL;
  const bool immediate = from.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const auto& limits = qp_.sends.limits();
  // A negative number becomes a very large one, which is refused below.
  const auto pieces = static_cast<std::uint32_t>(from.num_sge);
  if (pieces > limits.pieces_max || (pieces > 0 && from.sg_list == nullptr)) return EINVAL;
  const unsigned flags = from.send_flags;
  const bool inlined = (flags & IBV_SEND_INLINE) != 0;
  const std::uint64_t size =
      pieces == 1 ? from.sg_list->length : size_of({from.sg_list, std::size_t{pieces}});
  if (size > kMessageMax || (inlined && size > limits.inline_max)) return EINVAL;
  const std::uint32_t slot = qp_.sends.free_slot();
  if (slot == SendQueue::kNoSlot) return ENOMEM;

  SendQueue::Work& work = qp_.sends.work(slot);
  if (pieces == 1 && size > 0 && !inlined) {
    work.piece_count = 1;
    work.key = from.sg_list->lkey;
    work.request.local_at = from.sg_list->addr;
  } else if (inlined) {
    put_inline(slot, {from.sg_list, pieces});
  } else {
    put_pieces(slot, {from.sg_list, pieces});
  }
  work.request.id = from.wr_id;
  work.request.remote_at = from.wr.rdma.remote_addr;
  work.request.rkey = from.wr.rdma.rkey;
  work.request.size = static_cast<std::uint32_t>(size);
  work.request.immediate = immediate ? ntohl(from.imm_data) : 0;
  work.request.with_immediate = immediate;
  work.signalled = (flags & IBV_SEND_SIGNALED) != 0;
  work.request.solicited = (flags & IBV_SEND_SOLICITED) != 0;
  work.inlined = inlined;
  qp_.sends.publish();
  return 0;
}

int QueuePair::post_send(ibv_send_wr* work, ibv_send_wr** bad) {
  int error = 0;
  bool any = false;
  {
    const std::lock_guard guard(send_lock_);
    for (; work != nullptr; work = work->next) {
      // In ERR a work request is accepted and then flushed.
      constexpr unsigned kTaken = 1u << IBV_QPS_RTS | 1u << IBV_QPS_ERR;
      error = (kTaken >> qp_.state & 1) != 0 ? put(*work) : EINVAL;
      if (error != 0) break;
      any = true;
    }
  }
  if (error != 0 && bad != nullptr) *bad = work;
  if (any) engine_.submit(qp_);
  return error;
}

int QueuePair::post_recv(ibv_recv_wr* work, ibv_recv_wr** bad) {
  int error = 0;
  bool any = false;
  {
    const std::lock_guard guard(receive_lock_);
    for (; work != nullptr; work = work->next) {
      if (qp_.state == IBV_QPS_RESET || work->num_sge < 0 ||
          static_cast<std::uint32_t>(work->num_sge) > options_.receive_pieces_max ||
          (work->num_sge > 0 && work->sg_list == nullptr)) {
        error = EINVAL;
      } else if (qp_.receives.is_full()) {
        error = ENOMEM;
      }
      if (error != 0) break;
      qp_.receives.post(work->wr_id);
      any = true;
    }
  }
  if (error != 0 && bad != nullptr) *bad = work;
  if (any) engine_.submit_receives(qp_);
  // The QP may have just failed. Without this call, perhaps no thread would flush the new work
  // requests.
  if (any && qp_.state == IBV_QPS_ERR) engine_.poll_once();
  return error;
}

}  // namespace weft::device
