// CtlAgent: applies a controller's settings to a running device. From a QP's profiles it decides
// which EVs and which congestion control the QP gets. It follows later changes, and reports EV
// events.
//
// Owned by a DeviceEngine and called under its lock. While nothing changes, service() costs a load
// and a comparison.
//
// A process sends from its own UDP ports, so it cannot use a profile's EVs literally. Each entry of
// a profile stands for one of the device's EVs on the same port, chosen round robin; equal entries
// stand for the same EV. A QP always has all EVs of the device, and those for which no entry stands
// are denied. Thus a controller's change affects running QPs too. Bounded by the number of QPs.
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

// Which of the device's EVs each entry of a profile stands for. Pure value.
struct PathMap {
  std::vector<std::uint32_t>
      of_entry{};  // for each entry of the profile: an index into the device's EVs
  // for each EV of the device: whether an entry of the profile stands for it; all true in mode AUTO
  std::vector<bool> named{};
  static constexpr std::uint32_t kNoPath = 0xffff'ffff;  // the device has no EV on the entry's port
  std::uint32_t named_count() const {
    return static_cast<std::uint32_t>(std::count(named.begin(), named.end(), true));
  }
};
PathMap map_paths(const ControllerState::EvView& view, const std::vector<fabric::Ev>& device);
// The device's EV for which a controller's EV stands. If an ONLINE profile contains `wanted`, the
// result is the EV that QPs of that profile use. Otherwise it is some EV on the same port, always
// the same. Errors: EINVAL (the device has no such port), EIO.
CtlResult<fabric::Ev> device_ev(ControllerState& state, const std::vector<fabric::Ev>& device,
                                fabric::EvFormatMode format, const CtlEv& wanted);

// Applies a CC profile to the device's own settings. Pure.
void apply_cc(const ControllerState::CcView& view, transport::NsccConfig& config);

class CtlAgent {
 public:
  // `evs`: all EVs that the device can send on. `nscc`: the congestion control that the device has
  // when no profile changes it.
  CtlAgent(std::unique_ptr<ControllerState> state, std::vector<fabric::Ev> evs,
           const transport::NsccConfig& nscc);

  ControllerState& state() { return *state_; }
  const std::vector<fabric::Ev>& evs() const { return evs_; }

  // The profiles of one QP while it uses them.
  struct Profiles {
    ControllerState::EvUse ev;
    ControllerState::CcUse cc;
    PathMap map{};
    // ev_min_active, counted in the device's EVs; 0: the device's own rule
    std::uint32_t min_active = 0;
  };
  // Numbers of profiles. find() fails with EINVAL if there is no such profile or it is not ONLINE.
  struct Ids {
    std::uint64_t ev = 0, cc = 0;
  };
  CtlResult<std::shared_ptr<const Profiles>> find(const Ids& ids);

  // Gives the QP these profiles. Call it again whenever the endpoint has built the QP's paths anew.
  void set_qp(Time now, transport::Endpoint& endpoint, std::uint32_t qpn,
              std::shared_ptr<const Profiles> profiles);
  void remove_qp(std::uint32_t qpn);

  // Call this before packets are sent. Returns true if the administrative state of a port changed.
  bool service(Time now, transport::Endpoint& endpoint);
  // Bit i: port i (counted from 0) is disabled, as of the last service().
  std::uint32_t ports_disabled() const { return ports_disabled_; }

  struct Counters {
    std::uint64_t events = 0, events_dropped = 0, reloads = 0, failures = 0;
  };
  Counters counters() const;

 private:
  // Below, `path` is always an index into the device's EVs.
  struct QpState {
    std::shared_ptr<const Profiles> profiles;
    ControllerState::CcView cc;     // the values that the endpoint has
    std::vector<bool> bad, denied;  // indexed by path
  };
  // An EV profile that QPs of this process use, with its present values.
  struct ProfileState {
    ControllerState::EvView view;
    PathMap map;
    std::vector<std::uint32_t> bad;  // indexed by path: how many QPs find it bad
    // indexed by entry: this process has marked it bad in the shared state
    std::vector<bool> marked;
  };
  void reload(Time now, transport::Endpoint& endpoint);
  void set_view(ProfileState& profile, ControllerState::EvView view);
  void publish_bad_evs(ProfileState& profile);
  void apply_denied(Time now, transport::Endpoint& endpoint, std::uint32_t qpn, QpState& qp);
  void apply_congestion(transport::Endpoint& endpoint, std::uint32_t qpn, QpState& qp);
  void note_ev_state(std::uint32_t qpn, fabric::Ev ev, bool bad);
  void set_bad(QpState& qp, std::uint32_t path, bool bad);
  void report(const ProfileState& profile, std::uint32_t path, bool bad);

  std::unique_ptr<ControllerState> state_;
  std::vector<fabric::Ev> evs_;
  transport::NsccConfig nscc_;
  std::map<std::uint32_t, QpState> qps_;            // by QPN
  std::map<std::uint32_t, ProfileState> profiles_;  // by number of the EV profile
  EvEventSender sender_;
  std::uint64_t seen_ = 1;  // generation when the state was last read; odd: not yet read
  Time next_look_{};        // while the generation is odd: the earliest time to read again
  std::uint32_t ports_disabled_ = 0;
  Counters counters_;
};

}  // namespace weft::control
