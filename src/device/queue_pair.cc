#include "device/queue_pair.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "device/peer_planes.h"
#include "net/log.h"
#include "transport/software_ends.h"

namespace weft::device {
namespace {

// No region is of this domain: nobody may write.
constexpr std::uint32_t kNobody = 0xffff'ffff;
// A window that is divided keeps at least so much: two runs.
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
  if (qp_.qpn == 0) return;  // never created
  engine_.with_lock([&](DeviceEngine::Parts& parts) {
    parts.endpoint.flush_answers();
    parts.node.collect(parts.now);
    parts.agent.remove_qp(qp_.qpn);
    [[maybe_unused]] const auto gone = parts.endpoint.destroy_qp(parts.now, qp_.qpn);
    parts.node.remove(qp_);
    parts.receives_reserved -= qp_.receives.depth();
    return 0;
  });
  qp_.options.send_cq->forget_qp(qp_.qpn);
  qp_.options.receive_cq->forget_qp(qp_.qpn);
}

transport::QpConfig QueuePair::config_for(const QpAttributes& attributes,
                                          const QpProfiles& profiles, std::uint32_t crowd) const {
  transport::QpConfig config;
  config.mtu = attributes.mtu;
  config.mpr = attributes.mpr;
  config.mpr_dest = attributes.mpr_dest;
  config.dynamic_mpr = (attributes.cap & MRC_QP_CAP_DYNAMIC_MPR) != 0;
  config.wimm_max = attributes.wimm;
  config.wimm_dest_max = attributes.wimm_dest;
  config.send_queue_max = qp_.sends.limits().depth;
  config.receive_queue_max = qp_.receives.depth();
  config.domain = (attributes.access & IBV_ACCESS_REMOTE_WRITE) != 0 ? options_.qp.domain : kNobody;
  config.evs = profiles.evs;
  config.ev_active = profiles.ev_active != 0 ? profiles.ev_active
                                             : static_cast<std::uint32_t>(profiles.evs.size());
  config.ev_min_active = profiles.min_active;
  config.retry = {.timeout = attributes.timeout,
                  .linear_count = attributes.linear_count,
                  .exponential_count = attributes.exponential_count};
  config.nscc.rate = Rate::gbps(40);
  config.nscc.trimming = false;
  transport::suit_software(config);
  if (profiles.uses != nullptr) apply_cc(profiles.uses->cc.view, config.nscc);
  config.nscc.cwnd_bytes_initial = std::max(config.nscc.cwnd_bytes_initial / crowd,
                                            std::min(kWindowMin, config.nscc.cwnd_bytes_initial));
  return config;
}

QpAttributes QueuePair::attributes() {
  const std::lock_guard guard(modify_lock_);
  QpAttributes out = attributes_;
  out.state = qp_.state;  // it may have failed by itself
  return out;
}

// --- states ------------------------------------------------------------------------------------

Result<void> QueuePair::modify(const Modification& modification) {
  const QpChange& change = modification.change;
  const std::lock_guard guard(modify_lock_);
  return engine_.with_lock([&](DeviceEngine::Parts& parts) -> Result<void> {
    parts.node.collect(parts.now);
    QpAttributes from = attributes_;
    from.state = qp_.state;
    WEFT_TRY(const QpAttributes to, changed(from, change, limits()));
    if ((change.verbs_mask & kIgnoredVerbs) != 0) {
      net::log(net::LogLevel::kDebug,
               "QP {:#x}: verbs attributes {:#x} mean nothing to MRC, ignored", qp_.qpn,
               static_cast<unsigned>(change.verbs_mask & kIgnoredVerbs));
    }
    QpProfiles profiles = profiles_;
    const bool other = to.ev_profile != from.ev_profile || to.cc_profile != from.cc_profile;
    if (to.state == IBV_QPS_RESET) {
      profiles = {.evs = engine_.evs()};
    } else if (other || profiles.uses == nullptr) {
      WEFT_TRY(profiles, find_profiles(parts.agent, {.ev = to.ev_profile, .cc = to.cc_profile}));
    }
    WEFT_CHECK(go(
        parts,
        {.from = from, .to = to, .profiles = profiles, .crowd = std::max(modification.crowd, 1u)}));
    attributes_ = to;
    profiles_ = std::move(profiles);
    // Paths were made anew: what is denied is said again.
    if (profiles_.uses != nullptr) parts.agent.set_qp(qp_.qpn, profiles_.uses);
    if (to.state == IBV_QPS_RESET || to.state == IBV_QPS_ERR) parts.agent.remove_qp(qp_.qpn);
    if (to.state != IBV_QPS_ERR) qp_.state = to.state;
    return {};
  });
}

Result<void> QueuePair::go(DeviceEngine::Parts& parts, const Step& step) {
  const ibv_qp_state to = step.to.state;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) parts.endpoint.flush_answers();
  if (to == IBV_QPS_RESET) {
    start_over(parts);
  } else if (to == IBV_QPS_ERR) {
    if (step.from.state == to) return {};
    WEFT_CHECK(parts.endpoint.fail_qp(parts.now, qp_.qpn));
    parts.node.collect(parts.now);  // here its state changes
  } else if (to == IBV_QPS_RTR && step.from.state != to) {
    return receive_from_peer(parts, step);
  } else if (to == IBV_QPS_RTS && step.from.state != to) {
    return parts.endpoint.start_sending(
        parts.now, qp_.qpn, config_for(step.to, step.profiles, step.crowd), Psn(step.to.send_psn));
  }
  return {};
}

Result<void> QueuePair::receive_from_peer(DeviceEngine::Parts& parts, const Step& step) {
  WEFT_TRY(transport::PeerInfo peer,
           peer_planes(engine_.addresses(),
                       {.gid = ip_of(step.to.address.grh.dgid), .qpn = step.to.peer_qpn}));
  peer.first_psn = Psn(step.to.receive_psn);
  WEFT_CHECK(parts.endpoint.configure_qp(qp_.qpn, config_for(step.to, step.profiles, step.crowd)));
  WEFT_CHECK(parts.endpoint.start_receiving(parts.now, qp_.qpn, peer));
  net::log(net::LogLevel::kInfo, "QP {:#x} is connected to QP {:#x} of slot {} over {} planes",
           qp_.qpn, peer.qpn, peer.ports[0].process, engine_.addresses().size());
  return {};
}

// Nothing that was posted completes any more.
void QueuePair::start_over(DeviceEngine::Parts& parts) {
  QpAttributes fresh;
  fresh.mtu = engine_.config().world.mtu;
  QpProfiles automatic{.evs = engine_.evs()};
  [[maybe_unused]] const auto reset =
      parts.endpoint.reset_qp(parts.now, qp_.qpn, config_for(fresh, automatic, 1));
  parts.node.remove(qp_);
  qp_.sends.clear();
  qp_.receives.clear();
  qp_.local_error = false;
  parts.node.add(qp_);
  qp_.options.send_cq->forget_qp(qp_.qpn);
  qp_.options.receive_cq->forget_qp(qp_.qpn);
}

}  // namespace weft::device
