// Endpoint, set-up: QPs are created, configured, connected and destroyed.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "transport/endpoint.h"

namespace weft::transport {
namespace {

bool is_alike(const QpConfig& a, const QpConfig& b) {
  return std::tie(a.peer, a.mtu, a.sack_bytes, a.mpr, a.mpr_dest, a.dynamic_mpr, a.receive_budget,
                  a.wimm_max, a.wimm_dest_max, a.trim_nack, a.retry, a.nscc) ==
         std::tie(b.peer, b.mtu, b.sack_bytes, b.mpr, b.mpr_dest, b.dynamic_mpr, b.receive_budget,
                  b.wimm_max, b.wimm_dest_max, b.trim_nack, b.retry, b.nscc);
}

}  // namespace

Endpoint::Endpoint(const EndpointConfig& config, world::Memory& memory, Trace* trace)
    : qps_({.qp_count_max = config.qp_count_max,
            .first_qpn = config.first_qpn,
            .qpn_bits = config.qpn_bits}),
      memory_(&memory),
      trace_(trace, config.host),
      ports_({.port_count = config.port_count, .unlisted = config.unlisted_ports}),
      peers_({.peer_count_max = config.peer_count_max, .port_count = config.port_count}),
      pool_(config.psn_block_count_max),
      control_(config.control_queue_max),
      router_({.port_count = config.port_count, .shares_port = config.answers_delay > Duration()}),
      reverse_evs_(config.reverse_confirm),
      prober_(config.bad_ev_count_max),
      probe_budget_(kSoftwareRules.probes_per_ms),
      asks_(config.ask_count_max),
      journal_(config.ev_news_max),
      deadlines_(qps_.size()),
      ready_(config.qp_count_max),
      completions_(config.completion_queue_max),
      failures_(config.tell_failures ? config.qp_count_max : 1),
      answers_({.delay = config.answers_delay, .qp_count_max = qps_.size()}),
      config_(config),
      prng_(Prng(config.seed).fork("endpoint", config.host)),
      headers_(std::make_unique_for_overwrite<std::array<std::byte, wire::kHeaderSizeMax>[]>(
          config.batch_max)) {
  WEFT_ASSERT(config.batch_max >= world::kBatchMin);
  set_prefetch(prefetch_table_);
}

Endpoint::~Endpoint() = default;

// `evs_used`: EVs that other QPs hold.
Result<void> Endpoint::check(const QpConfig& config, std::uint32_t evs_used) const {
  if (config.mpr == 0 || config.mpr > 255 || config.mpr_dest == 0 || config.mpr_dest > 255) {
    return Error{ErrorKind::kInvalid, "mpr must be 1 to 255 (units of 128 PSNs)"};
  }
  if (config.evs.empty() || config.evs.size() >= PathSet::kNone) {
    return Error{ErrorKind::kInvalid, "a QP needs 1 to 65534 EVs"};
  }
  for (const fabric::Ev& ev : config.evs) {
    if (ev.port >= config_.port_count)
      return Error{ErrorKind::kInvalid, "an EV names a port that is not there"};
  }
  if (evs_used + config.evs.size() > config_.ev_count_max) {
    return Error{ErrorKind::kExhausted, "no EV left: ev_count_max is reached"};
  }
  return {};
}

Result<Qpn> Endpoint::create_qp(const QpConfig& config, Psn first_psn) {
  if (qps_.full()) return Error{ErrorKind::kExhausted, "no QP left: qp_count_max is reached"};
  WEFT_CHECK(check(config, evs_used_));
  const Qpn qpn = qps_.next_number();
  evs_used_ += static_cast<std::uint32_t>(config.evs.size());
  qps_.emplace(options_for(config, qpn, first_psn), config.evs);
  return qpn;
}

Result<void> Endpoint::configure_qp(Qpn qpn, const QpConfig& config) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state != QpState::kInit) return Error{ErrorKind::kWrongState, "the QP is not in INIT"};
  const std::uint32_t others = evs_used_ - qp->requestor.paths().size();
  WEFT_CHECK(check(config, others));
  const Psn first_psn = qp->first_psn;
  Ring<std::uint64_t> receives = std::move(qp->receives);
  qps_.erase(qps_.index_of(*qp));
  qps_.emplace(options_for(config, qpn, first_psn), config.evs).receives = std::move(receives);
  evs_used_ = others + static_cast<std::uint32_t>(config.evs.size());
  return {};
}

Qp::Options Endpoint::options_for(const QpConfig& config, Qpn qpn, Psn first_psn) {
  const QpParams* params = params_for(config);
  Qp::Options options;
  options.params = params;
  options.qpn = qpn;
  options.first_psn = first_psn;
  options.receive_queue_max =
      config.receive_queue_max != 0 ? config.receive_queue_max : config_.receive_queue_max;
  options.requestor = {
      .params = params,
      .pool = &pool_,
      .first_psn = first_psn,
      .send_queue_max = config.send_queue_max != 0 ? config.send_queue_max : config_.send_queue_max,
      .paths = {.policy = config.policy,
                .condemn = config.condemn,
                .active = std::min<std::uint32_t>(config.ev_active,
                                                  static_cast<std::uint32_t>(config.evs.size())),
                .min_active = 0,
                .port_count = config_.port_count,
                .prior_losses = params->peer->prior_losses,
                .confirm = params->peer->loss_confirmation,
                .seed = prng_.fork("paths", qpn).next(),
                .trace = trace_.get(),
                .journal = config_.ev_news_max > 0 ? &journal_ : nullptr,
                .host = config_.host,
                .qpn = qpn}};
  PathSet::Options& paths = options.requestor.paths;
  paths.min_active = std::max(paths.active * config.ev_min_active_share_percent / 100, 1u);
  if (config.ev_min_active > 0) paths.min_active = std::min(config.ev_min_active, paths.active);
  const std::uint32_t mtu_dest = config.mtu_dest != 0 ? config.mtu_dest : params->mtu;
  options.responder = {
      .window = config.mpr_dest * 128,
      .wimm_max = config.wimm_dest_max,
      .mtu = mtu_dest,
      .mtu_unlisted = std::max(mtu_dest, config.mtu_dest_unlisted),
      .sack_bytes = config.sack_bytes != 0 ? config.sack_bytes : params->peer->sack_bytes,
      .peer = params->peer,
      .trim_nack = config.trim_nack,
      .domain = config.domain,
      .nack_interval = config.nscc.base_rtt};
  return options;
}

// QPs with the same configuration share one set of parameters. Options that only the path set needs
// are passed to it directly, and are not shared.
const QpParams* Endpoint::params_for(const QpConfig& config) {
  QpConfig key = config;
  key.evs = {};
  key.policy = {};
  key.condemn = {};
  key.ev_active = key.ev_min_active_share_percent = key.ev_min_active = 0;
  key.send_queue_max = key.receive_queue_max = key.domain = 0;
  for (const auto& params : params_) {
    if (is_alike(params->config, key)) return params.get();
  }
  std::unique_ptr<QpParams> params;
  if (params_.size() >= config_.qp_count_max) {
    // The table is full. It has at least as many entries as there can be QPs, so one entry is
    // unused.
    for (auto& candidate : params_) {
      bool used = false;
      qps_.for_each([&](const Qp& qp) { used |= qp.params == candidate.get(); });
      if (used) continue;
      params = std::move(candidate);
      std::erase(params_, nullptr);
      break;
    }
  }
  if (params == nullptr) params = std::make_unique<QpParams>();
  params->config = key;
  params->mtu = config.mtu != 0 ? config.mtu : config_.mtu;
  params->peer = &rules_of(config.peer);
  params->budget_unit_bytes = config.receive_budget ? params->peer->budget_unit_bytes : 0;
  params->nscc = NsccParams::derive(config.nscc, params->mtu, *params->peer);
  params->burst = config_.burst;
  params_.push_back(std::move(params));
  return params_.back().get();
}

Result<void> Endpoint::connect(Time now, Qpn qpn, const PeerInfo& info) {
  WEFT_CHECK(start_receiving(now, qpn, info));
  start_requestor(now, *qps_.find(qpn));
  return {};
}

Result<void> Endpoint::start_receiving(Time now, Qpn qpn, const PeerInfo& info) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state != QpState::kInit) return Error{ErrorKind::kWrongState, "the QP is not in INIT"};
  WEFT_TRY(const std::uint32_t index, add_peer(info));
  Peer& peer = peers_[index];
  // The peer may not know which of our ports are up, or may hold an outdated state.
  const bool is_first_qp = peer.first_qp == Peer::kNobody;
  const bool tell_ports = is_first_qp && (peer.ports.was_updated || !ports_.are_all_up());
  WEFT_ASSERT(qp->peer == Qp::kNoPeer);
  qp->peer = index;
  qp->peer_qpn = info.qpn & wire::kQpnMask;
  qps_.link(peer, *qp);
  qp->responder.start(info.first_psn, {.local_qpn = qpn, .peer_qpn = qp->peer_qpn, .peer = index});
  qp->peer_first_psn = info.first_psn;
  qp->state = QpState::kReadyToReceive;
  ReverseEvs::adopt(now, peer, qp->requestor.paths(), ports_.count(), prng_);
  if (tell_ports) ports_.start_update(now, index, peer.ports, request_ids_, control_);
  return {};
}

Result<void> Endpoint::start_sending(Time now, Qpn qpn, const QpConfig& config, Psn first_psn) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state != QpState::kReadyToReceive)
    return Error{ErrorKind::kWrongState, "the QP is not in RTR"};
  const std::uint32_t others = evs_used_ - qp->requestor.paths().size();
  WEFT_CHECK(check(config, others));
  const Qp::Options options = options_for(config, qpn, first_psn);
  std::destroy_at(&qp->requestor);
  std::construct_at(&qp->requestor, options.requestor, config.evs);
  qp->params = options.params;
  qp->first_psn = first_psn;
  evs_used_ = others + static_cast<std::uint32_t>(config.evs.size());
  start_requestor(now, *qp);
  return {};
}

// RTR -> RTS.
void Endpoint::start_requestor(Time now, Qp& qp) {
  WEFT_ASSERT(qp.state == QpState::kReadyToReceive && qp.peer != Qp::kNoPeer);
  qp.requestor.start(now, {.local_qpn = qp.qpn, .peer_qpn = qp.peer_qpn, .peer = qp.peer});
  qp.state = QpState::kReadyToSend;
  if (!trace_) return;
  trace_.qp_connected(now, qp, peers_[qp.peer].host);
  auto c = context(now);
  qp.requestor.trace_window(c);
}

Result<void> Endpoint::fail_qp(Time now, Qpn qpn) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state != QpState::kError) fail(now, *qp, Status::kFlushed);
  return {};
}

Result<void> Endpoint::limit_receive(Qpn qpn, const ReceiveLimit& limit) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (limit.cwnd_penalty > 127 || limit.mpr > qp->params->config.mpr_dest) {
    return Error{ErrorKind::kInvalid, "the penalty is 0 to 127, and mpr at most the QP's mpr_dest"};
  }
  qp->responder.set_receive_limit(limit);
  return {};
}

// Removes the QP from all lists and timers of the endpoint, and frees its place.
void Endpoint::remove(Qp& qp) {
  const std::uint32_t index = qps_.index_of(qp);
  if (qp.peer != Qp::kNoPeer) qps_.unlink(peers_[qp.peer], qp);
  completions_.release(static_cast<std::uint32_t>(qp.requestor.incomplete() + qp.receives.size()));
  qp.requestor.fail(Status::kFlushed);  // gives back the QP's PSN records
  ready_.forget(index);
  deadlines_.remove(index);
  answers_.forget(index);
  WEFT_ASSERT(evs_used_ >= qp.requestor.paths().size());
  evs_used_ -= qp.requestor.paths().size();
  qps_.erase(index);
}

Result<void> Endpoint::destroy_qp(Time now, Qpn qpn) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  trace_.qp_gone(now, *qp);
  remove(*qp);
  return {};
}

Result<void> Endpoint::reset_qp(Time now, Qpn qpn, const QpConfig& config) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  WEFT_CHECK(check(config, evs_used_ - qp->requestor.paths().size()));
  trace_.qp_gone(now, *qp);
  const Psn first_psn = qp->first_psn;
  remove(*qp);
  qps_.emplace(options_for(config, qpn, first_psn), config.evs);
  evs_used_ += static_cast<std::uint32_t>(config.evs.size());
  return {};
}

Result<void> Endpoint::set_congestion(Qpn qpn, const NsccConfig& nscc) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  QpConfig config = qp->params->config;
  config.nscc = nscc;
  qp->params = params_for(config);
  qp->requestor.set_congestion(*qp->params);
  if (qp->may_send() && qp->requestor.has_work()) mark_ready(*qp);
  return {};
}

}  // namespace weft::transport
