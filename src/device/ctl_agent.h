// CtlAgent: the controller's word inside a running device: which EVs and which congestion control a
// QP gets by its profiles, what changes later, and what controllers are told of EVs.
//
// Owned by a DeviceEngine and called under its lock. service() costs a load and a compare while
// nothing changes. The EVs of profiles are names: a process sends from UDP ports of its own, so each
// entry of a profile stands for one of the device's EVs of its port, in turn; equal entries for the
// same one. Bounded by the QPs of the engine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/time.h"
#include "device/controller_state.h"
#include "device/ctl_events.h"
#include "fabric/ev.h"
#include "transport/endpoint.h"

namespace weft::device {

// Which of the device's EVs each entry of a profile stands for. Pure.
struct PathMap {
  std::vector<fabric::Ev> paths{};        // no one twice
  std::vector<std::uint32_t> of_entry{};  // index into paths, for each entry of the profile
  static constexpr std::uint32_t kNoPath = 0xffff'ffff;  // the device has no EV on its port
};
PathMap map_paths(const ControllerState::EvView& view, const std::vector<fabric::Ev>& device);

// What a CC profile makes of the device's own settings. Pure.
void apply_cc(const ControllerState::CcView& view, transport::NsccConfig& config);

class CtlAgent {
 public:
  // `evs`: the device's own, all that it can send on.
  CtlAgent(std::unique_ptr<ControllerState> state, std::vector<fabric::Ev> evs);

  ControllerState& state() { return *state_; }

  // The profiles of one QP while it uses them.
  struct Profiles {
    ControllerState::EvUse ev;
    ControllerState::CcUse cc;
    PathMap map{};                 // of an AUTO profile: the device's EVs, no entries
    std::uint32_t min_active = 0;  // of the paths; 0: the device's own rule
  };
  // Errors: EINVAL when there is no such profile or it is not ONLINE.
  struct Ids {
    std::uint64_t ev = 0, cc = 0;
  };
  CtlResult<std::shared_ptr<const Profiles>> find(const Ids& ids);

  // From now on the QP has these; again after each time that its paths are made anew.
  void set_qp(std::uint32_t qpn, std::shared_ptr<const Profiles> profiles);
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
  struct QpState {
    std::shared_ptr<const Profiles> profiles;
    std::vector<bool> bad, denied;  // by path
  };
  void reload(Time now, transport::Endpoint& endpoint);
  void apply_denied(Time now, transport::Endpoint& endpoint, std::uint32_t qpn, QpState& qp);
  void note(std::uint32_t qpn, fabric::Ev ev, bool bad);
  void set_bad(QpState& qp, std::uint32_t path, bool bad);
  void report(const QpState& qp, std::uint32_t path, bool bad);

  std::unique_ptr<ControllerState> state_;
  std::vector<fabric::Ev> evs_;
  std::map<std::uint32_t, QpState> qps_;  // by QPN
  // By EV profile: its event mask and entries as they are now, and how many QPs find a path bad.
  struct ProfileState {
    ControllerState::EvView view;
    std::map<fabric::Ev, std::uint32_t, bool (*)(const fabric::Ev&, const fabric::Ev&)> bad;
  };
  std::map<std::uint32_t, ProfileState> profiles_;
  EvEventSender sender_;
  std::uint64_t seen_ = 1;            // odd: nothing was seen yet
  Time next_look_{};                  // where the number is odd, not before
  std::vector<std::uint32_t> fresh_;  // QPs whose paths were made anew
  std::uint32_t ports_disabled_ = 0;
  Counters counters_;
};

}  // namespace weft::device
