// The state machines of EV format profiles, EV profiles and CC profiles: every transition and rule.
#include "control/ctl_profiles.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <initializer_list>

#include "control/ctl_test_changes.h"

namespace weft::control {
namespace {

using testing::ev_change;
using testing::format_change;
using testing::stev;

constexpr auto kInit = ProfileState::kInit;
constexpr auto kOffline = ProfileState::kOffline;
constexpr auto kOnline = ProfileState::kOnline;
constexpr CtlDevice kDevice{.port_mask = 0b11110};

int code(const CtlResult<void>& result) { return result ? 0 : result.error().code; }

struct Machine {
  CtlModel model{};
  bool in_use = false;
  bool changed = false;

  int format(std::uint64_t id, const FormatChange& change) {
    return code(modify_format(model, id, change));
  }
  int ev(std::uint64_t id, const EvChange& change) {
    return code(
        modify_ev_profile(model, id, change, {.device = kDevice, .in_use = in_use}, changed));
  }
  int cc(std::uint64_t id, const CcChange& change) {
    return code(modify_cc_profile(model, id, change, {.in_use = in_use}));
  }
  // EV format profile 13 as in OCP's examples, ONLINE.
  void online_format() {
    ASSERT_EQ(format(13, format_change({16, 16})), 0);
    ASSERT_EQ(format(13, {.state = kOnline}), 0);
  }
  // EV profile 1, explicit, OFFLINE, without EVs.
  void offline_explicit(std::uint32_t count) {
    online_format();
    ASSERT_EQ(ev(1, ev_change(fabric::EvMode::kExplicit, count)), 0);
  }
  void populate(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(ev(1, {.ops = EvOps{.op = EvOp::kReplace,
                                    .entries = {{.ev_new = stev(i, 1), .state = 1}}}}),
                0);
    }
  }
};

EvChange replace(std::vector<EvOpEntry> entries) {
  return {.ops = EvOps{.op = EvOp::kReplace, .entries = std::move(entries)}};
}
EvChange set_states(std::vector<EvOpEntry> entries) {
  return {.ops = EvOps{.op = EvOp::kModifyState, .entries = std::move(entries)}};
}

TEST(CtlTransitions, OnlyTheFourTransitionsOfTheStateMachineAreAllowed) {
  for (const auto from : {kInit, kOffline, kOnline}) {
    for (const auto to : {kInit, kOffline, kOnline}) {
      const bool edge = (from == kInit && to == kOffline) || (from == kOffline && to == kOnline) ||
                        (from == kOnline && to == kOffline) || (from == kOffline && to == kInit);
      EXPECT_EQ(code(check_transition(from, to)), edge ? 0 : EINVAL);
    }
  }
}

TEST(CtlFormat, EachTransitionNeedsItsAttributesAndInitResets) {
  Machine m;
  EXPECT_EQ(m.format(13, {.state = kOffline}), EINVAL);  // MODE is missing
  EXPECT_EQ(m.model.formats[13], FormatProfile());       // and nothing has changed
  EXPECT_EQ(m.format(13, {.state = kOffline, .mode = 1}), 0);
  EXPECT_EQ(m.format(13, {.state = kOnline}), EINVAL);  // fields are missing
  EXPECT_EQ(m.format(13, {.state = kOnline, .widths = std::vector<std::uint32_t>{16, 16}}), 0);
  EXPECT_EQ(m.format(13, {.mode = 4}), EINVAL);  // in ONLINE only STATE may change
  EXPECT_EQ(m.format(13, {.widths = std::vector<std::uint32_t>{8}}), EINVAL);
  EXPECT_EQ(m.format(13, {.state = kInit}), EINVAL);
  // CUR_STATE does not match.
  EXPECT_EQ(m.format(13, {.state = kOffline, .cur_state = kOffline}), EINVAL);
  EXPECT_EQ(m.format(13, {.state = kOffline, .cur_state = kOnline}), 0);
  EXPECT_EQ(m.format(13, {.mode = 2, .widths = std::vector<std::uint32_t>{32, 16}}), 0);
  EXPECT_EQ(m.format(13, {.state = kInit}), 0);
  EXPECT_EQ(m.model.formats[13], FormatProfile());
}

TEST(CtlFormat, UnknownModesAndWrongWidthsAreRefused) {
  Machine m;
  EXPECT_EQ(m.format(kFormatProfilesMax, {.mode = 1}), EINVAL);
  EXPECT_EQ(m.format(0, {.mode = 3}), EINVAL);
  EXPECT_EQ(m.format(0, {.mode = 1, .widths = std::vector<std::uint32_t>{16, 17}}), E2BIG);
  EXPECT_EQ(m.format(0, {.mode = 4, .widths = std::vector<std::uint32_t>{17}}), E2BIG);
  EXPECT_EQ(m.format(0, {.mode = 2, .widths = std::vector<std::uint32_t>(33, 1)}), E2BIG);
  EXPECT_EQ(m.format(0, {.mode = 2, .widths = std::vector<std::uint32_t>{33}}), EINVAL);
  EXPECT_EQ(m.format(0, {.mode = 2, .widths = std::vector<std::uint32_t>{0}}), EINVAL);
  EXPECT_EQ(m.format(0, {.mode = 2, .widths = std::vector<std::uint32_t>{}}), EINVAL);
  EXPECT_EQ(m.model.formats[0], FormatProfile());
}

TEST(CtlFormat, StaysOnlineWhileAnOnlineEvProfileUsesIt) {
  Machine m;
  m.offline_explicit(2);
  m.populate(2);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), 0);
  EXPECT_EQ(m.format(13, {.state = kOffline}), EBUSY);
  EXPECT_EQ(m.ev(1, {.state = kOffline}), 0);
  EXPECT_EQ(m.format(13, {.state = kOffline}), 0);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), EINVAL);  // the format is not ONLINE
}

TEST(CtlEv, EachTransitionNeedsItsAttributes) {
  Machine m;
  m.online_format();
  EXPECT_EQ(m.ev(1, {.state = kOffline}), EINVAL);
  EXPECT_EQ(m.ev(1, {.state = kOffline, .mode = 2}), EINVAL);
  EXPECT_EQ(m.ev(1, {.state = kOffline, .mode = 2, .format = 13}), EINVAL);
  // A GEN profile needs fields.
  EXPECT_EQ(m.ev(1, {.state = kOffline, .mode = 4, .format = 13, .count = 4}), EINVAL);
  // Format profile 12 is in INIT.
  EXPECT_EQ(m.ev(1, {.state = kOffline, .mode = 2, .format = 12, .count = 4}), EINVAL);
  EXPECT_EQ(m.model.evs[1], EvProfileRecord());
  EXPECT_EQ(m.ev(1, {.state = kOffline, .mode = 2, .format = 13, .count = 1}), 0);
  EXPECT_EQ(m.ev(1, replace({{.ev_new = stev(7, 1), .state = 1}})), 0);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), EINVAL);  // MIN_ACTIVE and EVENT_MASK are missing
  EXPECT_EQ(m.ev(1, {.state = kOnline, .min_active = 1}), EINVAL);
  EXPECT_EQ(m.ev(1, {.state = kOnline, .min_active = 1, .event_mask = 3}), 0);
  EXPECT_EQ(m.ev(1, {.state = kInit}), EINVAL);
  EXPECT_EQ(m.ev(1, {.state = kOffline}), 0);
  EXPECT_EQ(m.ev(1, {.state = kInit}), 0);
  EXPECT_EQ(m.model.evs[1], EvProfileRecord());
}

TEST(CtlEv, AutomaticProfileNeedsNoOtherAttribute) {
  Machine m;
  EXPECT_EQ(m.ev(3, {.state = kOffline, .mode = 1}), 0);
  EXPECT_EQ(m.ev(3, replace({{.ev_new = stev(1, 1), .state = 1}})), EINVAL);
  EXPECT_EQ(m.ev(3, {.state = kOnline}), 0);
}

TEST(CtlEv, NumbersOutOfRangeAreRefused) {
  Machine m;
  m.online_format();
  EXPECT_EQ(m.ev(kEvProfilesMax, {.mode = 1}), EINVAL);
  EXPECT_EQ(m.ev(1, {.mode = 3}), EINVAL);
  EXPECT_EQ(m.ev(1, {.format = kFormatProfilesMax}), EINVAL);
  EXPECT_EQ(m.ev(1, {.count = 0}), EINVAL);
  EXPECT_EQ(m.ev(1, {.count = kEvsPerProfileMax + 1}), E2BIG);
  EXPECT_EQ(m.ev(1, {.count = 4, .min_active = 5}), EINVAL);
  EXPECT_EQ(m.ev(1, {.event_mask = 4}), EINVAL);  // no events for DENIED
  EXPECT_EQ(m.ev(1, {.fields = std::vector<fabric::EvField>(33)}), E2BIG);
  EXPECT_EQ(m.model.evs[1], EvProfileRecord());
  // Use up all EVs of the device.
  for (std::uint64_t id = 0; id < kEvsMax / kEvsPerProfileMax; ++id) {
    EXPECT_EQ(m.ev(id, ev_change(fabric::EvMode::kExplicit, kEvsPerProfileMax)), 0);
  }
  EXPECT_EQ(m.ev(40, ev_change(fabric::EvMode::kExplicit, 1)), E2BIG);
}

TEST(CtlEv, OperationsAndFieldsInOneCallAreRefused) {
  Machine m;
  m.offline_explicit(2);
  EvChange both = replace({{.ev_new = stev(1, 1), .state = 1}});
  both.fields = std::vector<fabric::EvField>{{.width = 16, .mask = 0xffff}};
  EXPECT_EQ(m.ev(1, both), EINVAL);
}

TEST(CtlEv, ExplicitEvsAreReplacedOneByOne) {
  Machine m;
  m.offline_explicit(4);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), EINVAL);  // no EV is populated
  m.populate(3);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), EINVAL);  // one EV is not populated
  EXPECT_EQ(m.ev(1, replace({{.ev = stev(9, 1), .ev_new = stev(8, 1), .state = 1}})), ENOENT);
  EXPECT_EQ(m.ev(1, replace({{.ev = stev(1, 2), .ev_new = stev(8, 1), .state = 1}})),
            ENOENT);  // no EV with that port
  // the device has no port 5
  EXPECT_EQ(m.ev(1, replace({{.ev_new = stev(8, 5), .state = 1}})), EINVAL);
  EXPECT_EQ(m.ev(1, replace({{.ev_new = stev(8, 0), .state = 1}})), EINVAL);
  EXPECT_EQ(m.ev(1, replace({{.ev_new = stev(8, 1), .state = 0}})), EINVAL);
  // A controller cannot set ASSUMED_BAD; only QPs can.
  EXPECT_EQ(m.ev(1, replace({{.ev_new = stev(8, 1), .state = 2}})), EINVAL);
  // Copies of an EV give its path more weight. With all_copies one operation changes all of them.
  EXPECT_EQ(m.ev(1, replace({{.ev_new = stev(2, 1), .state = 4}})), 0);
  EXPECT_EQ(
      m.ev(1, replace({{.ev = stev(2, 1), .ev_new = stev(5, 4), .state = 1, .all_copies = true}})),
      0);
  const auto& evs = m.model.evs[1].evs;
  ASSERT_EQ(evs.size(), 4u);
  EXPECT_EQ(evs[0].ev, stev(0, 1));
  EXPECT_EQ(evs[2], (EvEntry{.ev = stev(5, 4), .state = EvState::kGood}));
  EXPECT_EQ(evs[3], evs[2]);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), 0);
  EXPECT_EQ(m.ev(1, replace({{.ev = stev(0, 1), .ev_new = stev(11, 2), .state = 1}})),
            0);  // allowed in ONLINE
}

TEST(CtlEv, ABatchStopsAtTheFirstEntryThatFails) {
  Machine m;
  m.offline_explicit(4);
  EvChange batch = replace({{.ev_new = stev(1, 1), .state = 1},
                            {.ev_new = stev(2, 2), .state = 1},
                            {.ev = stev(99, 1), .ev_new = stev(3, 3), .state = 1},
                            {.ev_new = stev(4, 4), .state = 1}});
  batch.state = kOnline;
  EXPECT_EQ(m.ev(1, batch), ENOENT);
  EXPECT_TRUE(m.changed);
  const auto& p = m.model.evs[1];
  EXPECT_EQ(p.state, kOffline);
  EXPECT_EQ(p.evs[0].ev, stev(1, 1));
  EXPECT_EQ(p.evs[1].ev, stev(2, 2));
  EXPECT_FALSE(p.evs[2].ev.is_populated());
  EXPECT_FALSE(p.evs[3].ev.is_populated());
}

TEST(CtlEv, OperationsAreAppliedBeforeTheTransitionOfTheSameCall) {
  Machine m;
  m.online_format();
  EvChange all = ev_change(fabric::EvMode::kExplicit, 1);
  all.ops = EvOps{.op = EvOp::kReplace, .entries = {{.ev_new = stev(1, 1), .state = 1}}};
  EXPECT_EQ(m.ev(1, all), 0);
  EXPECT_EQ(m.model.evs[1].evs[0].ev, stev(1, 1));
  EXPECT_EQ(m.ev(2, replace({{.ev_new = stev(1, 1), .state = 1}})), EINVAL);  // the profile is INIT
}

TEST(CtlEv, ControllerSetsOnlyGoodOrDenied) {
  Machine m;
  m.offline_explicit(3);
  EXPECT_EQ(m.ev(1, set_states({{.ev = {}, .state = 4}})), EINVAL);  // an EV that is not populated
  EXPECT_EQ(m.ev(1, replace({{.ev_new = stev(1, 1), .state = 1},
                             {.ev_new = stev(1, 1), .state = 1},
                             {.ev_new = stev(2, 1), .state = 1}})),
            0);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), 0);
  EXPECT_EQ(m.ev(1, set_states({{.ev = stev(1, 1), .state = 2}})), EINVAL);
  EXPECT_EQ(m.ev(1, set_states({{.ev = stev(7, 1), .state = 4}})), ENOENT);
  EXPECT_EQ(m.ev(1, set_states({{.ev = stev(1, 1), .state = 4}})), 0);
  const auto& evs = m.model.evs[1].evs;
  EXPECT_EQ(evs[0].state, EvState::kDenied);
  EXPECT_EQ(evs[1].state, EvState::kGood);
  EXPECT_EQ(m.ev(1, set_states({{.ev = stev(1, 1), .state = 4}})), 0);  // changes the second copy
  EXPECT_EQ(evs[1].state, EvState::kDenied);
  EXPECT_EQ(m.ev(1, set_states({{.ev = stev(1, 1), .state = 1, .all_copies = true}})), 0);
  EXPECT_EQ(evs[0].state, EvState::kGood);
  EXPECT_EQ(evs[1].state, EvState::kGood);
  const CtlEv asked[] = {stev(2, 1), stev(1, 1)};
  const auto states = query_ev_states(m.model, 1, asked);
  ASSERT_TRUE(states);
  EXPECT_EQ(*states, (std::vector<EvState>{EvState::kGood, EvState::kGood}));
  const CtlEv unknown[] = {stev(2, 2)};
  EXPECT_EQ(query_ev_states(m.model, 1, unknown).error().code, ENOENT);
}

TEST(CtlEv, OnlineProfileTakesOnlyEventMaskFieldsAndEvs) {
  Machine m;
  m.offline_explicit(1);
  m.populate(1);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), 0);
  EXPECT_EQ(m.ev(1, {.mode = 4}), EINVAL);
  EXPECT_EQ(m.ev(1, {.format = 13}), EINVAL);
  EXPECT_EQ(m.ev(1, {.count = 1}), EINVAL);
  EXPECT_EQ(m.ev(1, {.min_active = 0}), EINVAL);
  EXPECT_EQ(m.ev(1, {.event_mask = 2}), 0);
  EXPECT_EQ(m.model.evs[1].event_mask, 2u);
  // These fields do not match the EV in the profile.
  EXPECT_EQ(
      m.ev(1,
           {.ops =
                EvOps{.op = EvOp::kReplace,
                      .entries = {{.ev = stev(0, 1), .ev_new = stev(0xffffffff, 1), .state = 1}}}}),
      0);
  EXPECT_EQ(m.ev(1, {.fields = std::vector<fabric::EvField>{{.width = 16, .mask = 0xff}}}), EINVAL);
  EXPECT_EQ(m.ev(1, {.fields = std::vector<fabric::EvField>{{.width = 16, .mask = 0xffff},
                                                            {.width = 16, .mask = 0xffff}}}),
            0);
}

TEST(CtlEv, StaysOnlineWhileQpsUseIt) {
  Machine m;
  m.offline_explicit(1);
  m.populate(1);
  m.in_use = true;
  EXPECT_EQ(m.ev(1, {.state = kOnline}), 0);
  EXPECT_EQ(m.ev(1, {.state = kOffline}), EBUSY);
  EXPECT_EQ(m.model.evs[1].state, kOnline);
  m.in_use = false;
  EXPECT_EQ(m.ev(1, {.state = kOffline}), 0);
}

TEST(CtlEv, GeneratedEvsKeepToTheirFields) {
  Machine m;
  EXPECT_EQ(m.format(13, format_change({8, 4, 4})), 0);
  EXPECT_EQ(m.format(13, {.state = kOnline}), 0);
  EvChange change = ev_change(fabric::EvMode::kGenerated, 64);
  change.fields = std::vector<fabric::EvField>{{.width = 8, .min = 0, .max = 179, .mask = 0xff},
                                               {.width = 4, .max = 15, .mask = 0xf},
                                               {.width = 4, .max = 15, .mask = 0xf}};
  EXPECT_EQ(m.ev(1, change), 0);
  const auto first = m.model.evs[1].evs;
  ASSERT_EQ(first.size(), 64u);
  std::array<int, 5> on_port{};
  for (const EvEntry& entry : first) {
    EXPECT_LE(fabric::ev_first32(entry.ev.value) >> 24, 179u);
    ++on_port.at(entry.ev.port);
  }
  EXPECT_EQ(on_port, (std::array<int, 5>{0, 16, 16, 16, 16}));
  EXPECT_EQ(m.ev(1, {.count = 65}), 0);  // OFFLINE: the EVs are generated anew
  EXPECT_EQ(m.model.evs[1].evs.size(), 65u);
  EXPECT_EQ(m.ev(1, {.state = kOnline}), 0);
  EXPECT_EQ(m.ev(1, set_states({{.ev = m.model.evs[1].evs[3].ev, .state = 4}})), 0);
  EXPECT_EQ(m.model.evs[1].evs[3].state, EvState::kDenied);
  // COUNT is larger than the number of values of the fields.
  Machine small;
  EXPECT_EQ(small.format(13, format_change({2, 2})), 0);
  EvChange many = ev_change(fabric::EvMode::kGenerated, 17);
  many.fields = std::vector<fabric::EvField>(2, {.width = 2, .mask = 3});
  EXPECT_EQ(small.ev(1, many), EINVAL);
}

TEST(CtlCc, OnlyNsccTakesAConfigurationAndNeedsIt) {
  Machine m;
  EXPECT_EQ(m.cc(kCcProfilesMax, {.algorithm = CcAlgorithm::kNscc}), EINVAL);
  EXPECT_EQ(m.cc(2, {.state = kOffline}), EINVAL);
  EXPECT_EQ(m.cc(2, {.nscc = NsccSettings{}}), EINVAL);  // ALGORITHM is not set
  EXPECT_EQ(m.cc(2, {.state = kOffline, .algorithm = CcAlgorithm::kNscc}), 0);
  EXPECT_EQ(m.cc(2, {.state = kOnline}), EINVAL);
  EXPECT_EQ(m.cc(2, {.config_empty = true}), EINVAL);
  for (const float bad : {-1.f, 2.f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(m.cc(2, {.nscc = NsccSettings{.gamma = bad}}), EINVAL);
  }
  EXPECT_EQ(m.cc(2, {.nscc = NsccSettings{.qa_gate = 32}}), EINVAL);
  EXPECT_EQ(m.cc(2, {.state = kOnline, .nscc = NsccSettings{.gamma = 0.5f}}), 0);
  EXPECT_EQ(m.cc(2, {.nscc = NsccSettings{.gamma = 0.25f}}), 0);  // allowed while ONLINE
  EXPECT_EQ(m.cc(2, {.algorithm = CcAlgorithm::kNone}), EINVAL);
  m.in_use = true;
  EXPECT_EQ(m.cc(2, {.state = kOffline}), EBUSY);
  m.in_use = false;
  EXPECT_EQ(m.cc(2, {.state = kOffline, .cur_state = kOffline}), EINVAL);
  EXPECT_EQ(m.cc(2, {.state = kOffline}), 0);
  EXPECT_EQ(m.cc(2, {.algorithm = CcAlgorithm::kNone}), 0);  // this drops NSCC's configuration
  EXPECT_FALSE(m.model.ccs[2].nscc);
  EXPECT_EQ(m.cc(2, {.nscc = NsccSettings{}}), EINVAL);
  EXPECT_EQ(m.cc(2, {.state = kOnline, .config_empty = true}), 0);
}

TEST(CtlPort, PortIsEnabledUntilItIsDisabled) {
  CtlModel model;
  EXPECT_EQ(is_port_enabled(model, kDevice, 0).error().code, EINVAL);
  EXPECT_EQ(is_port_enabled(model, kDevice, 5).error().code, EINVAL);
  EXPECT_EQ(is_port_enabled(model, kDevice, 255).error().code, EINVAL);
  EXPECT_TRUE(*is_port_enabled(model, kDevice, 2));
  EXPECT_EQ(code(modify_port(model, kDevice, {.port = 2, .enabled = false})), 0);
  EXPECT_FALSE(*is_port_enabled(model, kDevice, 2));
  EXPECT_TRUE(*is_port_enabled(model, kDevice, 1));
  EXPECT_EQ(code(modify_port(model, kDevice, {.port = 5, .enabled = false})), EINVAL);
  EXPECT_EQ(code(modify_port(model, kDevice, {.port = 2, .enabled = true})), 0);
  EXPECT_TRUE(*is_port_enabled(model, kDevice, 2));
}

}  // namespace
}  // namespace weft::control
