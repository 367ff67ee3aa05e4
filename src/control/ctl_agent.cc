#include "control/ctl_agent.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <tuple>

#include "os/log.h"

namespace weft::control {
namespace {

// The gap between reads of the state while a change is in progress or after its writer died.
constexpr Duration kUnsettledGap = Duration::ms(10);

bool is_before(const fabric::Ev& a, const fabric::Ev& b) {
  return std::tie(a.port, a.value) < std::tie(b.port, b.value);
}

std::uint32_t q10(float value) {
  return static_cast<std::uint32_t>(std::max(std::lround(value * 1024), 1L));
}

}  // namespace

PathMap map_paths(const ControllerState::EvView& view, const std::vector<fabric::Ev>& device) {
  PathMap map;
  map.named.assign(device.size(), view.entries.empty());
  std::map<fabric::Ev, std::uint32_t, bool (*)(const fabric::Ev&, const fabric::Ev&)> known(
      is_before);
  std::map<std::uint8_t, std::uint32_t> turn;
  for (const ControllerState::EvView::Entry& entry : view.entries) {
    const auto [at, is_new] = known.try_emplace(entry.path, PathMap::kNoPath);
    if (is_new) {
      std::vector<std::uint32_t> of_port;
      for (std::uint32_t i = 0; i < device.size(); ++i) {
        if (device[i].port == entry.path.port) of_port.push_back(i);
      }
      if (!of_port.empty()) {
        at->second = of_port[turn[entry.path.port]++ % static_cast<std::uint32_t>(of_port.size())];
        map.named[at->second] = true;
      }
    }
    map.of_entry.push_back(at->second);
  }
  return map;
}

CtlResult<fabric::Ev> device_ev(ControllerState& state, const std::vector<fabric::Ev>& device,
                                fabric::EvFormatMode format, const CtlEv& wanted) {
  WEFT_TRY(const auto model, state.snapshot());
  for (std::uint32_t id = 0; id < kEvProfilesMax; ++id) {
    if (model->evs[id].state != ProfileState::kOnline) continue;
    const auto view = state.ev_view(id);
    if (!view && view.error().code != EINVAL) return view.error();
    // the profile left ONLINE, or has another format
    if (!view || view->format != format) continue;
    const PathMap map = map_paths(*view, device);
    for (std::size_t i = 0; i < map.of_entry.size(); ++i) {
      if (view->entries[i].ev == wanted && map.of_entry[i] != PathMap::kNoPath)
        return device[map.of_entry[i]];
    }
  }
  std::vector<fabric::Ev> of_port;
  for (const fabric::Ev& ev : device) {
    if (ev.port + 1u == wanted.port) of_port.push_back(ev);
  }
  if (of_port.empty()) return ctl_error(EINVAL, fmt::format("no port {}", wanted.port));
  return of_port[fabric::ev_first32(wanted.value) % of_port.size()];
}

void apply_cc(const ControllerState::CcView& view, transport::NsccConfig& config) {
  if (view.algorithm == CcAlgorithm::kNone) {
    config.enabled = false;
    return;
  }
  const NsccSettings& told = view.nscc;
  if (told.disable_qa) config.quick_adapt = false;
  if (told.base_rtt_ns != 0) config.base_rtt = Duration::ns(told.base_rtt_ns);
  if (told.target_delay_ns != 0) config.target_delay = Duration::ns(told.target_delay_ns);
  if (told.qa_threshold_ns != 0) config.qa_threshold = Duration::ns(told.qa_threshold_ns);
  if (told.qa_gate != 0) config.qa_gate = told.qa_gate;
  if (told.cwnd_bytes_max != 0) {
    config.cwnd_bytes_max = told.cwnd_bytes_max;
    config.cwnd_bytes_initial = std::min(config.cwnd_bytes_initial, told.cwnd_bytes_max);
  }
  if (told.eta > 0) config.eta_bytes = static_cast<std::uint32_t>(std::lround(told.eta));
  if (told.fi > 0) config.fair_increase_bytes = static_cast<std::uint32_t>(std::lround(told.fi));
  if (told.fi_scale > 0) config.fast_increase_q10 = q10(told.fi_scale);
  if (told.gamma > 0) config.gamma_q10 = q10(told.gamma);
  if (told.max_md_jump > 0) config.jump_min_q10 = q10(told.max_md_jump);
  if (told.adjust_bytes != 0) config.adjust_bytes = told.adjust_bytes;
  if (told.adjust_period_ns != 0) config.adjust_period = Duration::ns(told.adjust_period_ns);
}

CtlAgent::CtlAgent(std::unique_ptr<ControllerState> state, std::vector<fabric::Ev> evs,
                   const transport::NsccConfig& nscc)
    : state_(std::move(state)), evs_(std::move(evs)), nscc_(nscc) {}

CtlResult<std::shared_ptr<const CtlAgent::Profiles>> CtlAgent::find(const Ids& ids) {
  auto out = std::make_shared<Profiles>();
  WEFT_TRY(out->ev, state_->use_ev_profile(ids.ev));
  WEFT_TRY(out->cc, state_->use_cc_profile(ids.cc));
  const ControllerState::EvView& view = out->ev.view;
  out->map = map_paths(view, evs_);
  if (out->map.named_count() == 0)
    return ctl_error(EINVAL, "none of its EVs is on a port of this device");
  if (view.min_active > 0 && !view.entries.empty()) {
    const std::uint64_t share = std::uint64_t{view.min_active} * out->map.named_count();
    out->min_active =
        static_cast<std::uint32_t>((share + view.entries.size() - 1) / view.entries.size());
  }
  return std::shared_ptr<const Profiles>(std::move(out));
}

void CtlAgent::set_qp(Time now, transport::Endpoint& endpoint, std::uint32_t qpn,
                      std::shared_ptr<const Profiles> profiles) {
  remove_qp(qpn);
  const ControllerState::EvView& view = profiles->ev.view;
  if (!view.entries.empty()) {
    const auto [at, is_new] = profiles_.try_emplace(view.id);
    if (is_new) at->second.bad.resize(evs_.size());
    if (is_new || view.generation > at->second.view.generation) set_view(at->second, view);
  }
  const ControllerState::CcView cc = profiles->cc.view;
  QpState& qp = qps_[qpn] = {.profiles = std::move(profiles),
                             .cc = cc,
                             .bad = std::vector<bool>(evs_.size()),
                             .denied = std::vector<bool>(evs_.size())};
  apply_denied(now, endpoint, qpn, qp);
  apply_congestion(endpoint, qpn, qp);
}

// Entries may now stand for other paths. QPs find paths bad, not entries, so all marks of entries
// are set anew.
void CtlAgent::set_view(ProfileState& profile, ControllerState::EvView view) {
  for (std::uint32_t i = 0; i < profile.marked.size(); ++i) {
    if (profile.marked[i]) state_->mark_bad(profile.view.id, i, false);
  }
  profile.view = std::move(view);
  profile.map = map_paths(profile.view, evs_);
  profile.marked.assign(profile.view.entries.size(), false);
  publish_bad_evs(profile);
}

void CtlAgent::publish_bad_evs(ProfileState& profile) {
  for (std::uint32_t i = 0; i < profile.map.of_entry.size(); ++i) {
    const std::uint32_t path = profile.map.of_entry[i];
    const bool bad = path != PathMap::kNoPath && profile.bad[path] > 0;
    if (profile.marked[i] == bad) continue;
    profile.marked[i] = bad;
    state_->mark_bad(profile.view.id, i, bad);
  }
}

void CtlAgent::remove_qp(std::uint32_t qpn) {
  const auto at = qps_.find(qpn);
  if (at == qps_.end()) return;
  // Paths that only this QP found bad are good again.
  for (std::uint32_t path = 0; path < at->second.bad.size(); ++path)
    set_bad(at->second, path, false);
  qps_.erase(at);
}

bool CtlAgent::service(Time now, transport::Endpoint& endpoint) {
  const std::uint32_t disabled = ports_disabled_;
  const std::uint64_t number = state_->generation();
  const bool news =
      number != seen_ || (number % 2 != 0 && state_->is_attached() && now >= next_look_);
  if (news) {
    next_look_ = now + kUnsettledGap;
    seen_ = number;
    reload(now, endpoint);
  }
  transport::EvNews ev;
  while (endpoint.poll_ev_news(ev)) note_ev_state(ev.qpn, ev.ev, ev.bad);
  return disabled != ports_disabled_;
}

void CtlAgent::reload(Time now, transport::Endpoint& endpoint) {
  ++counters_.reloads;
  const auto model = state_->snapshot();
  if (!model) {
    // Log only the first failure. The last valid settings stay in force.
    if (counters_.failures++ == 0) os::log(os::LogLevel::kWarn, "{}", model.error().message);
    return;
  }
  const std::uint32_t disabled = ((*model)->ports_disabled & state_->shape().port_mask) >> 1;
  for (std::uint32_t port = 0; port < world::kPortsMax; ++port) {
    if (((disabled ^ ports_disabled_) >> port & 1) == 0) continue;
    endpoint.set_port_admin(now, static_cast<world::PortIndex>(port), (disabled >> port & 1) == 0);
  }
  ports_disabled_ = disabled;
  for (auto& [id, profile] : profiles_) {
    if (auto view = state_->ev_view(id)) set_view(profile, std::move(view).value());
  }
  for (auto& [qpn, qp] : qps_) {
    apply_denied(now, endpoint, qpn, qp);
    apply_congestion(endpoint, qpn, qp);
  }
  if (const auto directory = state_->events_directory(ControllerState::Make::kNo)) {
    (void)sender_.refresh(*directory);
  }
}

// A path is denied if no entry stands for it, or if all entries that stand for it are denied.
void CtlAgent::apply_denied(Time now, transport::Endpoint& endpoint, std::uint32_t qpn,
                            QpState& qp) {
  if (qp.profiles->ev.view.entries.empty()) return;
  const ProfileState& profile = profiles_.at(qp.profiles->ev.view.id);
  const PathMap& map = profile.map;
  std::vector<bool> denied(evs_.size(), true);
  for (std::size_t i = 0; i < map.of_entry.size(); ++i) {
    if (map.of_entry[i] != PathMap::kNoPath && profile.view.entries[i].state != EvState::kDenied)
      denied[map.of_entry[i]] = false;
  }
  for (std::uint32_t path = 0; path < denied.size(); ++path) {
    if (denied[path] || qp.denied[path] != denied[path])
      endpoint.deny_ev(now, qpn, evs_[path], denied[path]);
  }
  qp.denied = std::move(denied);
}

void CtlAgent::apply_congestion(transport::Endpoint& endpoint, std::uint32_t qpn, QpState& qp) {
  const auto view = state_->cc_view(qp.cc.id);
  if (!view || (view->algorithm == qp.cc.algorithm && view->nscc == qp.cc.nscc)) return;
  qp.cc = *view;
  transport::NsccConfig config = nscc_;
  apply_cc(qp.cc, config);
  // Fails if the QP has just been destroyed.
  [[maybe_unused]] const auto told = endpoint.set_congestion(qpn, config);
}

void CtlAgent::note_ev_state(std::uint32_t qpn, fabric::Ev ev, bool bad) {
  const auto at = qps_.find(qpn);
  if (at == qps_.end() || at->second.profiles->ev.view.entries.empty()) return;
  const auto path = std::find(evs_.begin(), evs_.end(), ev);
  if (path == evs_.end()) return;
  const auto index = static_cast<std::uint32_t>(path - evs_.begin());
  // A denied EV cannot be used, which does not mean that its path is bad.
  if (bad && at->second.denied[index]) return;
  set_bad(at->second, index, bad);
}

// Controllers get an event when the first QP finds a path bad, and when no QP does so any longer.
void CtlAgent::set_bad(QpState& qp, std::uint32_t path, bool bad) {
  if (qp.bad[path] == bad) return;
  qp.bad[path] = bad;
  ProfileState& profile = profiles_.at(qp.profiles->ev.view.id);
  profile.bad[path] += bad ? 1 : -1u;
  if (profile.bad[path] != (bad ? 1u : 0u)) return;
  publish_bad_evs(profile);
  report(profile, path, bad);
}

void CtlAgent::report(const ProfileState& profile, std::uint32_t path, bool bad) {
  const EvState state = bad ? EvState::kAssumedBad : EvState::kGood;
  const ControllerState::EvView& view = profile.view;
  if ((view.event_mask & static_cast<std::uint32_t>(state)) == 0) return;
  std::vector<CtlEv> told;
  for (std::size_t i = 0; i < profile.map.of_entry.size(); ++i) {
    const CtlEv& ev = view.entries[i].ev;
    const bool known = std::find(told.begin(), told.end(), ev) != told.end();
    if (profile.map.of_entry[i] != path || known) continue;
    told.push_back(ev);
    sender_.send({.profile_id = view.id, .ev = ev, .state = state});
    ++counters_.events;
  }
}

CtlAgent::Counters CtlAgent::counters() const {
  Counters out = counters_;
  out.events_dropped = sender_.dropped();
  return out;
}

}  // namespace weft::control
