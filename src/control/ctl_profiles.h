// The state machines of profiles: which change may a controller make in which state? Pure functions
// on a model.
//
// The only transitions are INIT -> OFFLINE -> ONLINE -> OFFLINE -> INIT. A change is applied in
// this order: CUR_STATE is compared, attributes are set, EV operations are applied, the transition
// is made. A call that fails changes nothing. The API demands one exception: if an EV operation
// fails, the entries before it and the attributes of the call are kept.
//
// Errors are those of mrc_ctl.h: EINVAL, E2BIG, ENOENT, EBUSY.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/ctl_error.h"
#include "control/ctl_model.h"

namespace weft::control {

// --- EV formats --------------------------------------------------------------------------------

struct FormatChange {
  std::optional<ProfileState> state{}, cur_state{};
  std::optional<std::uint32_t> mode{};  // the caller's number, not yet checked
  std::optional<std::vector<std::uint32_t>> widths{};
  std::optional<VendorConfig> vendor{};
};
CtlResult<void> modify_format(CtlModel& model, std::uint64_t id, const FormatChange& change);

// --- EV profiles -------------------------------------------------------------------------------

enum class EvOp : std::uint8_t { kReplace, kModifyState };

struct EvOpEntry {
  CtlEv ev{}, ev_new{};
  std::uint32_t state = 0;  // the caller's number, not yet checked
  bool all_copies = false;
};

struct EvOps {
  EvOp op = EvOp::kReplace;
  std::vector<EvOpEntry> entries{};
};

struct EvChange {
  std::optional<ProfileState> state{}, cur_state{};
  std::optional<std::uint32_t> mode{};
  std::optional<std::uint64_t> format{};
  std::optional<std::uint32_t> count{}, min_active{}, event_mask{};
  std::optional<std::vector<fabric::EvField>> fields{};
  std::optional<EvOps> ops{};
  std::optional<VendorConfig> vendor{};
};

struct EvContext {
  CtlDevice device{};
  bool in_use = false;  // QPs use the profile
};
// `changed`: set to true if the model was changed, even if the result is an error.
CtlResult<void> modify_ev_profile(CtlModel& model, std::uint64_t id, const EvChange& change,
                                  const EvContext& context, bool& changed);

// Applies the entries in order and stops at the first that fails. A part of modify_ev_profile().
CtlResult<void> carry_out_ev_ops(const CtlModel& model, const EvOps& ops, const CtlDevice& device,
                                 EvProfileRecord& profile);

// The state of each EV, in the order of `evs`; ENOENT if an EV is not in the profile.
CtlResult<std::vector<EvState>> query_ev_states(const CtlModel& model, std::uint64_t id,
                                                std::span<const CtlEv> evs);

// How the profile's EVs are converted to bits in packets. Errors: EINVAL if the fields do not match
// the format, or the profile is automatic.
CtlResult<fabric::EvExpansion> expansion_of(const CtlModel& model, const EvProfileRecord& profile);

// --- CC profiles -------------------------------------------------------------------------------

struct CcChange {
  std::optional<ProfileState> state{}, cur_state{};
  std::optional<CcAlgorithm> algorithm{};
  std::optional<NsccSettings> nscc{};  // CONFIG for the algorithm NSCC
  bool config_empty = false;           // CONFIG was given as NULL
  std::optional<VendorConfig> vendor{};
};
struct CcContext {
  bool in_use = false;
};
CtlResult<void> modify_cc_profile(CtlModel& model, std::uint64_t id, const CcChange& change,
                                  const CcContext& context);

// --- ports -------------------------------------------------------------------------------------

struct PortChange {
  std::uint32_t port = 0;
  bool enabled = true;
};
CtlResult<void> modify_port(CtlModel& model, const CtlDevice& device, const PortChange& change);
// EINVAL for a port that the device does not have.
CtlResult<bool> is_port_enabled(const CtlModel& model, const CtlDevice& device, std::uint32_t port);

// --- a model that was read from a file -----------------------------------------------------------

// Succeeds if the functions above could have made this model, as far as other code relies on that:
// each ONLINE profile is complete. Otherwise EINVAL; the message names the bad profile.
CtlResult<void> check_model(const CtlModel& model);
CtlResult<void> check_format_profile(const CtlModel& model, std::uint32_t id);
CtlResult<void> check_ev_profile(const CtlModel& model, std::uint32_t id);
CtlResult<void> check_cc_profile(const CtlModel& model, std::uint32_t id);

// --- used by several state machines -------------------------------------------------------------

// "INIT", "OFFLINE", "ONLINE".
const char* name_of(ProfileState state);
// EINVAL if the state machine does not have this transition.
CtlResult<void> check_transition(ProfileState from, ProfileState to);
CtlResult<void> check_current(ProfileState is, std::optional<ProfileState> expected);

}  // namespace weft::control
