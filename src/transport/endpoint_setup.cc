// Endpoint, set-up: QPs are made, configured, connected, and let go of.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "transport/endpoint.h"

namespace weft::transport {
namespace {

PortMask mask_of(std::uint32_t port_count) { return static_cast<PortMask>((1u << port_count) - 1); }

bool is_alike(const QpConfig& a, const QpConfig& b) {
  return std::tie(a.peer, a.mtu, a.sack_bytes, a.mpr, a.mpr_dest, a.dynamic_mpr, a.receive_budget,
                  a.wimm_max, a.wimm_dest_max, a.trim_nack, a.retry, a.nscc) ==
         std::tie(b.peer, b.mtu, b.sack_bytes, b.mpr, b.mpr_dest, b.dynamic_mpr, b.receive_budget,
                  b.wimm_max, b.wimm_dest_max, b.trim_nack, b.retry, b.nscc);
}

}  // namespace

Endpoint::Endpoint(const EndpointConfig& config, world::Memory& memory, Trace* trace)
    : first_qpn_(config.first_qpn),
      qp_mask_(std::bit_ceil(config.qp_count_max) - 1),
      qps_(std::make_unique<QpSlot[]>(qp_mask_ + 1)),
      memory_(&memory),
      trace_(trace),
      ports_up_(mask_of(config.port_count)),
      ports_carrier_(mask_of(config.port_count)),
      port_count_(config.port_count),
      pool_(config.psn_block_count_max),
      control_(config.control_queue_max),
      prober_(config.bad_ev_count_max),
      probe_budget_(kSoftwareRules.probes_per_ms),
      asks_(config.ask_count_max),
      journal_(config.ev_news_max),
      deadlines_(std::bit_ceil(config.qp_count_max)),
      ready_(config.qp_count_max),
      completions_(config.completion_queue_max),
      failures_(config.tell_failures ? config.qp_count_max : 1),
      config_(config),
      prng_(Prng(config.seed).fork("endpoint", config.host)),
      headers_(std::make_unique_for_overwrite<std::array<std::byte, wire::kHeaderSizeMax>[]>(
          config.batch_max)) {
  WEFT_ASSERT(config.batch_max >= world::kBatchMin);
  WEFT_ASSERT(config.qpn_bits <= 24 && qp_mask_ >> config.qpn_bits == 0);
  WEFT_ASSERT(config.port_count >= 1 && config.port_count <= world::kPortsMax);
  set_hot(hot_table_);
  touched_.reserve(qp_mask_ + 1);
  watched_.reserve(qp_mask_ + 1);
  peers_.reserve(config.peer_count_max);
  peer_slots_.assign(std::bit_ceil(2 * config.peer_count_max * config.port_count), Peer::kNobody);
}

Endpoint::~Endpoint() = default;

// `evs_used`: by the other QPs.
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
  if (qp_count_ >= config_.qp_count_max) {
    return Error{ErrorKind::kExhausted, "no QP left: qp_count_max is reached"};
  }
  WEFT_CHECK(check(config, evs_used_));
  // QPNs go round in their low bits: a number is used again only after all others.
  const auto qpn_of = [this](std::uint32_t n) {
    const std::uint32_t mask = (1u << config_.qpn_bits) - 1;
    return (first_qpn_ & ~mask) | ((first_qpn_ + n) & mask);
  };
  while (qps_[qp_created_ & qp_mask_] || qpn_of(qp_created_) <= wire::kEndpointQpn) ++qp_created_;
  const Qpn qpn = qpn_of(qp_created_++);
  evs_used_ += static_cast<std::uint32_t>(config.evs.size());
  qps_[(qpn - first_qpn_) & qp_mask_].emplace(options_for(config, qpn, first_psn), config.evs);
  ++qp_count_;
  return qpn;
}

Result<void> Endpoint::configure_qp(Qpn qpn, const QpConfig& config) {
  Qp* const qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state != QpState::kInit) return Error{ErrorKind::kWrongState, "the QP is not in INIT"};
  const std::uint32_t others = evs_used_ - qp->requestor.paths().size();
  WEFT_CHECK(check(config, others));
  const Psn first_psn = qp->first_psn;
  Ring<std::uint64_t> receives = std::move(qp->receives);
  QpSlot& slot = qps_[qp_index(*qp)];
  slot.reset();
  slot.emplace(options_for(config, qpn, first_psn), config.evs);
  slot->receives = std::move(receives);
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
                .trace = trace_,
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

// QPs that are created alike share their parameters. What only the path set needs is told to it,
// and is not shared.
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
    // As many as there can be QPs: one of them has no QP any more.
    for (auto& candidate : params_) {
      bool used = false;
      for (std::uint32_t i = 0; i <= qp_mask_; ++i)
        used |= qps_[i] && qps_[i]->params == candidate.get();
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
  begin(now, *find_qp(qpn));
  return {};
}

Result<void> Endpoint::start_receiving(Time now, Qpn qpn, const PeerInfo& info) {
  Qp* qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state != QpState::kInit) return Error{ErrorKind::kWrongState, "the QP is not in INIT"};
  WEFT_TRY(const std::uint32_t peer, add_peer(info));
  // It may not know which ports are up, or remember what is no longer so.
  const bool first = peers_[peer].first_qp == Peer::kNobody;
  const bool tell = first && (peers_[peer].told || ports_up_ != mask_of(port_count_));
  qp->peer = peer;
  qp->peer_qpn = info.qpn & wire::kQpnMask;
  qp->next_of_peer = peers_[peer].first_qp;
  peers_[peer].first_qp = qp_index(*qp);
  qp->responder.start(info.first_psn, {.local_qpn = qpn, .peer_qpn = qp->peer_qpn, .peer = peer});
  qp->peer_first_psn = info.first_psn;
  qp->state = QpState::kReadyToReceive;
  // Control packets to this peer start on EVs of this QP.
  for (std::uint32_t port = 0; port < port_count_; ++port) {
    Peer::Reverse& reverse = peers_[peer].ways[port].reverse;
    const auto slot = qp->requestor.paths().any_on(static_cast<PortIndex>(port),
                                                   static_cast<std::uint32_t>(prng_.next() >> 32));
    if (reverse.present || slot == PathSet::kNone) continue;
    reverse.ev = qp->requestor.paths().ev(slot).value;
    reverse.present = true;
    peers_[peer].present = static_cast<PortMask>(peers_[peer].present | 1u << port);
    reverse.confirmed_at = now;
  }
  if (tell) {
    peers_[peer].update_tries = 0;
    send_port_status(now, peer);
  }
  return {};
}

Result<void> Endpoint::start_sending(Time now, Qpn qpn, const QpConfig& config, Psn first_psn) {
  Qp* const qp = find_qp(qpn);
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
  begin(now, *qp);
  return {};
}

// RTR -> RTS.
void Endpoint::begin(Time now, Qp& qp) {
  qp.requestor.start(now, {.local_qpn = qp.qpn, .peer_qpn = qp.peer_qpn, .peer = qp.peer});
  qp.state = QpState::kReadyToSend;
  if (trace_ == nullptr) return;
  TraceRecord record;
  record.at = now;
  record.host = config_.host;
  record.kind = TraceKind::kQp;
  record.qpn = qp.qpn;
  record.peer = peers_[qp.peer].host;
  record.peer_qpn = qp.peer_qpn;
  record.a = qp.params->config.mpr * 128;
  record.b = qp.params->config.wimm_max;
  record.c = qp.params->mtu;
  record.psn = qp.first_psn.value();
  record.ev = qp.peer_first_psn.value();
  trace_->append(record);
  auto c = context(now);
  qp.requestor.trace_window(c);
}

Result<void> Endpoint::fail_qp(Time now, Qpn qpn) {
  Qp* qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state != QpState::kError) fail(now, *qp, Status::kFlushed);
  return {};
}

Result<void> Endpoint::limit_receive(Qpn qpn, const ReceiveLimit& limit) {
  Qp* qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (limit.cwnd_penalty > 127 || limit.mpr > qp->params->config.mpr_dest) {
    return Error{ErrorKind::kInvalid, "the penalty is 0 to 127, and mpr at most the QP's mpr_dest"};
  }
  qp->responder.limit(limit);
  return {};
}

// Nothing of the endpoint knows of this QP any more.
void Endpoint::forget(Qp& gone) {
  Qp* const qp = &gone;
  const std::uint32_t index = qp_index(*qp);
  if (qp->peer != Qp::kNoPeer) {
    std::uint32_t* link = &peers_[qp->peer].first_qp;
    while (*link != index) link = &qps_[*link]->next_of_peer;
    *link = qp->next_of_peer;
  }
  completions_reserved_ -=
      static_cast<std::uint32_t>(qp->requestor.incomplete() + qp->receives.size());
  qp->requestor.fail(Status::kFlushed);  // gives its records back
  for (std::size_t left = ready_.size(); left > 0; --left) {
    const std::uint32_t other = ready_.front();
    ready_.pop();
    if (other != index) ready_.push(other);
  }
  deadlines_.remove(index);
  std::erase(touched_, index);
  std::erase(watched_, index);
  evs_used_ -= qp->requestor.paths().size();
  qps_[index].reset();
}

Result<void> Endpoint::destroy_qp(Time now, Qpn qpn) {
  Qp* const qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (trace_ != nullptr) trace_qp(now, TraceKind::kQpGone, *qp, 0);
  forget(*qp);
  --qp_count_;
  return {};
}

Result<void> Endpoint::reset_qp(Time now, Qpn qpn, const QpConfig& config) {
  Qp* const qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  WEFT_CHECK(check(config, evs_used_ - qp->requestor.paths().size()));
  if (trace_ != nullptr) trace_qp(now, TraceKind::kQpGone, *qp, 0);
  const Psn first_psn = qp->first_psn;
  QpSlot& slot = qps_[qp_index(*qp)];
  forget(*qp);
  slot.emplace(options_for(config, qpn, first_psn), config.evs);
  evs_used_ += static_cast<std::uint32_t>(config.evs.size());
  return {};
}

Result<void> Endpoint::set_congestion(Qpn qpn, const NsccConfig& nscc) {
  Qp* const qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  QpConfig config = qp->params->config;
  config.nscc = nscc;
  qp->params = params_for(config);
  qp->requestor.set_congestion(*qp->params);
  if (qp->may_send() && qp->requestor.has_work()) mark_ready(*qp);
  return {};
}

}  // namespace weft::transport
