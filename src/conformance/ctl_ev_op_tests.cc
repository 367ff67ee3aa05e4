// Batches of operations on the EVs of a profile.
#include "conformance/controller.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void must_work(std::string_view what, int error) {
  if (error != 0) fail(fmt::format("{} works", what), errno_name(error));
}

// An explicit EV profile with four EVs, ONLINE.
struct Four {
  Controller controller;
  explicit Four(Session& session) : controller(session) {
    controller.format_online();
    must_work("an explicit profile", controller.explicit_offline(4));
    controller.populate(4);
    must_work("ONLINE", controller.move_ev(MRC_CTL_PROFILE_ONLINE));
  }
  int state_of(const mrc_ctl_ev& ev) {
    mrc_ctl_ev_op_entry entry{};
    entry.ev = ev;
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_STATE, .entries = &entry, .entry_count = 1};
    works("QUERY_EV_STATE",
          controller.library.mrc_ctl_query_ev_profile(controller.host.context, controller.ev_id,
                                                      &attr, MRC_CTL_EV_PROFILE_EV_OP));
    return static_cast<int>(entry.state);
  }
  int deny(std::vector<mrc_ctl_ev> evs, std::uint32_t flags = 0) {
    std::vector<mrc_ctl_ev_op_entry> entries;
    for (const mrc_ctl_ev& ev : evs) {
      mrc_ctl_ev_op_entry entry{};
      entry.ev = ev;
      entry.state = MRC_CTL_EV_DENIED;
      entry.flags = flags;
      entries.push_back(entry);
    }
    return controller.ev_op(MRC_CTL_EV_OP_MODIFY_EV_STATE, entries);
  }
};

bool is_same(const mrc_ctl_ev& a, const mrc_ctl_ev& b) {
  return std::memcmp(a.val, b.val, sizeof(a.val)) == 0 && a.port == b.port;
}

void query_array_returns_evs(Session& session) {
  Four four(session);
  const auto entries = four.controller.array(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    bool found = false;
    for (const auto& entry : entries) found |= is_same(entry.ev, four.controller.ev(i));
    holds(found, fmt::format("EV {} in the array", i), "it is not there");
  }
}

void short_array_is_refused(Session& session) {
  Four four(session);
  std::vector<mrc_ctl_ev_op_entry> entries(3);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY, .entries = entries.data(), .entry_count = 3};
  fails_minus_one(
      "QUERY_EV_ARRAY into 3 of 4 entries",
      four.controller.library.mrc_ctl_query_ev_profile(
          four.controller.host.context, four.controller.ev_id, &attr, MRC_CTL_EV_PROFILE_EV_OP),
      {E2BIG});
  equal("entry_count then", attr.ev_op.entry_count, 4);
}

void deny(Session& session) {
  Four four(session);
  equal("state at first: GOOD", four.state_of(four.controller.ev(1)),
        static_cast<int>(MRC_CTL_EV_GOOD));
  must_work("MODIFY_EV_STATE while ONLINE", four.deny({four.controller.ev(1)}));
  equal("state: DENIED", four.state_of(four.controller.ev(1)), static_cast<int>(MRC_CTL_EV_DENIED));
  equal("state of another", four.state_of(four.controller.ev(2)),
        static_cast<int>(MRC_CTL_EV_GOOD));
}

void batch_stops(Session& session) {
  Four four(session);
  fails_value("a batch with a second entry that does not exist",
              four.deny({four.controller.ev(0), four.controller.ev(50), four.controller.ev(2)}),
              {ENOENT});
  equal("the entry before it", four.state_of(four.controller.ev(0)),
        static_cast<int>(MRC_CTL_EV_DENIED));
  equal("the entry behind it", four.state_of(four.controller.ev(2)),
        static_cast<int>(MRC_CTL_EV_GOOD));
}

void port_identifies_ev(Session& session) {
  Four four(session);
  if (four.controller.port_count() < 2) skip("the device has one port");
  mrc_ctl_ev other = four.controller.ev(0);
  other.port = static_cast<std::uint8_t>(other.port % four.controller.port_count() + 1);
  fails_value("the value of one EV with the port of another", four.deny({other}), {ENOENT});
}

void only_good_and_denied(Session& session) {
  Four four(session);
  std::vector<mrc_ctl_ev_op_entry> entries(1);
  entries[0].ev = four.controller.ev(0);
  entries[0].state = MRC_CTL_EV_ASSUMED_BAD;
  fails_value("MODIFY_EV_STATE to ASSUMED_BAD",
              four.controller.ev_op(MRC_CTL_EV_OP_MODIFY_EV_STATE, entries), {EINVAL});
}

void replace_replaces_one(Session& session) {
  Four four(session);
  if ((four.controller.device.opt_attr & MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE) == 0)
    must_work("OFFLINE", four.controller.move_ev(MRC_CTL_PROFILE_OFFLINE));
  std::vector<mrc_ctl_ev_op_entry> entries(1);
  entries[0].ev = four.controller.ev(0);
  entries[0].ev_new = four.controller.ev(8);
  entries[0].state = MRC_CTL_EV_GOOD;
  must_work("REPLACE_EV", four.controller.ev_op(MRC_CTL_EV_OP_REPLACE_EV, entries));
  equal("state of the new one", four.state_of(four.controller.ev(8)),
        static_cast<int>(MRC_CTL_EV_GOOD));
  fails_value("the old one", four.deny({four.controller.ev(0)}), {ENOENT});
}

// A profile may contain copies of an EV, which give its path more weight. One operation replaces
// one copy, or all of them.
void replace_of_copies(Session& session) {
  Controller controller(session);
  controller.format_online();
  must_work("an explicit profile", controller.explicit_offline(4));
  std::vector<mrc_ctl_ev_op_entry> entries(4);
  for (auto& entry : entries) {
    entry.ev_new = controller.ev(0);
    entry.state = MRC_CTL_EV_GOOD;
  }
  must_work("four copies of one EV", controller.ev_op(MRC_CTL_EV_OP_REPLACE_EV, entries));
  entries.resize(1);
  entries[0].ev = controller.ev(0);
  entries[0].ev_new = controller.ev(4);
  must_work("REPLACE_EV of one", controller.ev_op(MRC_CTL_EV_OP_REPLACE_EV, entries));
  const auto count = [&](std::uint32_t i) {
    int found = 0;
    for (const auto& entry : controller.array(4)) found += is_same(entry.ev, controller.ev(i));
    return found;
  };
  equal("copies left", count(0), 3);
  entries[0].flags = MRC_CTL_EV_OP_F_ALL_COPIES;
  must_work("REPLACE_EV of all copies", controller.ev_op(MRC_CTL_EV_OP_REPLACE_EV, entries));
  equal("copies left", count(0), 0);
  equal("copies of the other", count(4), 4);
}

void unknown_ev_is_enoent(Session& session) {
  Four four(session);
  mrc_ctl_ev_op_entry entry{};
  entry.ev = four.controller.ev(60);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_STATE, .entries = &entry, .entry_count = 1};
  fails_minus_one(
      "QUERY_EV_STATE of no EV of the profile",
      four.controller.library.mrc_ctl_query_ev_profile(
          four.controller.host.context, four.controller.ev_id, &attr, MRC_CTL_EV_PROFILE_EV_OP),
      {ENOENT});
}

#define WEFT_CLAUSE "mrc_ctl.h: struct mrc_ctl_ev_op_entry"
constexpr Test kTests[] = {
    {.id = "api.ctl.ev-op.array",
     .clause = WEFT_CLAUSE,
     .what = "QUERY_EV_ARRAY returns the EVs that were set",
     .body = query_array_returns_evs},
    {.id = "api.ctl.ev-op.short-array",
     .clause = "mrc_ctl.h: mrc_ctl_query_ev_profile, E2BIG",
     .what = "a short array is E2BIG with the count",
     .body = short_array_is_refused},
    {.id = "api.ctl.ev-op.deny",
     .clause = "mrc_ctl.h: MODIFY_EV_STATE while ONLINE",
     .what = "an EV can be denied while ONLINE, and the other EVs are not affected",
     .body = deny},
    {.id = "api.ctl.ev-op.batch",
     .clause = "mrc_ctl.h: mrc_ctl_modify_ev_profile, ENOENT",
     .what = "a batch stops at the entry that fails, and earlier entries stay done",
     .body = batch_stops},
    {.id = "api.ctl.ev-op.port",
     .clause = "mrc_ctl.h: struct mrc_ctl_ev; history of the header",
     .what = "value and port together identify an EV",
     .body = port_identifies_ev},
    {.id = "api.ctl.ev-op.settable",
     .clause = "mrc_ctl.h: MODIFY_EV_STATE; history of the header",
     .what = "only GOOD and DENIED can be set",
     .body = only_good_and_denied},
    {.id = "api.ctl.ev-op.replace",
     .clause = WEFT_CLAUSE,
     .what = "REPLACE_EV replaces one EV by another",
     .body = replace_replaces_one},
    {.id = "api.ctl.ev-op.copies",
     .clause = "mrc_ctl.h: MRC_CTL_EV_OP_F_ALL_COPIES",
     .what = "REPLACE_EV replaces one of several equal EVs, with ALL_COPIES all of them",
     .body = replace_of_copies},
    {.id = "api.ctl.ev-op.none",
     .clause = "mrc_ctl.h: mrc_ctl_query_ev_profile, ENOENT",
     .what = "the state of an EV that is not in the profile is ENOENT",
     .body = unknown_ev_is_enoent},
};

}  // namespace

std::span<const Test> ctl_ev_op_tests() { return kTests; }

}  // namespace weft::conformance
