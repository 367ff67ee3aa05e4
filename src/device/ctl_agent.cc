#include "device/ctl_agent.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "net/log.h"

namespace weft::device {
namespace {

// While a change is under way, or its writer died, the state is read again that often.
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
  if (view.entries.empty()) {
    map.paths = device;
    return map;
  }
  // By port, the device's EVs as indices into paths (which holds all of them at first).
  std::vector<std::uint32_t> used(device.size(), PathMap::kNoPath);
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
        const std::uint32_t own =
            of_port[turn[entry.path.port]++ % static_cast<std::uint32_t>(of_port.size())];
        if (used[own] == PathMap::kNoPath) {
          used[own] = static_cast<std::uint32_t>(map.paths.size());
          map.paths.push_back(device[own]);
        }
        at->second = used[own];
      }
    }
    map.of_entry.push_back(at->second);
  }
  return map;
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

CtlAgent::CtlAgent(std::unique_ptr<ControllerState> state, std::vector<fabric::Ev> evs)
    : state_(std::move(state)), evs_(std::move(evs)) {}

CtlResult<std::shared_ptr<const CtlAgent::Profiles>> CtlAgent::find(const Ids& ids) {
  auto out = std::make_shared<Profiles>();
  WEFT_TRY(out->ev, state_->use_ev_profile(ids.ev));
  WEFT_TRY(out->cc, state_->use_cc_profile(ids.cc));
  const ControllerState::EvView& view = out->ev.view;
  out->map = map_paths(view, evs_);
  if (out->map.paths.empty())
    return ctl_error(EINVAL, "none of its EVs is on a port of this device");
  if (view.min_active > 0 && !view.entries.empty()) {
    const std::uint64_t share = std::uint64_t{view.min_active} * out->map.paths.size();
    out->min_active =
        static_cast<std::uint32_t>((share + view.entries.size() - 1) / view.entries.size());
  }
  return std::shared_ptr<const Profiles>(std::move(out));
}

void CtlAgent::set_qp(std::uint32_t qpn, std::shared_ptr<const Profiles> profiles) {
  remove_qp(qpn);
  const std::uint32_t id = profiles->ev.view.id;
  if (profiles->ev.view.entries.empty()) return;  // nothing to deny, nothing to report
  profiles_.try_emplace(
      id, ProfileState{.view = profiles->ev.view, .bad = decltype(ProfileState::bad)(is_before)});
  const std::size_t paths = profiles->map.paths.size();
  qps_[qpn] = {.profiles = std::move(profiles),
               .bad = std::vector<bool>(paths),
               .denied = std::vector<bool>(paths)};
  fresh_.push_back(qpn);
}

void CtlAgent::remove_qp(std::uint32_t qpn) {
  const auto at = qps_.find(qpn);
  if (at == qps_.end()) return;
  // What only it found bad, nobody does any more.
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
  } else {
    for (const std::uint32_t qpn : fresh_) {
      const auto at = qps_.find(qpn);
      if (at != qps_.end()) apply_denied(now, endpoint, qpn, at->second);
    }
  }
  fresh_.clear();
  transport::EvNews ev;
  while (endpoint.poll_ev_news(ev)) note(ev.qpn, ev.ev, ev.bad);
  return disabled != ports_disabled_;
}

void CtlAgent::reload(Time now, transport::Endpoint& endpoint) {
  ++counters_.reloads;
  const auto model = state_->snapshot();
  if (!model) {
    // Said once; what was last known stays.
    if (counters_.failures++ == 0) net::log(net::LogLevel::kWarn, "{}", model.error().message);
    return;
  }
  const std::uint32_t disabled = ((*model)->ports_disabled & state_->shape().port_mask) >> 1;
  for (std::uint32_t port = 0; port < world::kPortsMax; ++port) {
    if (((disabled ^ ports_disabled_) >> port & 1) == 0) continue;
    endpoint.set_port_admin(now, static_cast<world::PortIndex>(port), (disabled >> port & 1) == 0);
  }
  ports_disabled_ = disabled;
  for (auto& [id, profile] : profiles_) {
    if (auto view = state_->ev_view(id)) profile.view = std::move(view).value();
  }
  for (auto& [qpn, qp] : qps_) apply_denied(now, endpoint, qpn, qp);
  if (const auto directory = state_->events_directory(ControllerState::Make::kNo)) {
    (void)sender_.refresh(*directory);
  }
}

// A path is denied when all entries that stand for it are. Entries that were replaced since the QP
// took its paths stand for nothing here.
void CtlAgent::apply_denied(Time now, transport::Endpoint& endpoint, std::uint32_t qpn,
                            QpState& qp) {
  const auto& entries = profiles_.at(qp.profiles->ev.view.id).view.entries;
  const PathMap& map = qp.profiles->map;
  std::vector<bool> denied(map.paths.size(), true);
  for (std::size_t i = 0; i < map.of_entry.size(); ++i) {
    const bool same = i < entries.size();
    if (map.of_entry[i] != PathMap::kNoPath && (!same || entries[i].state != EvState::kDenied)) {
      denied[map.of_entry[i]] = false;
    }
  }
  for (std::uint32_t path = 0; path < denied.size(); ++path) {
    if (denied[path] || qp.denied[path] != denied[path]) {
      endpoint.deny_ev(now, qpn, map.paths[path], denied[path]);
    }
  }
  qp.denied = std::move(denied);
}

void CtlAgent::note(std::uint32_t qpn, fabric::Ev ev, bool bad) {
  const auto at = qps_.find(qpn);
  if (at == qps_.end()) return;
  const auto& paths = at->second.profiles->map.paths;
  const auto path = std::find(paths.begin(), paths.end(), ev);
  if (path == paths.end()) return;
  set_bad(at->second, static_cast<std::uint32_t>(path - paths.begin()), bad);
}

// Controllers hear of the first QP that finds a path bad, and of the last one that does no more.
void CtlAgent::set_bad(QpState& qp, std::uint32_t path, bool bad) {
  if (qp.bad[path] == bad) return;
  qp.bad[path] = bad;
  std::uint32_t& count = profiles_.at(qp.profiles->ev.view.id).bad[qp.profiles->map.paths[path]];
  count += bad ? 1 : -1u;
  if (count == (bad ? 1u : 0u)) report(qp, path, bad);
}

void CtlAgent::report(const QpState& qp, std::uint32_t path, bool bad) {
  const EvState state = bad ? EvState::kAssumedBad : EvState::kGood;
  const ControllerState::EvView& view = profiles_.at(qp.profiles->ev.view.id).view;
  if ((view.event_mask & static_cast<std::uint32_t>(state)) == 0) return;
  const PathMap& map = qp.profiles->map;
  std::vector<CtlEv> told;
  for (std::size_t i = 0; i < map.of_entry.size() && i < view.entries.size(); ++i) {
    const CtlEv& ev = view.entries[i].ev;
    const bool known = std::find(told.begin(), told.end(), ev) != told.end();
    if (map.of_entry[i] != path || known) continue;
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

}  // namespace weft::device
