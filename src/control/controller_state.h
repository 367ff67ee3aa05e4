// ControllerState: what controllers told a device. All processes of a host share it, without a
// daemon.
//
// Files in a state directory, for a device NAME:
//   NAME.state   the model (ctl_codec.h), replaced as a whole by rename; absent at first
//   NAME.live    generation number and uses (ctl_live_file.h)
//   NAME.lock    locked during a change
//   NAME.events/ sockets of the listeners for EV events (ctl_events.h)
//
// A writer may be killed at any point: readers see the old state or the new one. Two writers wait
// for each other. Writers are the owner of the directory, for a system device only with
// CAP_NET_ADMIN. Readers are all users who may read the directory. Without a directory, and if none
// can be made, the model has its initial values and cannot be changed (is_attached()).
//
// Thread safe. Profile 0 in INIT means the device's own defaults, so that programs which name no
// profile run on a host without a controller.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ipv6.h"
#include "base/result.h"
#include "control/ctl_error.h"
#include "control/ctl_live_file.h"
#include "control/ctl_model.h"
#include "control/ctl_profiles.h"
#include "fabric/ev.h"
#include "os/file_descriptor.h"

namespace weft::control {

// kSystem: set up by the host's administrator. kUser: the loopback device of the user that runs the
// process.
enum class DeviceScope : std::uint8_t { kUser, kSystem };

// kUser for loopback planes, kSystem for all others.
DeviceScope scope_of(std::span<const Ipv6> planes);

// The directory of the files: $WEFT_STATE_DIR; otherwise /run/weft for system devices and for root;
// otherwise $XDG_STATE_HOME/weft, ~/.local/state/weft. Errors: kSystem (there is no home).
Result<std::string> state_directory(DeviceScope scope);

class ControllerState;
// The state of a device on these planes, by the rules above. If its files cannot be used, that is
// logged, and the model has its initial values.
std::unique_ptr<ControllerState> open_controller(const std::string& device,
                                                 std::span<const Ipv6> planes);

class ControllerState {
 public:
  struct Options {
    std::string directory{};  // see state_directory
    std::string device{};     // its name: letters, digits, '-', '_', '.'
    DeviceScope scope = DeviceScope::kUser;
    CtlDevice shape{};
  };
  // Makes the directory and files if they are missing and this user may. Errors: kInvalid (the
  // name), kSystem (a directory that others may write to or that we may not read, a damaged file).
  static Result<std::unique_ptr<ControllerState>> open(const Options& options);
  ~ControllerState();

  const CtlDevice& shape() const { return options_.shape; }
  bool is_attached() const { return live_.is_open(); }
  // Changes when the state changes; read without a system call; 0 if not attached. Odd while a
  // change is in progress, or if its writer died: the state that is read now may be old, so read it
  // again later.
  std::uint64_t generation() const { return live_.is_open() ? live_.number() : 0; }

  // --- reading ---------------------------------------------------------------------------------
  // The whole model, as it is now. Errors: EIO.
  using Snapshot = std::shared_ptr<const CtlModel>;
  CtlResult<Snapshot> snapshot();
  // The model for queries about EVs: an EV that QPs of any process find bad is ASSUMED_BAD in it,
  // unless it is denied. Errors: EIO.
  CtlResult<Snapshot> observed();

  // --- use by QPs ------------------------------------------------------------------------------
  // While a Use lives, its profile stays ONLINE. Empty for the device's defaults, which need no
  // lock.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), kind_(other.kind_), id_(other.id_) {}
    Use& operator=(Use&& other) noexcept;
    ~Use() { release(); }
    void release();

   private:
    friend class ControllerState;
    Use(ControllerState& state, ProfileKind kind, std::uint32_t id)
        : state_(&state), kind_(kind), id_(id) {}
    ControllerState* state_ = nullptr;  // outlives this
    ProfileKind kind_ = ProfileKind::kEv;
    std::uint32_t id_ = 0;
  };

  // An EV profile as a QP needs it.
  struct EvView {
    struct Entry {
      CtlEv ev{};                  // as the controller wrote it; events name it so
      fabric::Ev path{};           // as the transport uses it; ports count from 0
      fabric::EvBytes expanded{};  // as it is in packets
      EvState state = EvState::kGood;
    };
    std::uint32_t id = 0;
    // kAutomatic: no entries, the device draws EVs.
    fabric::EvMode mode = fabric::EvMode::kAutomatic;
    fabric::EvFormatMode format = fabric::EvFormatMode::kStev;
    std::vector<Entry> entries{};
    std::uint32_t min_active = 0;
    std::uint32_t event_mask = 0;
    std::uint64_t generation = 0;  // of the model that this was read from
  };
  struct CcView {
    std::uint32_t id = 0;
    CcAlgorithm algorithm = CcAlgorithm::kNscc;
    NsccSettings nscc{};  // a zero: derived from rate and base RTT
    std::uint64_t generation = 0;
  };
  struct EvUse {
    Use use;
    EvView view;
  };
  struct CcUse {
    Use use;
    CcView view;
  };
  // Errors: EINVAL (no such profile, or not ONLINE), EAGAIN, EIO.
  CtlResult<EvUse> use_ev_profile(std::uint64_t id);
  CtlResult<CcUse> use_cc_profile(std::uint64_t id);
  // The present values, for a caller that uses the profile and saw the generation change.
  CtlResult<EvView> ev_view(std::uint64_t id);
  CtlResult<CcView> cc_view(std::uint64_t id);

  // A QP of this process found an EV bad, or good again. `entry` is its index in the profile. Other
  // processes see the mark until it is taken back or this object is destroyed.
  void mark_bad(std::uint32_t id, std::uint32_t entry, bool bad);

  // --- changing --------------------------------------------------------------------------------
  // A copy of the model that takes changes while the lock is held. Errors: those of ctl_profiles.h,
  // and EPERM, EIO.
  class Changes {
   public:
    const CtlModel& model() const { return model_; }
    CtlResult<void> modify_format(std::uint64_t id, const FormatChange& change);
    CtlResult<void> modify_ev(std::uint64_t id, const EvChange& change);
    CtlResult<void> modify_cc(std::uint64_t id, const CcChange& change);
    CtlResult<void> modify_port(const PortChange& change);

   private:
    friend class ControllerState;
    Changes(const ControllerState& state, CtlModel model)
        : state_(state), model_(std::move(model)) {}
    // Whether QPs keep a profile from leaving ONLINE. If not, no QP can begin to use it until the
    // change is written.
    struct Leaving {
      ProfileKind kind;
      std::uint64_t id;
      bool leaves;  // ONLINE, for another state
    };
    CtlResult<bool> is_in_use(const Leaving& profile);
    const ControllerState& state_;
    CtlModel model_;
    std::map<std::pair<ProfileKind, std::uint64_t>, os::FileDescriptor> excluded_{};
    bool is_partly_done_ = false;  // a batch failed after some of its entries, which stay
  };
  // Several changes as one: all are made, or none. Errors: those that `body` returns, and EPERM,
  // EIO.
  using Body = std::function<CtlResult<void>(Changes&)>;
  CtlResult<void> change_together(const Body& body) { return change(body, Partly::kNo); }
  // One change. Errors: those of ctl_profiles.h, and EPERM, EIO.
  CtlResult<void> modify_format(std::uint64_t id, const FormatChange& change);
  CtlResult<void> modify_ev(std::uint64_t id, const EvChange& change);
  CtlResult<void> modify_cc(std::uint64_t id, const CcChange& change);
  CtlResult<void> modify_port(const PortChange& change);
  // Changes nothing but the generation, so that processes look for new listeners.
  CtlResult<void> touch();
  // The generation that this object's last change made; 0 if it made none.
  std::uint64_t generation_made() const { return generation_made_; }
  // Whether this process may change the state; otherwise EPERM and the reason.
  CtlResult<void> check_permission() const;

  // The directory of event sockets. Controllers make it, all processes read it. Errors: kNotFound,
  // kSystem.
  enum class Make : std::uint8_t { kNo, kYes };
  Result<os::FileDescriptor> events_directory(Make make) const;

 private:
  explicit ControllerState(Options options) : options_(std::move(options)) {}
  Result<void> attach();
  std::string file(const char* suffix) const { return options_.device + suffix; }
  CtlResult<CtlModel> read() const;
  CtlResult<void> write(const CtlModel& model);
  CtlResult<os::FileDescriptor> lock() const;
  // kYes: if a batch fails, its entries before the failure are written.
  enum class Partly : std::uint8_t { kNo, kYes };
  CtlResult<void> change(const Body& body, Partly partly);

  Options options_;
  os::FileDescriptor directory_;
  LiveFile live_;
  std::atomic<std::uint64_t> generation_made_ = 0;
  std::mutex mutex_;  // of the members below
  Snapshot cached_;
  std::uint64_t cached_number_ = 1;  // odd: the cache is empty
};

}  // namespace weft::control
