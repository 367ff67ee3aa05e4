// EV format profiles: where the bits of an EV are in a packet.
#include "conformance/controller.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void expect_state(const Controller& controller, mrc_ctl_profile_state state) {
  equal("profile state", static_cast<int>(controller.format_state()), static_cast<int>(state));
}
void must_work(std::string_view what, int error) {
  if (error != 0) fail(fmt::format("{} works", what), errno_name(error));
}
void refused(std::string_view what, int error, Errnos expected) {
  fails_value(what, error, expected);
}

void all_transitions(Session& session) {
  Controller controller(session);
  expect_state(controller, MRC_CTL_PROFILE_INIT);
  controller.format_online();
  expect_state(controller, MRC_CTL_PROFILE_ONLINE);
  must_work("ONLINE to OFFLINE", controller.move_format(MRC_CTL_PROFILE_OFFLINE));
  expect_state(controller, MRC_CTL_PROFILE_OFFLINE);
  must_work("OFFLINE to INIT", controller.move_format(MRC_CTL_PROFILE_INIT));
  expect_state(controller, MRC_CTL_PROFILE_INIT);
}

void init_to_online_is_refused(Session& session) {
  Controller controller(session);
  refused("INIT to ONLINE", controller.move_format(MRC_CTL_PROFILE_ONLINE), {EINVAL});
  expect_state(controller, MRC_CTL_PROFILE_INIT);
}

void online_to_init_is_refused(Session& session) {
  Controller controller(session);
  controller.format_online();
  refused("ONLINE to INIT", controller.move_format(MRC_CTL_PROFILE_INIT), {EINVAL});
  expect_state(controller, MRC_CTL_PROFILE_ONLINE);
}

void offline_without_mode(Session& session) {
  Controller controller(session);
  refused("OFFLINE without a mode", controller.move_format(MRC_CTL_PROFILE_OFFLINE), {EINVAL});
}

void online_without_fields(Session& session) {
  Controller controller(session);
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_fmt_mode = controller.mode();
  must_work("OFFLINE with a mode", controller.set_format(attr, MRC_CTL_EV_FMT_PROFILE_STATE |
                                                                   MRC_CTL_EV_FMT_PROFILE_MODE));
  refused("ONLINE without fields", controller.move_format(MRC_CTL_PROFILE_ONLINE), {EINVAL});
}

void modify_online(Session& session) {
  Controller controller(session);
  controller.format_online();
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
  refused("MODE while ONLINE", controller.set_format(attr, MRC_CTL_EV_FMT_PROFILE_MODE),
          {EINVAL, EBUSY});
}

void cur_state(Session& session) {
  Controller controller(session);
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.cur_profile_state = MRC_CTL_PROFILE_ONLINE;
  attr.ev_fmt_mode = controller.mode();
  refused(
      "CUR_STATE that does not hold",
      controller.set_format(attr, MRC_CTL_EV_FMT_PROFILE_CUR_STATE | MRC_CTL_EV_FMT_PROFILE_MODE),
      {EINVAL});
}

void too_wide_fields_are_refused(Session& session) {
  Controller controller(session);
  refused("fields wider than the mode has",
          controller.fields({32, 32, 32, 32, 32, 32, 32, 32, 32}, MRC_CTL_PROFILE_OFFLINE),
          {E2BIG, EINVAL});
}

void query_fields(Session& session) {
  Controller controller(session);
  controller.format_online();
  const int count = controller.mode() == MRC_CTL_EV_FMT_MODE_STEV ? 2 : 1;
  mrc_ctl_ev_fmt_field fields[4]{};
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_op = {
      .op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS, .fmt_fields = fields, .fmt_field_count = 4};
  const auto query = [&] {
    return controller.library.mrc_ctl_query_ev_fmt_profile(
        controller.host.context, controller.format_id, &attr, MRC_CTL_EV_FMT_PROFILE_OP);
  };
  works("QUERY_FIELDS", query());
  equal("fmt_field_count", attr.ev_fmt_op.fmt_field_count, count);
  for (int i = 0; i < count; ++i) equal("width", int{fields[i].width}, 16);
  attr.ev_fmt_op.fmt_field_count = 0;
  fails_minus_one("QUERY_FIELDS into a short array", query(), {E2BIG});
  equal("fmt_field_count then", attr.ev_fmt_op.fmt_field_count, count);
}

void query_modify(Session& session) {
  Controller controller(session);
  mrc_ctl_ev_fmt_field fields[4]{};
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_op = {
      .op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS, .fmt_fields = fields, .fmt_field_count = 4};
  fails_minus_one(
      "MODIFY_FIELDS in a query",
      controller.library.mrc_ctl_query_ev_fmt_profile(controller.host.context, controller.format_id,
                                                      &attr, MRC_CTL_EV_FMT_PROFILE_OP),
      {EINVAL});
}

void unknown_profile_is_refused(Session& session) {
  Controller controller(session);
  mrc_ctl_ev_fmt_profile_attr attr{};
  fails_minus_one("a query of a profile beyond the last",
                  controller.library.mrc_ctl_query_ev_fmt_profile(
                      controller.host.context, controller.device.ev.ev_max_fmt_profiles, &attr,
                      MRC_CTL_EV_FMT_PROFILE_STATE),
                  {EINVAL});
}

void format_in_use_is_busy(Session& session) {
  Controller controller(session);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(1));
  controller.populate(1);
  must_work("ONLINE of an EV profile", controller.move_ev(MRC_CTL_PROFILE_ONLINE));
  refused("OFFLINE of its format", controller.move_format(MRC_CTL_PROFILE_OFFLINE), {EBUSY});
  expect_state(controller, MRC_CTL_PROFILE_ONLINE);
}

#define WEFT_CLAUSE "mrc_ctl.h: mrc_ctl_modify_ev_fmt_profile"
#define WEFT_STATES "mrc_ctl.h: profile states"
constexpr Test kTests[] = {
    {.id = "api.ctl.format.states",
     .clause = WEFT_STATES,
     .what = "INIT, OFFLINE, ONLINE, OFFLINE, INIT",
     .body = all_transitions},
    {.id = "api.ctl.format.init-online",
     .clause = WEFT_STATES,
     .what = "the transition from INIT to ONLINE is refused, and nothing changes",
     .body = init_to_online_is_refused},
    {.id = "api.ctl.format.online-init",
     .clause = WEFT_STATES,
     .what = "the transition from ONLINE to INIT is refused, and nothing changes",
     .body = online_to_init_is_refused},
    {.id = "api.ctl.format.no-mode",
     .clause = WEFT_CLAUSE,
     .what = "OFFLINE needs a MODE",
     .body = offline_without_mode},
    {.id = "api.ctl.format.no-fields",
     .clause = WEFT_CLAUSE,
     .what = "ONLINE needs fields",
     .body = online_without_fields},
    {.id = "api.ctl.format.modify-online",
     .clause = WEFT_CLAUSE,
     .what = "in ONLINE the only permitted change is to OFFLINE",
     .body = modify_online},
    {.id = "api.ctl.format.cur-state",
     .clause = "mrc_ctl.h: cur_profile_state",
     .certainty = Certainty::kOurs,
     .what = "a CUR_STATE that is not the actual state is EINVAL",
     .body = cur_state},
    {.id = "api.ctl.format.too-wide",
     .clause = WEFT_CLAUSE,
     .what = "fields with more bits than an EV are refused",
     .body = too_wide_fields_are_refused},
    {.id = "api.ctl.format.query-fields",
     .clause = "mrc_ctl.h: mrc_ctl_query_ev_fmt_profile",
     .what = "a query returns the fields; a short array is E2BIG with the count",
     .body = query_fields},
    {.id = "api.ctl.format.query-modify",
     .clause = "mrc_ctl.h: mrc_ctl_query_ev_fmt_profile",
     .what = "MODIFY_FIELDS in a query is EINVAL",
     .body = query_modify},
    {.id = "api.ctl.format.none",
     .clause = "mrc_ctl.h: profile numbers",
     .what = "a number after the last profile is EINVAL",
     .body = unknown_profile_is_refused},
    {.id = "api.ctl.format.busy",
     .clause = WEFT_CLAUSE " EBUSY",
     .what = "EBUSY while an EV profile that uses it is ONLINE",
     .body = format_in_use_is_busy},
};

}  // namespace

std::span<const Test> ctl_format_tests() { return kTests; }

}  // namespace weft::conformance
