#include "conformance/controller.h"

#include <algorithm>
#include <bit>

namespace weft::conformance {
namespace {

constexpr int kFormatAll =
    MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP;

// The highest number of a profile that is in INIT.
template <typename State>
std::uint64_t unused(const char* what, std::uint32_t count, const State& state) {
  for (std::uint64_t id = count; id-- > 0;) {
    if (state(id) == MRC_CTL_PROFILE_INIT) return id;
  }
  skip(fmt::format("no {} profile is in state INIT", what));
}

}  // namespace

Controller::Controller(Session& session) : host(session), library(host.library) {
  works("mrc_ctl_query_device", library.mrc_ctl_query_device(host.verbs, &device));
  const auto state_of = [&](auto query, auto attr, std::uint64_t id, int mask) {
    if (query(host.context, id, &attr, mask) != 0) return MRC_CTL_PROFILE_ONLINE;
    return attr.profile_state;
  };
  format_id = unused("EV format", device.ev.ev_max_fmt_profiles, [&](std::uint64_t id) {
    return state_of(library.mrc_ctl_query_ev_fmt_profile, mrc_ctl_ev_fmt_profile_attr{}, id,
                    MRC_CTL_EV_FMT_PROFILE_STATE);
  });
  ev_id = unused("EV", device.ev.ev_max_profiles, [&](std::uint64_t id) {
    return state_of(library.mrc_ctl_query_ev_profile, mrc_ctl_ev_profile_attr{}, id,
                    MRC_CTL_EV_PROFILE_STATE);
  });
  cc_id = unused("CC", device.cc.cc_max_profiles, [&](std::uint64_t id) {
    return state_of(library.mrc_ctl_query_cc_profile, mrc_ctl_cc_profile_attr{}, id,
                    MRC_CTL_CC_PROFILE_STATE);
  });
}

// Makes every transition on the path to INIT. A transition that does not fit the present state is
// refused, which does no harm.
Controller::~Controller() {
  mrc_ctl_ev_profile_attr ev_attr{};
  mrc_ctl_ev_fmt_profile_attr format{};
  mrc_ctl_cc_profile_attr cc{};
  for (const auto state : {MRC_CTL_PROFILE_OFFLINE, MRC_CTL_PROFILE_INIT}) {
    ev_attr.profile_state = state;
    library.mrc_ctl_modify_ev_profile.call_if_present(host.context, ev_id, &ev_attr,
                                                      MRC_CTL_EV_PROFILE_STATE);
  }
  for (const auto state : {MRC_CTL_PROFILE_OFFLINE, MRC_CTL_PROFILE_INIT}) {
    format.profile_state = cc.profile_state = state;
    library.mrc_ctl_modify_ev_fmt_profile.call_if_present(host.context, format_id, &format,
                                                          MRC_CTL_EV_FMT_PROFILE_STATE);
    library.mrc_ctl_modify_cc_profile.call_if_present(host.context, cc_id, &cc,
                                                      MRC_CTL_CC_PROFILE_STATE);
  }
}

int Controller::allowed(int returned) const {
  const int error = errno;
  if (returned == 0) return 0;
  if (returned != -1) fail("0 or -1", text_of_value(returned));
  if (error == EPERM) skip("changing profiles needs CAP_NET_ADMIN or the device's owner");
  return error;
}

int Controller::set_format(mrc_ctl_ev_fmt_profile_attr attr, int mask) {
  return allowed(library.mrc_ctl_modify_ev_fmt_profile(host.context, format_id, &attr, mask));
}
int Controller::set_ev(mrc_ctl_ev_profile_attr attr, int mask) {
  return allowed(library.mrc_ctl_modify_ev_profile(host.context, ev_id, &attr, mask));
}
int Controller::set_cc(mrc_ctl_cc_profile_attr attr, int mask) {
  return allowed(library.mrc_ctl_modify_cc_profile(host.context, cc_id, &attr, mask));
}

int Controller::move_format(mrc_ctl_profile_state state) {
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.profile_state = state;
  return set_format(attr, MRC_CTL_EV_FMT_PROFILE_STATE);
}
int Controller::move_ev(mrc_ctl_profile_state state) {
  mrc_ctl_ev_profile_attr attr{};
  attr.profile_state = state;
  return set_ev(attr, MRC_CTL_EV_PROFILE_STATE);
}
int Controller::move_cc(mrc_ctl_profile_state state) {
  mrc_ctl_cc_profile_attr attr{};
  attr.profile_state = state;
  return set_cc(attr, MRC_CTL_CC_PROFILE_STATE);
}

mrc_ctl_profile_state Controller::ev_state() const {
  mrc_ctl_ev_profile_attr attr{};
  works("mrc_ctl_query_ev_profile",
        library.mrc_ctl_query_ev_profile(host.context, ev_id, &attr, MRC_CTL_EV_PROFILE_STATE));
  return attr.profile_state;
}
mrc_ctl_profile_state Controller::format_state() const {
  mrc_ctl_ev_fmt_profile_attr attr{};
  works("mrc_ctl_query_ev_fmt_profile",
        library.mrc_ctl_query_ev_fmt_profile(host.context, format_id, &attr,
                                             MRC_CTL_EV_FMT_PROFILE_STATE));
  return attr.profile_state;
}
mrc_ctl_profile_state Controller::cc_state() const {
  mrc_ctl_cc_profile_attr attr{};
  works("mrc_ctl_query_cc_profile",
        library.mrc_ctl_query_cc_profile(host.context, cc_id, &attr, MRC_CTL_CC_PROFILE_STATE));
  return attr.profile_state;
}

mrc_ctl_ev_fmt_mode Controller::mode() const {
  return (device.ev.ev_fmt_mode_mask & MRC_CTL_EV_FMT_MODE_STEV) != 0 ? MRC_CTL_EV_FMT_MODE_STEV
                                                                      : MRC_CTL_EV_FMT_MODE_UDP;
}

int Controller::fields(std::vector<std::uint8_t> widths, mrc_ctl_profile_state to) {
  std::vector<mrc_ctl_ev_fmt_field> list;
  for (const std::uint8_t width : widths) list.push_back({width});
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_fmt_mode = mode();
  attr.ev_fmt_op = {.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS,
                    .fmt_fields = list.data(),
                    .fmt_field_count = static_cast<int>(list.size())};
  if (const int error = set_format(attr, kFormatAll)) return error;
  return to == MRC_CTL_PROFILE_ONLINE ? move_format(to) : 0;
}

void Controller::format_online() {
  const bool stev = mode() == MRC_CTL_EV_FMT_MODE_STEV;
  const int error = fields(stev ? std::vector<std::uint8_t>{16, 16} : std::vector<std::uint8_t>{16},
                           MRC_CTL_PROFILE_ONLINE);
  if (error != 0) fail("a format profile ONLINE", errno_name(error));
}

int Controller::explicit_offline(std::uint32_t count) {
  mrc_ctl_ev_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = MRC_CTL_EV_MODE_EXP;
  attr.ev_fmt_profile_id = format_id;
  attr.ev_count = count;
  attr.ev_min_active = 1;
  attr.ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
  return set_ev(attr, MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                          MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                          MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK);
}

void Controller::populate(std::uint32_t count) {
  std::vector<mrc_ctl_ev_op_entry> entries(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    entries[i].ev_new = ev(i);
    entries[i].state = MRC_CTL_EV_GOOD;
  }
  const int error = ev_op(MRC_CTL_EV_OP_REPLACE_EV, entries);
  if (error != 0) fail("REPLACE_EV of unpopulated EVs", errno_name(error));
}

int Controller::ev_op(mrc_ctl_ev_op op, std::vector<mrc_ctl_ev_op_entry>& entries) {
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op = {
      .op = op, .entries = entries.data(), .entry_count = static_cast<int>(entries.size())};
  return set_ev(attr, MRC_CTL_EV_PROFILE_EV_OP);
}

std::vector<mrc_ctl_ev_op_entry> Controller::array(std::uint32_t count) {
  std::vector<mrc_ctl_ev_op_entry> entries(count);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY,
                .entries = entries.data(),
                .entry_count = static_cast<int>(count)};
  works("QUERY_EV_ARRAY",
        library.mrc_ctl_query_ev_profile(host.context, ev_id, &attr, MRC_CTL_EV_PROFILE_EV_OP));
  equal("entry_count", attr.ev_op.entry_count, static_cast<int>(count));
  return entries;
}

std::uint32_t Controller::port_count() const {
  return static_cast<std::uint32_t>(std::max(std::popcount(device.phy_port_mask), 1));
}

mrc_ctl_ev Controller::ev(std::uint32_t i) const {
  mrc_ctl_ev out{};
  const bool stev = mode() == MRC_CTL_EV_FMT_MODE_STEV;
  out.val[stev ? 2 : 0] = static_cast<std::uint8_t>((i + 1) >> 8);
  out.val[stev ? 3 : 1] = static_cast<std::uint8_t>(i + 1);
  out.port = static_cast<std::uint8_t>(1 + i % port_count());
  return out;
}

}  // namespace weft::conformance
