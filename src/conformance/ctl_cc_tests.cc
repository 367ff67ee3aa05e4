// CC profiles: algorithm, configuration, state transitions.
#include "conformance/controller.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void must_work(std::string_view what, int error) {
  if (error != 0) fail(fmt::format("{} works", what), errno_name(error));
}
void expect_state(const Controller& controller, mrc_ctl_profile_state state) {
  equal("profile state", static_cast<int>(controller.cc_state()), static_cast<int>(state));
}

constexpr int kAll =
    MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG;

mrc_ctl_cc_nscc_cfg config() {
  mrc_ctl_cc_nscc_cfg out{};
  out.adjust_bytes_threshold = 32'768;
  out.adjust_period_threshold = 100'000;
  out.base_rtt = 100'000;
  out.eta = 614;
  out.fi = 20'480;
  out.fi_scale = 0.25f;
  out.gamma = 0.75f;
  out.max_md_jump = 0.5f;
  out.max_cwnd = 1'000'000;
  out.qa_gate = 3;
  out.qa_threshold = 400'000;
  out.target_delay = 100'000;
  return out;
}

int offline(Controller& controller, const char* algorithm, const mrc_ctl_cc_nscc_cfg* cfg) {
  mrc_ctl_cc_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.algorithm = algorithm;
  attr.cc_config = cfg;
  return controller.set_cc(attr, cfg != nullptr ? kAll : kAll & ~MRC_CTL_CC_PROFILE_CONFIG);
}

void online(Controller& controller) {
  const mrc_ctl_cc_nscc_cfg cfg = config();
  must_work("OFFLINE with algorithm and configuration", offline(controller, "uet-1.0-nscc", &cfg));
  must_work("ONLINE", controller.move_cc(MRC_CTL_PROFILE_ONLINE));
}

void all_transitions(Session& session) {
  Controller controller(session);
  online(controller);
  expect_state(controller, MRC_CTL_PROFILE_ONLINE);
  must_work("ONLINE to OFFLINE", controller.move_cc(MRC_CTL_PROFILE_OFFLINE));
  must_work("OFFLINE to INIT", controller.move_cc(MRC_CTL_PROFILE_INIT));
  expect_state(controller, MRC_CTL_PROFILE_INIT);
}

void query_returns_config(Session& session) {
  Controller controller(session);
  online(controller);
  mrc_ctl_cc_nscc_cfg mine{};
  mrc_ctl_cc_profile_attr attr{};
  attr.cc_config = &mine;
  works("mrc_ctl_query_cc_profile", controller.library.mrc_ctl_query_cc_profile(
                                        controller.host.context, controller.cc_id, &attr, kAll));
  works("the algorithm's name", attr.algorithm);
  equal("algorithm", std::string(attr.algorithm), std::string("uet-1.0-nscc"));
  works("the configuration", attr.cc_config);
  const auto& told = *static_cast<const mrc_ctl_cc_nscc_cfg*>(attr.cc_config);
  equal("max_cwnd", told.max_cwnd, 1'000'000u);
  equal("gamma", told.gamma, 0.75f);
}

void unknown_algorithm_is_refused(Session& session) {
  Controller controller(session);
  fails_value("an algorithm that the device does not list",
              offline(controller, "no-such-algorithm", nullptr), {EINVAL});
  expect_state(controller, MRC_CTL_PROFILE_INIT);
}

void null_algorithm_is_accepted(Session& session) {
  Controller controller(session);
  must_work("OFFLINE with algorithm NULL", offline(controller, nullptr, nullptr));
}

void needs_algorithm(Session& session) {
  Controller controller(session);
  fails_value("OFFLINE without ALGORITHM", controller.move_cc(MRC_CTL_PROFILE_OFFLINE), {EINVAL});
}

void needs_config(Session& session) {
  Controller controller(session);
  must_work("OFFLINE", offline(controller, "uet-1.0-nscc", nullptr));
  fails_value("ONLINE without CONFIG", controller.move_cc(MRC_CTL_PROFILE_ONLINE), {EINVAL});
}

void profile_in_use_is_busy(Session& session) {
  Controller controller(session);
  online(controller);
  {
    End end(controller.host);
    mrc_qp_attr attr{};
    attr.profile.cc_profile_id = controller.cc_id;
    works("mrc_modify_qp to INIT with the profile",
          end.to_init(kRemoteWrite, &attr, MRC_QP_CC_PROFILE_ID));
    fails_value("OFFLINE while a QP uses it", controller.move_cc(MRC_CTL_PROFILE_OFFLINE), {EBUSY});
  }
  must_work("OFFLINE after the QP is gone", controller.move_cc(MRC_CTL_PROFILE_OFFLINE));
}

// A QP that uses a controller's profiles must transfer bytes.
void qp_with_profiles_carries_data(Session& session) {
  Controller controller(session);
  online(controller);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(4));
  controller.populate(4);
  must_work("ONLINE", controller.move_ev(MRC_CTL_PROFILE_ONLINE));
  End a(controller.host), b(controller.host);
  const Address of_a = a.address(), of_b = b.address();
  mrc_qp_attr attr{};
  attr.profile.cc_profile_id = controller.cc_id;
  attr.profile.ev_profile_id = controller.ev_id;
  works("to INIT with both profiles",
        a.to_init(kRemoteWrite, &attr, MRC_QP_CC_PROFILE_ID | MRC_QP_EV_PROFILE_ID));
  works("to RTR", a.to_rtr(of_b));
  works("to RTS", a.to_rts());
  b.connect(of_a);
  fill(a.memory.data(), 300'000, 4);
  a.write(of_b, {.size = 300'000, .id = 1});
  completed_as(a.wait_send(), IBV_WC_SUCCESS, 1);
  is_pattern(b.memory.data(), 300'000, 4);
}

#define WEFT_CLAUSE "mrc_ctl.h: mrc_ctl_modify_cc_profile"
constexpr Test kTests[] = {
    {.id = "api.ctl.cc.states",
     .clause = "mrc_ctl.h: profile states",
     .what = "INIT, OFFLINE, ONLINE, OFFLINE, INIT",
     .body = all_transitions},
    {.id = "api.ctl.cc.query",
     .clause = "mrc_ctl.h: mrc_ctl_query_cc_profile",
     .what = "a query returns the algorithm and the configuration that were set",
     .body = query_returns_config},
    {.id = "api.ctl.cc.algorithm",
     .clause = WEFT_CLAUSE,
     .what = "an algorithm that is not listed is EINVAL, and nothing changes",
     .body = unknown_algorithm_is_refused},
    {.id = "api.ctl.cc.none",
     .clause = "mrc_ctl.h: algorithm NULL",
     .what = "NULL means no congestion control and is accepted",
     .body = null_algorithm_is_accepted},
    {.id = "api.ctl.cc.no-algorithm",
     .clause = WEFT_CLAUSE,
     .what = "OFFLINE needs ALGORITHM",
     .body = needs_algorithm},
    {.id = "api.ctl.cc.no-config",
     .clause = WEFT_CLAUSE,
     .what = "ONLINE needs CONFIG",
     .body = needs_config},
    {.id = "api.ctl.cc.busy",
     .clause = WEFT_CLAUSE " EBUSY",
     .what = "EBUSY while a QP uses the profile",
     .body = profile_in_use_is_busy},
    {.id = "api.ctl.profiles.carry",
     .clause = "mrc.h: struct mrc_qp_attr, profile",
     .what = "a QP with an EV profile and a CC profile of a controller carries data",
     .body = qp_with_profiles_carries_data},
};

}  // namespace

std::span<const Test> ctl_cc_tests() { return kTests; }

}  // namespace weft::conformance
