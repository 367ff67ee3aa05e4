#include "device/queue_pair.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "device/peer_planes.h"
#include "engine/process_config.h"
#include "os/log.h"

namespace weft::device {
namespace {

// A domain without regions: the peer may not write anywhere.
constexpr std::uint32_t kDomainWithoutRegions = 0xffff'ffff;
// The smallest initial window of a QP that shares the path with other QPs.
constexpr std::uint32_t kWindowMin = 128u << 10;

Ipv6 ip_of(const ibv_gid& gid) {
  std::array<std::byte, 16> bytes;
  std::memcpy(bytes.data(), gid.raw, bytes.size());
  return base::load_ipv6(bytes, 0);
}

}  // namespace

QueuePair::QueuePair(DeviceEngine& engine, const Options& options)
    : engine_(engine), options_(options), qp_(options.qp) {
  attributes_.mtu = engine.config().world.mtu;
  profiles_.evs = engine.evs();
}

Result<std::unique_ptr<QueuePair>> QueuePair::create(DeviceEngine& engine, const Options& options) {
  std::unique_ptr<QueuePair> out(new QueuePair(engine, options));
  QueuePair& self = *out;
  WEFT_CHECK(engine.with_lock([&](DeviceEngine::Parts& parts) -> Result<void> {
    const std::uint32_t receives = self.qp_.receives.depth();
    if (parts.receives_reserved + receives > engine.config().limits.receives_max)
      return Error{ErrorKind::kExhausted, "no room for more receives on this device"};
    const Psn first(parts.prng.below(Psn::kMask + 1));
    WEFT_TRY(self.qp_.qpn,
             parts.endpoint.create_qp(self.config_for(self.attributes_, self.profiles_, 1), first));
    parts.receives_reserved += receives;
    parts.node.add(self.qp_);
    return {};
  }));
  return out;
}

QueuePair::~QueuePair() {
  if (qp_.qpn == 0) return;  // create() failed
  engine_.with_lock([&](DeviceEngine::Parts& parts) {
    parts.endpoint.flush_answers(parts.now);
    parts.node.deliver_completions(parts.now);
    parts.agent.remove_qp(qp_.qpn);
    [[maybe_unused]] const auto gone = parts.endpoint.destroy_qp(parts.now, qp_.qpn);
    parts.world.end_session(qp_.qpn);
    parts.node.remove(qp_);
    parts.receives_reserved -= qp_.receives.depth();
    return 0;
  });
  qp_.options.send_cq->forget_qp(qp_.qpn);
  qp_.options.receive_cq->forget_qp(qp_.qpn);
}

transport::QpConfig QueuePair::config_for(const QpAttributes& attributes,
                                          const QpProfiles& profiles,
                                          std::uint32_t qps_sharing_path) const {
  transport::QpConfig config;
  config.mtu = payload_to_peer_ == 0 ? attributes.mtu : std::min(attributes.mtu, payload_to_peer_);
  config.mtu_dest = attributes.mtu;
  // The peer decides by itself whether it sends over planes or shared memory, so packets as large
  // as those of a ring must be accepted.
  config.mtu_dest_unlisted = engine_.payload_max();
  config.mpr = attributes.mpr;
  config.mpr_dest = attributes.mpr_dest;
  config.dynamic_mpr = (attributes.cap & MRC_QP_CAP_DYNAMIC_MPR) != 0;
  config.wimm_max = attributes.wimm;
  config.wimm_dest_max = attributes.wimm_dest;
  config.send_queue_max = qp_.sends.limits().depth;
  config.receive_queue_max = qp_.receives.depth();
  config.domain = (attributes.access & IBV_ACCESS_REMOTE_WRITE) != 0 ? options_.qp.domain
                                                                     : kDomainWithoutRegions;
  config.evs = profiles.evs;
  config.ev_active = profiles.ev_active != 0 ? profiles.ev_active
                                             : static_cast<std::uint32_t>(profiles.evs.size());
  config.ev_min_active = profiles.min_active;
  config.retry = {.timeout = attributes.timeout,
                  .linear_count = attributes.linear_count,
                  .exponential_count = attributes.exponential_count};
  config.peer = engine_.config().world.peers;
  config.nscc = engine::plane_congestion();
  if (profiles.uses != nullptr) control::apply_cc(profiles.uses->cc.view, config.nscc);
  config.nscc.cwnd_bytes_initial = std::max(config.nscc.cwnd_bytes_initial / qps_sharing_path,
                                            std::min(kWindowMin, config.nscc.cwnd_bytes_initial));
  if (shared_memory_) engine::use_shared_memory(*shared_memory_, config);
  return config;
}

QpAttributes QueuePair::attributes() {
  const std::lock_guard guard(modify_lock_);
  QpAttributes out = attributes_;
  out.state = qp_.state;  // the QP may have failed in the meantime
  return out;
}

// --- states ------------------------------------------------------------------------------------

Result<void> QueuePair::modify(const Modification& modification) {
  const QpChange& change = modification.change;
  const std::lock_guard guard(modify_lock_);
  return engine_.with_lock([&](DeviceEngine::Parts& parts) -> Result<void> {
    parts.node.deliver_completions(parts.now);
    QpAttributes from = attributes_;
    from.state = qp_.state;
    WEFT_TRY(const QpAttributes to, changed(from, change, limits()));
    if ((change.verbs_mask & kIgnoredVerbs) != 0) {
      os::log(os::LogLevel::kDebug, "QP {:#x}: verbs attributes {:#x} mean nothing to MRC, ignored",
              qp_.qpn, static_cast<unsigned>(change.verbs_mask & kIgnoredVerbs));
    }
    QpProfiles profiles = profiles_;
    const bool other = to.ev_profile != from.ev_profile || to.cc_profile != from.cc_profile;
    if (to.state == IBV_QPS_RESET) {
      profiles = {.evs = engine_.evs()};
    } else if (other || profiles.uses == nullptr) {
      WEFT_TRY(profiles, find_profiles(parts.agent, {.ev = to.ev_profile, .cc = to.cc_profile}));
    }
    WEFT_CHECK(
        apply_transition(parts, {.from = from,
                                 .to = to,
                                 .profiles = profiles,
                                 .qps_sharing_path = std::max(modification.qps_sharing_path, 1u)}));
    attributes_ = to;
    profiles_ = std::move(profiles);
    // On a new state the endpoint has built the paths anew; on new profiles their EVs have another
    // meaning. In both cases denied EVs must be set again.
    const bool anew = other || to.state != from.state;
    if (profiles_.uses != nullptr && !shared_memory_ && anew)
      parts.agent.set_qp(parts.now, parts.endpoint, qp_.qpn, profiles_.uses);
    // A controller cannot change anything on a ring: it has no paths and no congestion control.
    if (shared_memory_ || to.state == IBV_QPS_RESET || to.state == IBV_QPS_ERR)
      parts.agent.remove_qp(qp_.qpn);
    if (to.state != IBV_QPS_ERR) qp_.state = to.state;
    return {};
  });
}

Result<void> QueuePair::apply_transition(DeviceEngine::Parts& parts, const Step& step) {
  const ibv_qp_state to = step.to.state;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) parts.endpoint.flush_answers(parts.now);
  if (to == IBV_QPS_RESET) {
    reset(parts);
  } else if (to == IBV_QPS_ERR) {
    if (step.from.state == to) return {};
    WEFT_CHECK(parts.endpoint.fail_qp(parts.now, qp_.qpn));
    parts.node.deliver_completions(parts.now);  // this sets the QP's state to ERR
  } else if (to == IBV_QPS_RTR && step.from.state != to) {
    return receive_from_peer(parts, step);
  } else if (to == IBV_QPS_RTS && step.from.state != to) {
    return parts.endpoint.start_sending(parts.now, qp_.qpn,
                                        config_for(step.to, step.profiles, step.qps_sharing_path),
                                        Psn(step.to.send_psn));
  }
  return {};
}

Result<void> QueuePair::receive_from_peer(DeviceEngine::Parts& parts, const Step& step) {
  WEFT_TRY(transport::PeerInfo peer,
           peer_planes(engine_.addresses(), {.gid = ip_of(step.to.address.grh.dgid),
                                             .qpn = step.to.peer_qpn,
                                             .kind = engine_.config().world.peers}));
  peer.first_psn = Psn(step.to.receive_psn);
  WEFT_CHECK(choose_carrier(parts, step, peer));
  WEFT_CHECK(parts.endpoint.configure_qp(
      qp_.qpn, config_for(step.to, step.profiles, step.qps_sharing_path)));
  // Set the denied EVs before the peer is known: acknowledgements must not use them either.
  if (step.profiles.uses != nullptr && !shared_memory_)
    parts.agent.set_qp(parts.now, parts.endpoint, qp_.qpn, step.profiles.uses);
  // secure() comes before packets can arrive: with a job secret it sends a hello, by which the two
  // ends learn of each other.
  WEFT_CHECK(parts.world.secure(
      qp_.qpn, {.qpn = peer.qpn, .ports = {peer.ports.data(), engine_.addresses().size()}}));
  WEFT_CHECK(parts.endpoint.start_receiving(parts.now, qp_.qpn, peer));
  os::log(os::LogLevel::kInfo, "QP {:#x} is connected to QP {:#x} of slot {} over {}", qp_.qpn,
          peer.qpn, peer.ports[0].process,
          shared_memory_ ? std::string("shared memory")
                         : fmt::format("{} planes", engine_.addresses().size()));
  return {};
}

// Chooses shared memory or planes for what this end sends. There is no negotiation: a peer process
// of this host and user has a name that says whether it accepts rings (docs/decisions/0022). If the
// profile has EVs of a controller, or the peer is this process itself, the planes are used.
Result<void> QueuePair::choose_carrier(DeviceEngine::Parts& parts, const Step& step,
                                       const transport::PeerInfo& peer) {
  shared_memory_.reset();
  const std::span<const world::Address> planes(peer.ports.data(), engine_.addresses().size());
  const bool by_profile =
      step.profiles.uses != nullptr && !step.profiles.uses->ev.view.entries.empty();
  if (!by_profile && peer.ports[0] != engine_.addresses()[0])
    shared_memory_ = parts.world.shared_memory_ev(peer.ports[0]);
  if (!shared_memory_ && engine_.config().must_share_memory) {
    return Error{ErrorKind::kSystem,
                 "no shared memory with the peer; it must be another process on this host, of the "
                 "same user, with shared memory on, and no EVs of a controller"};
  }
  payload_to_peer_ = engine_.payload_to(parts.now, planes);
  if (payload_to_peer_ == 0 && !shared_memory_) {
    return Error{ErrorKind::kInvalid,
                 "not even a payload of 1024 fits the planes to the peer; raise their MTU, `weft "
                 "doctor` says which"};
  }
  return {};
}

// Earlier work requests get no completion.
void QueuePair::reset(DeviceEngine::Parts& parts) {
  shared_memory_.reset();
  payload_to_peer_ = 0;
  QpAttributes fresh;
  fresh.mtu = engine_.config().world.mtu;
  QpProfiles automatic{.evs = engine_.evs()};
  [[maybe_unused]] const auto reset =
      parts.endpoint.reset_qp(parts.now, qp_.qpn, config_for(fresh, automatic, 1));
  parts.world.end_session(qp_.qpn);
  parts.node.remove(qp_);
  qp_.sends.clear();
  qp_.receives.clear();
  qp_.local_error = false;
  parts.node.add(qp_);
  qp_.options.send_cq->forget_qp(qp_.qpn);
  qp_.options.receive_cq->forget_qp(qp_.qpn);
}

}  // namespace weft::device
