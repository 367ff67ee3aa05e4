// CtlAgent: the controller's word inside a running device: which EVs and which congestion control a
// QP gets by its profiles, what changes later, and what controllers are told of EVs.
//
// Owned by a DeviceEngine and called under its lock. service() costs a load and a compare while
// nothing changes. The EVs of profiles are names: a process sends from UDP ports of its own, so each
// entry of a profile stands for one of the device's EVs of its port, in turn; equal entries for the
// same one. A QP has all EVs of the device, and those that its profile does not name are denied: so a
// controller's change reaches QPs that run. Bounded by the QPs of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/time.h"
#include "control/controller_state.h"
#include "control/ctl_events.h"
#include "fabric/ev.h"
#include "transport/endpoint.h"

namespace weft::control {

// Which of the device's EVs each entry of a profile stands for. Pure.
struct PathMap {
  std::vector<std::uint32_t>
      of_entry{};             // index into the device's EVs, for each entry of the profile
  std::vector<bool> named{};  // for each of the device's EVs; of an AUTO profile: all
  static constexpr std::uint32_t kNoPath = 0xffff'ffff;  // the device has no EV on its port
  std::uint32_t named_count() const {
    return static_cast<std::uint32_t>(std::count(named.begin(), named.end(), true));
  }
};
PathMap map_paths(const ControllerState::EvView& view, const std::vector<fabric::Ev>& device);
// The device's EV that a controller's stands for: as QPs of a profile that has it use it, else any
// of its port that is the same each time. Errors: EINVAL (the device has no such port), EIO.
CtlResult<fabric::Ev> device_ev(ControllerState& state, const std::vector<fabric::Ev>& device,
                                fabric::EvFormatMode format, const CtlEv& wanted);

// What a CC profile makes of the device's own settings. Pure.
void apply_cc(const ControllerState::CcView& view, transport::NsccConfig& config);

class CtlAgent {
 public:
  // `evs`: all EVs that the device can send on. `nscc`: its congestion control before a profile
  // changes it.
  CtlAgent(std::unique_ptr<ControllerState> state, std::vector<fabric::Ev> evs,
           const transport::NsccConfig& nscc);

  ControllerState& state() { return *state_; }
  const std::vector<fabric::Ev>& evs() const { return evs_; }

  // The profiles of one QP while it uses them.
  struct Profiles {
    ControllerState::EvUse ev;
    ControllerState::CcUse cc;
    PathMap map{};
    std::uint32_t min_active = 0;  // of the device's EVs; 0: the device's own rule
  };
  // Errors: EINVAL when there is no such profile or it is not ONLINE.
  struct Ids {
    std::uint64_t ev = 0, cc = 0;
  };
  CtlResult<std::shared_ptr<const Profiles>> find(const Ids& ids);

  // From now on the QP has these; again after each time that its paths are made anew.
  void set_qp(Time now, transport::Endpoint& endpoint, std::uint32_t qpn,
              std::shared_ptr<const Profiles> profiles);
  void remove_qp(std::uint32_t qpn);

  // Before packets are sent. True if the administrative state of a port changed.
  bool service(Time now, transport::Endpoint& endpoint);
  // Bit i: port i (from 0) is disabled, as of the last service().
  std::uint32_t ports_disabled() const { return ports_disabled_; }

  struct Counters {
    std::uint64_t events = 0, events_dropped = 0, reloads = 0, failures = 0;
  };
  Counters counters() const;

 private:
  // `path`: an index into the device's EVs, throughout.
  struct QpState {
    std::shared_ptr<const Profiles> profiles;
    ControllerState::CcView cc;     // as it was told to the endpoint
    std::vector<bool> bad, denied;  // by path
  };
  // An EV profile that QPs here use, as it is now.
  struct ProfileState {
    ControllerState::EvView view;
    PathMap map;
    std::vector<std::uint32_t> bad;  // by path: how many QPs find it so
    std::vector<bool> marked;        // by entry: what controllers can see of that
  };
  void reload(Time now, transport::Endpoint& endpoint);
  void set_view(ProfileState& profile, ControllerState::EvView view);
  void mark(ProfileState& profile);
  void apply_denied(Time now, transport::Endpoint& endpoint, std::uint32_t qpn, QpState& qp);
  void apply_congestion(transport::Endpoint& endpoint, std::uint32_t qpn, QpState& qp);
  void note(std::uint32_t qpn, fabric::Ev ev, bool bad);
  void set_bad(QpState& qp, std::uint32_t path, bool bad);
  void report(const ProfileState& profile, std::uint32_t path, bool bad);

  std::unique_ptr<ControllerState> state_;
  std::vector<fabric::Ev> evs_;
  transport::NsccConfig nscc_;
  std::map<std::uint32_t, QpState> qps_;            // by QPN
  std::map<std::uint32_t, ProfileState> profiles_;  // by number of the EV profile
  EvEventSender sender_;
  std::uint64_t seen_ = 1;  // odd: nothing was seen yet
  Time next_look_{};        // where the number is odd, not before
  std::uint32_t ports_disabled_ = 0;
  Counters counters_;
};

}  // namespace weft::control
