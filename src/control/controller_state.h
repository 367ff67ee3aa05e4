// ControllerState: the settings that controllers made for a device. All processes of a host share
// them through files, without a daemon.
//
// Files in a state directory, for a device NAME:
//   NAME.state   the model (ctl_codec.h), replaced as a whole by rename; absent at first
//   NAME.live    generation number and uses (ctl_live_file.h)
//   NAME.lock    locked during a change
//   NAME.events/ sockets of the listeners for EV events (ctl_events.h)
//
// A writer may be killed at any point: readers see the old state or the new one. Of two writers,
// the second waits until the first has finished. Only the owner of the directory may write, and for
// a system device only with CAP_NET_ADMIN. All users who may read the directory may read the state.
// If there is no directory and none can be made, the model has its initial values and cannot be
// changed (is_attached()).
//
// Thread safe. Profile 0 in INIT means the device's own defaults, so that programs that name no
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

// kSystem: a device that the host's administrator has set up. kUser: the loopback device of the
// user that runs the process.
enum class DeviceScope : std::uint8_t { kUser, kSystem };

// kUser for loopback planes, kSystem for all others.
DeviceScope scope_of(std::span<const Ipv6> planes);

// The directory of the state files: $WEFT_STATE_DIR if set; otherwise /run/weft for system devices
// and for root; otherwise weft in $XDG_STATE_HOME or in ~/.local/state. Errors: kSystem (there is
// no home).
Result<std::string> state_directory(DeviceScope scope);

class ControllerState;
// Opens the state of a device on these planes, in state_directory(). If its files cannot be used,
// this is logged, and the model has its initial values.
std::unique_ptr<ControllerState> open_controller(const std::string& device,
                                                 std::span<const Ipv6> planes);

class ControllerState {
 public:
  struct Options {
    std::string directory{};  // from state_directory()
    std::string device{};     // the device's name: letters, digits, '-', '_', '.'
    DeviceScope scope = DeviceScope::kUser;
    CtlDevice shape{};
  };
  // Makes the directory and files if they are missing and this user is allowed to. Errors: kInvalid
  // (the name); kSystem (others may write to the directory, we may not read it, or a file is
  // damaged).
  static Result<std::unique_ptr<ControllerState>> open(const Options& options);
  ~ControllerState();

  const CtlDevice& shape() const { return options_.shape; }
  bool is_attached() const { return live_.is_open(); }
  // Changes when the state changes; 0 if not attached. Reading it takes no system call. Odd while a
  // change is in progress, or if the process that wrote died: then the state may be old, so read it
  // again later.
  std::uint64_t generation() const { return live_.is_open() ? live_.number() : 0; }

  // --- reading ---------------------------------------------------------------------------------
  // The whole model, as it is now. Errors: EIO.
  using Snapshot = std::shared_ptr<const CtlModel>;
  CtlResult<Snapshot> snapshot();
  // The model for queries about EVs: an EV that QPs of any process find bad is ASSUMED_BAD in it,
  // unless it is denied. Errors: EIO.
  CtlResult<Snapshot> snapshot_with_bad_evs();

  // --- use by QPs ------------------------------------------------------------------------------
  // While a Use lives, its profile stays ONLINE. For the device's own defaults the Use is empty and
  // holds no lock.
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
    ControllerState* state_ = nullptr;  // must outlive this Use
    ProfileKind kind_ = ProfileKind::kEv;
    std::uint32_t id_ = 0;
  };

  // An EV profile as a QP needs it.
  struct EvView {
    struct Entry {
      CtlEv ev{};                  // as the controller wrote it; events name the EV in this form
      fabric::Ev path{};           // as the transport uses it; here ports count from 0
      fabric::EvBytes expanded{};  // as it stands in packets
      EvState state = EvState::kGood;
    };
    std::uint32_t id = 0;
    // kAutomatic: there are no entries, and the device draws EVs.
    fabric::EvMode mode = fabric::EvMode::kAutomatic;
    fabric::EvFormatMode format = fabric::EvFormatMode::kStev;
    std::vector<Entry> entries{};
    std::uint32_t min_active = 0;
    std::uint32_t event_mask = 0;
    std::uint64_t generation = 0;  // of the model that the view was read from
  };
  struct CcView {
    std::uint32_t id = 0;
    CcAlgorithm algorithm = CcAlgorithm::kNscc;
    NsccSettings nscc{};  // zero members: derived from rate and base RTT
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
  // Errors: EINVAL (no such profile, or it is not ONLINE), EAGAIN, EIO.
  CtlResult<EvUse> use_ev_profile(std::uint64_t id);
  CtlResult<CcUse> use_cc_profile(std::uint64_t id);
  // The present values of a profile, for a caller that uses the profile and saw the generation
  // change.
  CtlResult<EvView> ev_view(std::uint64_t id);
  CtlResult<CcView> cc_view(std::uint64_t id);

  // Marks the EV at index `entry` of profile `id` as bad for QPs of this process, or removes the
  // mark. Other processes see the mark until it is removed or this object is destroyed.
  void mark_bad(std::uint32_t id, std::uint32_t entry, bool bad);

  // --- changing --------------------------------------------------------------------------------
  // A copy of the model, which is changed while the lock is held. Errors: those of ctl_profiles.h,
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
    // Whether QPs use a profile that is to leave ONLINE. If no QP does, none can begin to use it
    // until the change is written.
    struct Leaving {
      ProfileKind kind;
      std::uint64_t id;
      bool leaves;  // goes from ONLINE to another state
    };
    CtlResult<bool> is_in_use(const Leaving& profile);
    const ControllerState& state_;
    CtlModel model_;
    std::map<std::pair<ProfileKind, std::uint64_t>, os::FileDescriptor> excluded_{};
    // an operation of a batch failed, and the entries before it are kept
    bool is_partly_done_ = false;
  };
  // Makes several changes together: either all are made, or none. Errors: those that `body`
  // returns, and EPERM, EIO.
  using Body = std::function<CtlResult<void>(Changes&)>;
  CtlResult<void> change_together(const Body& body) { return change(body, Partly::kNo); }
  // One change. Errors: those of ctl_profiles.h, and EPERM, EIO.
  CtlResult<void> modify_format(std::uint64_t id, const FormatChange& change);
  CtlResult<void> modify_ev(std::uint64_t id, const EvChange& change);
  CtlResult<void> modify_cc(std::uint64_t id, const CcChange& change);
  CtlResult<void> modify_port(const PortChange& change);
  // Changes only the generation, so that processes look for new event listeners.
  CtlResult<void> touch();
  // The generation after the last change by this object; 0 if it has made no change.
  std::uint64_t generation_made() const { return generation_made_; }
  // Succeeds if this process may change the state. Otherwise EPERM, with the reason.
  CtlResult<void> check_permission() const;

  // Opens the directory of event sockets. Controllers make it (kYes); all processes read it.
  // Errors: kNotFound, kSystem.
  enum class Make : std::uint8_t { kNo, kYes };
  Result<os::FileDescriptor> events_directory(Make make) const;

 private:
  explicit ControllerState(Options options) : options_(std::move(options)) {}
  Result<void> attach();
  std::string file(const char* suffix) const { return options_.device + suffix; }
  CtlResult<CtlModel> read() const;
  CtlResult<void> write(const CtlModel& model);
  CtlResult<os::FileDescriptor> lock() const;
  // kYes: if an operation of a batch fails, the entries before it are written.
  enum class Partly : std::uint8_t { kNo, kYes };
  CtlResult<void> change(const Body& body, Partly partly);

  Options options_;
  os::FileDescriptor directory_;
  LiveFile live_;
  std::atomic<std::uint64_t> generation_made_ = 0;
  std::mutex mutex_;  // protects the members below
  Snapshot cached_;
  std::uint64_t cached_number_ = 1;  // odd: the cache is empty
};

}  // namespace weft::control
