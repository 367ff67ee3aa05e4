// Implements mrc.h: completion channels and completion queues.
#include <mrc/mrc.h>

#include "device/c_edge.h"
#include "device/mrc_objects.h"

using namespace weft;
using namespace weft::device;

extern "C" {

int mrc_create_comp_channel(mrc_context* context, mrc_comp_channel** out) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || out == nullptr) return EINVAL;
    auto channel = CompletionChannel::create();
    if (!channel) return EMFILE;
    *out = new mrc_comp_channel{.context = *context,
                                .channel = std::unique_ptr<CompletionChannel>(*channel)};
    ++context->children;
    return 0;
  });
  return returned(error, fail_value);
}

int mrc_get_comp_channel_fd(mrc_comp_channel* channel, int* fd) noexcept {
  const int error = guarded([&] {
    if (channel == nullptr || fd == nullptr) return EINVAL;
    *fd = channel->channel->fd();
    return 0;
  });
  return returned(error, fail_minus_one);
}

int mrc_destroy_comp_channel(mrc_comp_channel* channel) noexcept {
  const int error = guarded([&] {
    if (channel == nullptr) return EINVAL;
    if (channel->channel->attached() != 0) return EBUSY;
    --channel->context.children;
    delete channel;
    return 0;
  });
  return returned(error, fail_value);
}

mrc_cq* mrc_create_cq(mrc_context* context, int cqe, void* program, mrc_comp_channel* channel,
                      int vector) noexcept {
  return guarded_pointer<mrc_cq>([&]() -> mrc_cq* {
    if (context == nullptr || cqe < 1 || cqe > CompletionQueue::kEntriesMax || vector < 0 ||
        vector >= context->verbs.ibv()->num_comp_vectors ||
        (channel != nullptr && &channel->context != context))
      return fail_null(EINVAL);
    auto* const cq = new mrc_cq(*context, static_cast<std::uint32_t>(cqe), program, channel);
    ++context->children;
    return cq;
  });
}

int mrc_poll_cq(mrc_cq* cq, int count, ibv_wc* wc) noexcept {
  if (is_forked_child()) return fail_minus_one(EPERM);
  if (cq == nullptr || count < 0 || (count > 0 && wc == nullptr)) return fail_minus_one(EINVAL);
  const std::span<ibv_wc> out(wc, static_cast<std::size_t>(count));
  std::size_t got = cq->queue.poll(out);
  if (got > 0) {
    cq->context.engine.note_poll();
  } else if (cq->queue.take_is_last_poll()) {
    cq->context.engine.poll_once();
    got = cq->queue.poll(out);
  } else {
    cq->context.engine.poll();
    got = cq->queue.poll(out);
  }
  // Completions were lost and cannot be reported. So when the queue is empty, every poll fails.
  if (got == 0 && cq->queue.is_overrun()) return fail_minus_one(EIO);
  return static_cast<int>(got);
}

int mrc_req_notify_cq(mrc_cq* cq, int solicited_only) noexcept {
  const int error = guarded([&] {
    if (cq == nullptr) return EINVAL;
    cq->queue.arm(solicited_only != 0 ? CompletionQueue::Notify::kSolicited
                                      : CompletionQueue::Notify::kAny);
    if (cq->queue.channel() != nullptr) cq->context.engine.end_polls();
    return 0;
  });
  return returned(error, fail_value);
}

int mrc_get_cq_event(mrc_comp_channel* channel, mrc_cq** cq, void** program) noexcept {
  const int error = guarded([&] {
    if (channel == nullptr || cq == nullptr || program == nullptr) return EINVAL;
    CompletionQueue* queue = nullptr;
    if (const int none = channel->channel->get(queue)) return none;
    *cq = static_cast<mrc_cq*>(const_cast<void*>(queue->handle()));
    *program = (*cq)->program_context;
    return 0;
  });
  return returned(error, fail_minus_one);
}

void mrc_ack_cq_events(mrc_cq* cq, unsigned int count) noexcept {
  if (cq == nullptr || is_forked_child()) return;
  if (cq->queue.channel() != nullptr) cq->queue.channel()->acknowledge(cq->queue, count);
}

int mrc_destroy_cq(mrc_cq* cq) noexcept {
  const int error = guarded([&] {
    if (cq == nullptr) return EINVAL;
    if (cq->qps.load() != 0) return EBUSY;
    mrc_context& context = cq->context;
    context.verbs.events.forget(cq);
    delete cq;  // waits until the program has acknowledged the CQ's events
    --context.children;
    return 0;
  });
  return returned(error, fail_value);
}

}  // extern "C"
