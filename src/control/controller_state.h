// ControllerState: what controllers told a device, shared by all processes of a host, without a
// daemon.
//
// Files in a state directory, for a device NAME:
//   NAME.state   the model (ctl_codec.h), replaced as a whole by rename; absent: nothing was told yet
//   NAME.live    generation number and uses (ctl_live_file.h)
//   NAME.lock    taken by whoever changes something
//   NAME.events/ sockets of those who want EV events (ctl_events.h)
//
// A writer may be killed at any point: readers see the old state or the new one. Two writers wait for
// each other. Who may write: the owner of the directory, and for a system device only with
// CAP_NET_ADMIN. Who may read: anyone whom the directory lets in. Where there is no directory and
// none can be made, everything is as on the first day and cannot be changed (is_attached()).
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

// kSystem: set up by the host's administrator. kUser: the loopback device of whoever runs.
enum class DeviceScope : std::uint8_t { kUser, kSystem };

// The loopback is the user's, every other network the host's.
DeviceScope scope_of(std::span<const Ipv6> planes);

// Where the files are: $WEFT_STATE_DIR; else /run/weft for system devices and for root's;
// else $XDG_STATE_HOME/weft, ~/.local/state/weft. Errors: kSystem (there is no home).
Result<std::string> state_directory(DeviceScope scope);

class ControllerState;
// The state of a device on these planes, by the rules above. Where it cannot be had, that is said in
// the log, and it is as on the first day.
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
  // Makes the directory and files if they are missing and may be made. Errors: kInvalid (the name),
  // kSystem (a directory that others may write to or that we may not read, a damaged file).
  static Result<std::unique_ptr<ControllerState>> open(const Options& options);
  ~ControllerState();

  const CtlDevice& shape() const { return options_.shape; }
  bool is_attached() const { return live_.is_open(); }
  // Changes when the state does, without a system call; 0 where not attached. Odd: a change is under
  // way or its writer died; what is read now may be old, look again later.
  std::uint64_t generation() const { return live_.is_open() ? live_.number() : 0; }

  // --- reading ---------------------------------------------------------------------------------
  // All of it as it is now. Errors: EIO.
  using Snapshot = std::shared_ptr<const CtlModel>;
  CtlResult<Snapshot> snapshot();
  // The same for those who ask about EVs: those that QPs of any process find bad are ASSUMED_BAD in it,
  // unless they are denied. Errors: EIO.
  CtlResult<Snapshot> observed();

  // --- use by QPs ------------------------------------------------------------------------------
  // While it lives the profile stays ONLINE. Empty for a default, which is nobody's.
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
    ControllerState* state_ = nullptr;  // outlives the use
    ProfileKind kind_ = ProfileKind::kEv;
    std::uint32_t id_ = 0;
  };

  // An EV profile as a QP needs it.
  struct EvView {
    struct Entry {
      CtlEv ev{};                  // as the controller wrote it: names it in events
      fabric::Ev path{};           // as the transport uses it; ports from 0
      fabric::EvBytes expanded{};  // as the wire has it
      EvState state = EvState::kGood;
    };
    std::uint32_t id = 0;
    fabric::EvMode mode = fabric::EvMode::kAutomatic;  // automatic: no entries, the device draws
    fabric::EvFormatMode format = fabric::EvFormatMode::kStev;
    std::vector<Entry> entries{};
    std::uint32_t min_active = 0;
    std::uint32_t event_mask = 0;
    std::uint64_t generation = 0;  // of the file it was read at
  };
  struct CcView {
    std::uint32_t id = 0;
    CcAlgorithm algorithm = CcAlgorithm::kNscc;
    NsccSettings nscc{};  // all zero: derived
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
  // EINVAL: no such profile, or not ONLINE. EAGAIN, EIO.
  CtlResult<EvUse> use_ev_profile(std::uint64_t id);
  CtlResult<CcUse> use_cc_profile(std::uint64_t id);
  // What it says now, for whoever uses it already and saw the generation change.
  CtlResult<EvView> ev_view(std::uint64_t id);
  CtlResult<CcView> cc_view(std::uint64_t id);

  // What QPs of this process found out about an EV, by its place in the profile: seen by others until
  // it is taken back or this object is gone.
  void mark_bad(std::uint32_t id, std::uint32_t entry, bool bad);

  // --- changing --------------------------------------------------------------------------------
  // The state as it is to be, while its lock is held. Errors: those of ctl_profiles.h, and EPERM, EIO.
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
    // Whether QPs keep a profile from a change of its state; if not, none begins to use it until all
    // is written.
    struct Leaving {
      ProfileKind kind;
      std::uint64_t id;
      bool leaves;  // ONLINE
    };
    CtlResult<bool> is_in_use(const Leaving& profile);
    const ControllerState& state_;
    CtlModel model_;
    std::map<std::pair<ProfileKind, std::uint64_t>, os::FileDescriptor> excluded_{};
    bool is_partly_done_ = false;  // of a batch that fails, what came before stays
  };
  // Several changes as one: all are made, or none. Errors: what `body` returns, and EPERM, EIO.
  using Body = std::function<CtlResult<void>(Changes&)>;
  CtlResult<void> change_together(const Body& body) { return change(body, Partly::kNo); }
  // One change. Errors: those of ctl_profiles.h, and EPERM, EIO.
  CtlResult<void> modify_format(std::uint64_t id, const FormatChange& change);
  CtlResult<void> modify_ev(std::uint64_t id, const EvChange& change);
  CtlResult<void> modify_cc(std::uint64_t id, const CcChange& change);
  CtlResult<void> modify_port(const PortChange& change);
  // Changes nothing but the generation, so that processes look again.
  CtlResult<void> touch();
  // The generation that the last change by this object made; 0: there was none.
  std::uint64_t generation_made() const { return generation_made_; }
  // Whether this process may change it; EPERM and why not.
  CtlResult<void> check_permission() const;

  // The directory of event sockets; made by a controller, looked into by everyone. Errors: kNotFound,
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
  // kYes: what a batch did before it failed is written.
  enum class Partly : std::uint8_t { kNo, kYes };
  CtlResult<void> change(const Body& body, Partly partly);

  Options options_;
  os::FileDescriptor directory_;
  LiveFile live_;
  std::atomic<std::uint64_t> generation_made_ = 0;
  std::mutex mutex_;  // of what follows
  Snapshot cached_;
  std::uint64_t cached_number_ = 1;  // odd: nothing is cached
};

}  // namespace weft::control
