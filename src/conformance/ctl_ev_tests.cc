// EV profiles: states, the attributes that each state needs, lifetime, generated EVs.
#include "conformance/controller.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void expect_state(const Controller& controller, mrc_ctl_profile_state state) {
  equal("profile state", static_cast<int>(controller.ev_state()), static_cast<int>(state));
}
void must_work(std::string_view what, int error) {
  if (error != 0) fail(fmt::format("{} works", what), errno_name(error));
}

void online(Controller& controller, std::uint32_t count) {
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(count));
  controller.populate(count);
  must_work("ONLINE", controller.move_ev(MRC_CTL_PROFILE_ONLINE));
}

void all_transitions(Session& session) {
  Controller controller(session);
  expect_state(controller, MRC_CTL_PROFILE_INIT);
  online(controller, 4);
  expect_state(controller, MRC_CTL_PROFILE_ONLINE);
  must_work("ONLINE to OFFLINE", controller.move_ev(MRC_CTL_PROFILE_OFFLINE));
  must_work("OFFLINE to INIT", controller.move_ev(MRC_CTL_PROFILE_INIT));
  expect_state(controller, MRC_CTL_PROFILE_INIT);
}

void init_to_online_is_refused(Session& session) {
  Controller controller(session);
  fails_value("INIT to ONLINE", controller.move_ev(MRC_CTL_PROFILE_ONLINE), {EINVAL});
  expect_state(controller, MRC_CTL_PROFILE_INIT);
}

void online_to_init_is_refused(Session& session) {
  Controller controller(session);
  online(controller, 1);
  fails_value("ONLINE to INIT", controller.move_ev(MRC_CTL_PROFILE_INIT), {EINVAL});
  expect_state(controller, MRC_CTL_PROFILE_ONLINE);
}

void needs_mode(Session& session) {
  Controller controller(session);
  fails_value("OFFLINE with nothing", controller.move_ev(MRC_CTL_PROFILE_OFFLINE), {EINVAL});
}

void unpopulated(Session& session) {
  Controller controller(session);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(4));
  const auto entries = controller.array(4);
  for (const auto& entry : entries) {
    const mrc_ctl_ev none = MRC_CTL_EV_UNPOPULATED;
    holds(std::memcmp(entry.ev.val, none.val, sizeof(none.val)) == 0 && entry.ev.port == 0,
          "EVs that are unpopulated at first", "one that is not");
  }
  controller.populate(3);
  fails_value("ONLINE with 3 of 4 EVs populated", controller.move_ev(MRC_CTL_PROFILE_ONLINE),
              {EINVAL});
  expect_state(controller, MRC_CTL_PROFILE_OFFLINE);
}

void min_active_limit(Session& session) {
  Controller controller(session);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(4));
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_min_active = 5;
  fails_value("MIN_ACTIVE of 5 with COUNT 4",
              controller.set_ev(attr, MRC_CTL_EV_PROFILE_MIN_ACTIVE), {EINVAL});
}

void event_mask_limit(Session& session) {
  Controller controller(session);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(4));
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_event_mask = MRC_CTL_EV_DENIED;
  fails_value("EVENT_MASK with DENIED", controller.set_ev(attr, MRC_CTL_EV_PROFILE_EVENT_MASK),
              {EINVAL});
}

void too_many_evs_are_refused(Session& session) {
  Controller controller(session);
  controller.format_online();
  const int error = controller.explicit_offline(controller.device.ev.ev_max_count_profile + 1);
  fails_value("COUNT above ev_max_count_profile", error, {E2BIG, EINVAL});
}

void two_operations(Session& session) {
  Controller controller(session);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(1));
  mrc_ctl_ev_op_entry entry{};
  entry.ev_new = controller.ev(0);
  entry.state = MRC_CTL_EV_GOOD;
  mrc_ctl_ev_field field{.width = 16, .init_val = 0, .min_val = 0, .max_val = 0, .mask = 0xffff};
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op = {.op = MRC_CTL_EV_OP_REPLACE_EV, .entries = &entry, .entry_count = 1};
  attr.ev_fields_op = {
      .op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS, .fields = &field, .field_count = 1};
  fails_value("EV_OP and EV_FIELDS_OP in one call",
              controller.set_ev(attr, MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP),
              {EINVAL});
}

void query_returns_attributes(Session& session) {
  Controller controller(session);
  online(controller, 4);
  mrc_ctl_ev_profile_attr attr{};
  works("mrc_ctl_query_ev_profile",
        controller.library.mrc_ctl_query_ev_profile(
            controller.host.context, controller.ev_id, &attr,
            MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK));
  equal("mode", static_cast<int>(attr.ev_mode), static_cast<int>(MRC_CTL_EV_MODE_EXP));
  equal("ev_fmt_profile_id", attr.ev_fmt_profile_id, controller.format_id);
  equal("ev_count", attr.ev_count, 4u);
  equal("ev_min_active", attr.ev_min_active, 1u);
  equal("ev_event_mask", attr.ev_event_mask, MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD);
}

// A profile must outlive the context that configured it.
void profile_outlives_context(Session& session) {
  std::optional<Controller> first(std::in_place, session);
  online(*first, 2);
  mrc_context* const second = first->library.mrc_create_context(first->host.verbs, nullptr);
  works("mrc_create_context", second);
  mrc_ctl_ev_profile_attr attr{};
  works("a query through another context",
        first->library.mrc_ctl_query_ev_profile(second, first->ev_id, &attr,
                                                MRC_CTL_EV_PROFILE_STATE));
  first->library.mrc_destroy_context(second);
  equal("its state there", static_cast<int>(attr.profile_state),
        static_cast<int>(MRC_CTL_PROFILE_ONLINE));
}

void profile_in_use_is_busy(Session& session) {
  Controller controller(session);
  online(controller, 4);
  {
    End end(controller.host);
    mrc_qp_attr attr{};
    attr.profile.ev_profile_id = controller.ev_id;
    works("mrc_modify_qp to INIT with the profile",
          end.to_init(kRemoteWrite, &attr, MRC_QP_EV_PROFILE_ID));
    fails_value("OFFLINE while a QP uses it", controller.move_ev(MRC_CTL_PROFILE_OFFLINE), {EBUSY});
    expect_state(controller, MRC_CTL_PROFILE_ONLINE);
  }
  must_work("OFFLINE after the QP is gone", controller.move_ev(MRC_CTL_PROFILE_OFFLINE));
}

void offline_profile_is_refused(Session& session) {
  Controller controller(session);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(1));
  End end(controller.host);
  mrc_qp_attr attr{};
  attr.profile.ev_profile_id = controller.ev_id;
  fails_value("a QP on a profile that is OFFLINE",
              end.to_init(kRemoteWrite, &attr, MRC_QP_EV_PROFILE_ID), {EINVAL, EBUSY});
}

// The device may choose four bits of a field, and must not change any other bit.
void generated_evs_stay_in_range(Session& session) {
  Controller controller(session);
  if ((controller.device.ev.ev_mode_mask & MRC_CTL_EV_MODE_GEN) == 0) skip("no mode GEN");
  controller.format_online();
  std::vector<mrc_ctl_ev_field> fields(
      controller.mode() == MRC_CTL_EV_FMT_MODE_STEV ? 2 : 1,
      {.width = 16, .init_val = 0x100, .min_val = 1, .max_val = 15, .mask = 0xf});
  mrc_ctl_ev_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = MRC_CTL_EV_MODE_GEN;
  attr.ev_fmt_profile_id = controller.format_id;
  attr.ev_count = 8;
  attr.ev_min_active = 1;
  attr.ev_fields_op = {.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS,
                       .fields = fields.data(),
                       .field_count = static_cast<int>(fields.size())};
  must_work(
      "a generated profile",
      controller.set_ev(attr, MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                                  MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                                  MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK |
                                  MRC_CTL_EV_PROFILE_EV_FIELDS_OP));
  must_work("ONLINE", controller.move_ev(MRC_CTL_PROFILE_ONLINE));
  for (const auto& entry : controller.array(8)) {
    holds(entry.ev.port >= 1 && (controller.device.phy_port_mask >> entry.ev.port & 1) != 0,
          "a port of the device", text_of_value(entry.ev.port));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const int nibble = i % 2 == 0 ? entry.ev.val[i / 2] >> 4 : entry.ev.val[i / 2] & 0xf;
      holds(nibble >= 1, "bits from min_val to max_val", text_of_value(nibble));
    }
    for (std::size_t i = 1; i < sizeof(entry.ev.val); ++i)
      equal("bits beyond those of the fields", int{entry.ev.val[i]}, 0);
  }
}

void auto_needs_no_evs(Session& session) {
  Controller controller(session);
  if ((controller.device.ev.ev_mode_mask & MRC_CTL_EV_MODE_AUTO) == 0) skip("no mode AUTO");
  mrc_ctl_ev_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = MRC_CTL_EV_MODE_AUTO;
  must_work("an AUTO profile without format and EVs",
            controller.set_ev(attr, MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE));
}

#define WEFT_CLAUSE "mrc_ctl.h: mrc_ctl_modify_ev_profile"
#define WEFT_STATES "mrc_ctl.h: profile states"
constexpr Test kTests[] = {
    {.id = "api.ctl.ev.states",
     .clause = WEFT_STATES,
     .what = "INIT, OFFLINE, ONLINE, OFFLINE, INIT",
     .body = all_transitions},
    {.id = "api.ctl.ev.init-online",
     .clause = WEFT_STATES,
     .what = "the transition from INIT to ONLINE is refused, and nothing changes",
     .body = init_to_online_is_refused},
    {.id = "api.ctl.ev.online-init",
     .clause = WEFT_STATES,
     .what = "the transition from ONLINE to INIT is refused, and nothing changes",
     .body = online_to_init_is_refused},
    {.id = "api.ctl.ev.no-mode",
     .clause = WEFT_CLAUSE,
     .what = "OFFLINE needs MODE and the other attributes",
     .body = needs_mode},
    {.id = "api.ctl.ev.unpopulated",
     .clause = WEFT_CLAUSE,
     .what = "explicit EVs start unpopulated, and ONLINE needs all of them",
     .body = unpopulated},
    {.id = "api.ctl.ev.min-active",
     .clause = "mrc_ctl.h: ev_min_active at most ev_count",
     .what = "a MIN_ACTIVE above COUNT is EINVAL",
     .body = min_active_limit},
    {.id = "api.ctl.ev.event-mask",
     .clause = "mrc_ctl.h: ev_event_mask",
     .what = "an EVENT_MASK with states other than GOOD and ASSUMED_BAD is EINVAL",
     .body = event_mask_limit},
    {.id = "api.ctl.ev.too-many",
     .clause = WEFT_CLAUSE " E2BIG",
     .what = "more EVs than a profile can hold are refused",
     .body = too_many_evs_are_refused},
    {.id = "api.ctl.ev.two-operations",
     .clause = WEFT_CLAUSE,
     .what = "an EV operation and a field operation in one call are EINVAL",
     .body = two_operations},
    {.id = "api.ctl.ev.query",
     .clause = "mrc_ctl.h: mrc_ctl_query_ev_profile",
     .what = "a query returns mode, format, count, floor and mask",
     .body = query_returns_attributes},
    {.id = "api.ctl.ev.shared",
     .clause = "mrc_ctl.h: profiles belong to the device",
     .what = "another context sees the same profile",
     .body = profile_outlives_context},
    {.id = "api.ctl.ev.busy",
     .clause = WEFT_CLAUSE " EBUSY",
     .what = "EBUSY while a QP uses the profile",
     .body = profile_in_use_is_busy},
    {.id = "api.ctl.ev.offline-qp",
     .clause = "mrc_ctl.h: ONLINE is in use",
     .certainty = Certainty::kOurs,
     .what = "a QP cannot use a profile that is OFFLINE",
     .body = offline_profile_is_refused},
    {.id = "api.ctl.ev.generated",
     .clause = "mrc_ctl.h: MRC_CTL_EV_MODE_GEN",
     .what = "generated EVs stay within min_val and max_val, on ports of the device",
     .body = generated_evs_stay_in_range},
    {.id = "api.ctl.ev.automatic",
     .clause = "mrc_ctl.h: MRC_CTL_EV_MODE_AUTO",
     .what = "mode AUTO needs neither format nor EVs",
     .body = auto_needs_no_evs},
};

}  // namespace

std::span<const Test> ctl_ev_tests() { return kTests; }

}  // namespace weft::conformance
