// DeviceNode: completions go to their CQs, failures to the event queues of their contexts.
#include <arpa/inet.h>

#include <algorithm>

#include "device/device_node.h"

namespace weft::device {
namespace {

ibv_wc_status status_of(transport::Status status) {
  switch (status) {
    case transport::Status::kOk:
      return IBV_WC_SUCCESS;
    case transport::Status::kRetryExceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case transport::Status::kRemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    case transport::Status::kRemoteInvalid:
      return IBV_WC_REM_INV_REQ_ERR;
    case transport::Status::kRemoteOperation:
      return IBV_WC_REM_OP_ERR;
    // kLocalAccess: the peer's request was invalid. Our own work requests are only flushed.
    case transport::Status::kLocalAccess:
    case transport::Status::kFlushed:
      return IBV_WC_WR_FLUSH_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

}  // namespace

void DeviceNode::deliver_completions(Time now) {
  for (;;) {
    bool any = false;
    while (const std::size_t count = endpoint_.poll_completions(completed_)) {
      for (std::size_t i = 0; i < count;) {
        const std::size_t run = deliver_run({&completed_[i], count - i});
        if (run == 0) deliver(now, completed_[i]);
        i += std::max<std::size_t>(run, 1);
      }
      any = true;
    }
    transport::Endpoint::QpFailure failure;
    while (endpoint_.poll_failure(failure)) {
      on_failure(now, failure);
      any = true;
    }
    if (!any) return;
    retry_stalled(now);  // may fail QPs; the next round collects their completions
  }
}

void DeviceNode::retry_stalled(Time now) {
  std::swap(stalled_, retrying_);
  for (const std::uint32_t place : retrying_) {
    DeviceQp* const qp = qps_[place];
    if (qp == nullptr) continue;
    qp->stalled = false;
    post_new(now, *qp);
  }
  retrying_.clear();
}

// Delivers the successful writes at the front that belong to one QP, as far as its CQ has room,
// with one locking of the CQ. Returns their number.
std::size_t DeviceNode::deliver_run(std::span<const transport::Completion> completions) {
  DeviceQp* const qp = find(completions[0].qpn);
  if (qp == nullptr) return 0;
  const std::uint32_t first = qp->sends.oldest_slot(), mask = qp->sends.limits().depth - 1;
  const SendQueue::Work* const works = &qp->sends.work(0);
  const std::uint32_t qpn = qp->qpn;
  const bool signal_all = qp->options.signal_all;
  std::uint32_t count = 0;
  CompletionQueue::Run out(*qp->options.send_cq);
  for (const transport::Completion& completion : completions) {
    if (completion.qpn != qpn || completion.kind != transport::CompletionKind::kWrite ||
        completion.status != transport::Status::kOk)
      break;
    const SendQueue::Work& work = works[(first + count) & mask];
    if (work.signalled || signal_all) {
      ibv_wc* const wc = out.next();
      if (wc == nullptr) break;
      *wc = {};
      wc->wr_id = work.request.id;
      wc->status = IBV_WC_SUCCESS;
      wc->opcode = IBV_WC_RDMA_WRITE;
      wc->byte_len = work.request.size;
      wc->qp_num = qpn;
    }
    ++count;
  }
  // Free the slots before the CQ is unlocked: a program that sees a completion may post at once.
  qp->sends.retire(count);
  sends_under_way_ -= count;
  return count;
}

void DeviceNode::deliver(Time now, const transport::Completion& completion) {
  DeviceQp* const qp = find(completion.qpn);
  if (qp == nullptr) return;  // the QP has been destroyed
  if (completion.kind == transport::CompletionKind::kReceiveImmediate)
    return finish_receive(now, *qp, completion);
  ibv_wc_status status = status_of(completion.status);
  if (status == IBV_WC_WR_FLUSH_ERR && qp->local_error) {
    status = IBV_WC_LOC_PROT_ERR;
    qp->local_error = false;
  }
  finish_write(now, *qp, status, static_cast<std::uint32_t>(completion.status));
}

void DeviceNode::finish_write(Time now, DeviceQp& qp, ibv_wc_status status, std::uint32_t vendor) {
  const SendQueue::Work& work = qp.sends.work(qp.sends.oldest_slot());
  ibv_wc wc{};
  wc.wr_id = work.request.id;
  wc.status = status;
  wc.opcode = IBV_WC_RDMA_WRITE;
  wc.vendor_err = vendor;
  wc.byte_len = work.request.size;
  wc.qp_num = qp.qpn;
  const bool wanted = work.signalled || qp.options.signal_all || status != IBV_WC_SUCCESS;
  qp.sends.retire();
  --sends_under_way_;
  if (wanted) push(now, qp, *qp.options.send_cq, wc, Solicited::kNo);
}

void DeviceNode::finish_receive(Time now, DeviceQp& qp, const transport::Completion& completion) {
  ibv_wc wc{};
  wc.wr_id = completion.id;
  wc.status = status_of(completion.status);
  wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  wc.vendor_err = static_cast<std::uint32_t>(completion.status);
  wc.byte_len = completion.size;
  wc.imm_data = htonl(completion.immediate);
  wc.qp_num = qp.qpn;
  wc.wc_flags = IBV_WC_WITH_IMM;
  qp.receives.retire();
  push(now, qp, *qp.options.receive_cq, wc,
       completion.solicited ? Solicited::kYes : Solicited::kNo);
}

void DeviceNode::push(Time now, DeviceQp& qp, CompletionQueue& cq, const ibv_wc& wc,
                      Solicited solicited) {
  const CompletionQueue::Pushed pushed = cq.push(wc, solicited);
  if (pushed == CompletionQueue::Pushed::kYes) return;
  // The CQ is full and this completion is lost, so neither the CQ nor the QP can be trusted any
  // more. The QP must be in ERR before the event is delivered.
  [[maybe_unused]] const auto failed = endpoint_.fail_qp(now, qp.qpn);
  qp.state = IBV_QPS_ERR;
  if (pushed == CompletionQueue::Pushed::kFirstLost) {
    qp.options.events->push(
        {.owner = qp.options.owner, .element = cq.handle(), .type = IBV_EVENT_CQ_ERR});
  }
}

void DeviceNode::on_failure(Time now, const transport::Endpoint::QpFailure& failure) {
  DeviceQp* const qp = find(failure.qpn);
  if (qp == nullptr) return;
  qp->state = IBV_QPS_ERR;
  if (failure.status != transport::Status::kFlushed) {
    qp->options.events->push({.owner = qp->options.owner,
                              .element = qp->options.handle,
                              .type = failure.status == transport::Status::kLocalAccess
                                          ? IBV_EVENT_QP_ACCESS_ERR
                                          : IBV_EVENT_QP_FATAL});
  }
  flush_new(now, *qp);
}

// Completes with a flush error the posts that were not handed to the endpoint.
void DeviceNode::flush_new(Time now, DeviceQp& qp) {
  while (qp.receives.has_new()) {
    const std::uint64_t id = qp.receives.next_id();
    qp.receives.mark_under_way();
    finish_receive(now, qp, {.id = id, .status = transport::Status::kFlushed});
  }
  while (qp.sends.has_new()) {
    qp.sends.mark_under_way();
    ++sends_under_way_;
    finish_write(now, qp, IBV_WC_WR_FLUSH_ERR,
                 static_cast<std::uint32_t>(transport::Status::kFlushed));
  }
}

}  // namespace weft::device
