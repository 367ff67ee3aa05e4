// The functions of mrc_ctl.h as a controller calls them: OCP's examples (with outdated names
// corrected), QPs that use profiles, probes, events, and invalid calls of every function.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <mrc/mrc_ctl.h>
#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "control/controller_state.h"
#include "control/ctl_events.h"
#include "control/ctl_test_changes.h"

namespace weft::device {
namespace {

// A value that is no enumerator, as a C program may pass it.
template <typename E>
E none_of(std::uint32_t value) {
  E out{};
  std::memcpy(&out, &value, sizeof out);
  return out;
}

// A process opens a device and its state only once. So all tests in a process share a state
// directory, and each test uses other profiles.
class CtlApi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static std::string pattern = "/tmp/weft-ctl-api-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory = pattern;
    ASSERT_EQ(setenv("WEFT_STATE_DIR", pattern.c_str(), 1), 0);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory); }

  void SetUp() override {
    ibv_device** const list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    for (int i = 0; list[i] != nullptr; ++i) {
      if (std::string(ibv_get_device_name(list[i])) == "weft0") verbs = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    ASSERT_NE(verbs, nullptr);
    context = mrc_create_context(verbs, nullptr);
    ASSERT_NE(context, nullptr) << std::strerror(errno);
    ASSERT_EQ(mrc_ctl_query_device(verbs, &device), 0);
    ASSERT_EQ(ibv_query_gid(verbs, 1, 3, &gid), 0);
  }
  void TearDown() override {
    if (context != nullptr) {
      EXPECT_EQ(mrc_destroy_context(context), 0);
    }
    if (verbs != nullptr) {
      EXPECT_EQ(ibv_close_device(verbs), 0);
    }
  }

  int format(std::uint64_t id, mrc_ctl_ev_fmt_mode mode, std::vector<std::uint8_t> widths) {
    std::vector<mrc_ctl_ev_fmt_field> fields;
    for (const std::uint8_t width : widths) fields.push_back({width});
    mrc_ctl_ev_fmt_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.ev_fmt_mode = mode;
    attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
    attr.ev_fmt_op.fmt_fields = fields.data();
    attr.ev_fmt_op.fmt_field_count = static_cast<int>(fields.size());
    if (mrc_ctl_modify_ev_fmt_profile(context, id, &attr,
                                      MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE |
                                          MRC_CTL_EV_FMT_PROFILE_OP) != 0) {
      return errno;
    }
    attr = {};
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    return mrc_ctl_modify_ev_fmt_profile(context, id, &attr, MRC_CTL_EV_FMT_PROFILE_STATE) == 0
               ? 0
               : errno;
  }
  int move_ev(std::uint64_t id, mrc_ctl_profile_state state) {
    mrc_ctl_ev_profile_attr attr{};
    attr.profile_state = state;
    return mrc_ctl_modify_ev_profile(context, id, &attr, MRC_CTL_EV_PROFILE_STATE) == 0 ? 0 : errno;
  }
  int ev_op(std::uint64_t id, mrc_ctl_ev_op op, std::vector<mrc_ctl_ev_op_entry> entries) {
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op.op = op;
    attr.ev_op.entries = entries.data();
    attr.ev_op.entry_count = static_cast<int>(entries.size());
    return mrc_ctl_modify_ev_profile(context, id, &attr, MRC_CTL_EV_PROFILE_EV_OP) == 0 ? 0 : errno;
  }
  static mrc_ctl_ev ev(std::uint32_t value, std::uint8_t port) {
    mrc_ctl_ev out{};
    const fabric::EvBytes bytes = fabric::ev_bytes(value);
    std::memcpy(out.val, bytes.data(), bytes.size());
    out.port = port;
    return out;
  }
  // Makes an explicit EV profile with format `fmt` OFFLINE; its EVs are not populated.
  int explicit_profile(std::uint64_t id, std::uint64_t fmt, std::uint32_t count) {
    mrc_ctl_ev_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.ev_mode = MRC_CTL_EV_MODE_EXP;
    attr.ev_fmt_profile_id = fmt;
    attr.ev_count = count;
    attr.ev_min_active = count / 4;
    attr.ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
    return mrc_ctl_modify_ev_profile(context, id, &attr,
                                     MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                                         MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                                         MRC_CTL_EV_PROFILE_MIN_ACTIVE |
                                         MRC_CTL_EV_PROFILE_EVENT_MASK) == 0
               ? 0
               : errno;
  }
  std::vector<mrc_ctl_ev_op_entry> array(std::uint64_t id) {
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
    EXPECT_EQ(mrc_ctl_query_ev_profile(context, id, &attr, MRC_CTL_EV_PROFILE_EV_OP), -1);
    EXPECT_EQ(errno, E2BIG);
    std::vector<mrc_ctl_ev_op_entry> entries(static_cast<std::size_t>(attr.ev_op.entry_count));
    attr.ev_op.entries = entries.data();
    EXPECT_EQ(mrc_ctl_query_ev_profile(context, id, &attr, MRC_CTL_EV_PROFILE_EV_OP), 0);
    return entries;
  }

  static std::string directory;
  ibv_context* verbs = nullptr;
  mrc_context* context = nullptr;
  mrc_ctl_device_attr device{};
  ibv_gid gid{};
};
std::string CtlApi::directory;

TEST_F(CtlApi, AQueryReturnsTheCapabilitiesOfTheDevice) {
  std::uint32_t current = 0, last = 1, vendor = 0, last_vendor = 1;
  mrc_ctl_query_version(&current, &last, &vendor, &last_vendor);
  EXPECT_EQ(current, static_cast<std::uint32_t>(MRC_CTL_API_VER(1, 0, 1)));
  EXPECT_EQ(last, 0u);
  mrc_ctl_query_version(nullptr, nullptr, nullptr, nullptr);
  EXPECT_EQ(device.phy_port_mask, 0b11110u);
  EXPECT_EQ(device.ev.ev_max_profiles, control::kEvProfilesMax);
  EXPECT_EQ(device.ev.ev_mode_mask, 7u);
  EXPECT_STREQ(device.cc.algorithms[0], "uet-1.0-nscc");
  EXPECT_EQ(device.cc.algorithms[1], nullptr);
  EXPECT_NE(device.opt_attr & MRC_CTL_OPT_CAP_EP_OP_EV_PROBE, 0u);
  int supported = 0;
  mrc_ctl_device_attr again{};
  ASSERT_EQ(mrc_ctl_query_device_ex(verbs, nullptr, &again, &supported), 0);
  EXPECT_EQ(supported, 1);
  EXPECT_EQ(again.ev.ev_max_count, device.ev.ev_max_count);
  EXPECT_EQ(mrc_ctl_query_device(nullptr, &again), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_ctl_query_device_ex(verbs, context, nullptr, &supported), -1);
  EXPECT_EQ(mrc_ctl_query_device_ex(verbs, context, &again, nullptr), -1);
}

// From OCP's examples/mrc_ctl_exp_ev.md.
TEST_F(CtlApi, ExplicitEvsOfOcpsExampleWork) {
  ASSERT_EQ(format(13, MRC_CTL_EV_FMT_MODE_STEV, {16, 16}), 0);
  const std::uint32_t count = 192;
  ASSERT_EQ(explicit_profile(1, 13, count), 0);
  EXPECT_EQ(move_ev(1, MRC_CTL_PROFILE_ONLINE), EINVAL);  // its EVs are not populated
  const auto value = [](std::uint32_t i) { return i << 16 | i; };
  for (std::uint32_t i = 0; i < count; ++i) {
    mrc_ctl_ev_op_entry entry{};
    entry.ev = MRC_CTL_EV_UNPOPULATED;
    entry.ev_new = ev(value(i), static_cast<std::uint8_t>(1 + i % 4));
    entry.state = MRC_CTL_EV_GOOD;
    ASSERT_EQ(ev_op(1, MRC_CTL_EV_OP_REPLACE_EV, {entry}), 0) << i;
  }
  ASSERT_EQ(move_ev(1, MRC_CTL_PROFILE_ONLINE), 0);
  std::vector<mrc_ctl_ev_op_entry> entries;
  for (std::uint32_t i = 13; i <= 42; ++i) {
    mrc_ctl_ev_op_entry entry{};
    entry.ev = ev(value(i), static_cast<std::uint8_t>(1 + i % 4));
    entry.state = MRC_CTL_EV_DENIED;
    entries.push_back(entry);
  }
  ASSERT_EQ(ev_op(1, MRC_CTL_EV_OP_MODIFY_EV_STATE, entries), 0);
  for (mrc_ctl_ev_op_entry& entry : entries) {
    entry.ev_new = entry.ev;
    entry.ev_new.val[0] = 1;  // EV number 256 and higher
    entry.ev_new.val[2] = 1;
    entry.state = MRC_CTL_EV_GOOD;
  }
  ASSERT_EQ(ev_op(1, MRC_CTL_EV_OP_REPLACE_EV, entries), 0);
  mrc_ctl_ev_profile_attr attr{};
  ASSERT_EQ(
      mrc_ctl_query_ev_profile(context, 1, &attr,
                               MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                                   MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                                   MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK),
      0);
  EXPECT_EQ(attr.profile_state, MRC_CTL_PROFILE_ONLINE);
  EXPECT_EQ(attr.ev_mode, MRC_CTL_EV_MODE_EXP);
  EXPECT_EQ(attr.ev_fmt_profile_id, 13u);
  EXPECT_EQ(attr.ev_count, count);
  EXPECT_EQ(attr.ev_min_active, count / 4);
  EXPECT_EQ(attr.ev_event_mask, 3);
  const auto all = array(1);
  ASSERT_EQ(all.size(), count);
  EXPECT_EQ(std::memcmp(&all[12].ev, &entries[0].ev, sizeof(mrc_ctl_ev)) != 0, true);
  EXPECT_EQ(std::memcmp(&all[13].ev, &entries[0].ev_new, sizeof(mrc_ctl_ev)), 0);
  mrc_ctl_ev_op_entry one{};
  one.ev = entries[3].ev_new;
  attr = {};
  attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_STATE;
  attr.ev_op.entries = &one;
  attr.ev_op.entry_count = 1;
  ASSERT_EQ(mrc_ctl_query_ev_profile(context, 1, &attr, MRC_CTL_EV_PROFILE_EV_OP), 0);
  EXPECT_EQ(one.state, MRC_CTL_EV_GOOD);
  // Two more modes: SRv6, and SRv6 with an SRH.
  EXPECT_EQ(format(14, MRC_CTL_EV_FMT_MODE_SRV6, {32, 16, 16, 16, 16}), 0);
  EXPECT_EQ(format(15, MRC_CTL_EV_FMT_MODE_SRV6, {32, 16, 16, 16, 16, 16, 16, 32, 16, 16, 16, 16}),
            0);
  mrc_ctl_device_attr after{};
  ASSERT_EQ(mrc_ctl_query_device(verbs, &after), 0);
  EXPECT_EQ(after.ev.ev_free_count, device.ev.ev_free_count - count);
}

// From OCP's examples/mrc_ctl_gen_ev.md.
TEST_F(CtlApi, GeneratedEvsOfOcpsExampleWork) {
  ASSERT_EQ(format(20, MRC_CTL_EV_FMT_MODE_STEV, {8, 4, 4}), 0);
  mrc_ctl_ev_field fields[3] = {
      {.width = 8, .init_val = 0, .min_val = 0, .max_val = 255, .mask = 0xff},
      {.width = 4, .init_val = 0, .min_val = 0, .max_val = 15, .mask = 0xf},
      {.width = 4, .init_val = 0, .min_val = 0, .max_val = 15, .mask = 0xf}};
  std::uint32_t count = 256 * 16 * 16;
  count = std::min(count, device.ev.ev_max_count_profile);
  count -= count % device.ev.ev_count_align;
  mrc_ctl_ev_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = MRC_CTL_EV_MODE_GEN;
  attr.ev_fmt_profile_id = 20;
  attr.ev_count = count;
  attr.ev_min_active = count / 4;
  attr.ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
  attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS;
  attr.ev_fields_op.fields = fields;
  attr.ev_fields_op.field_count = 3;
  const int mask = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
                   MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_MIN_ACTIVE |
                   MRC_CTL_EV_PROFILE_EVENT_MASK | MRC_CTL_EV_PROFILE_EV_FIELDS_OP;
  ASSERT_EQ(mrc_ctl_modify_ev_profile(context, 21, &attr, mask), 0) << std::strerror(errno);
  ASSERT_EQ(move_ev(21, MRC_CTL_PROFILE_ONLINE), 0);
  mrc_ctl_ev_field read[10]{};
  attr = {};
  attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS;
  attr.ev_fields_op.fields = read;
  attr.ev_fields_op.field_count = 2;
  EXPECT_EQ(mrc_ctl_query_ev_profile(context, 21, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP), -1);
  EXPECT_EQ(errno, E2BIG);
  EXPECT_EQ(attr.ev_fields_op.field_count, 3);
  ASSERT_EQ(mrc_ctl_query_ev_profile(context, 21, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP), 0);
  EXPECT_EQ(std::memcmp(read, fields, sizeof fields), 0);
  auto all = array(21);
  ASSERT_EQ(all.size(), count);
  std::vector<mrc_ctl_ev_op_entry> deny;
  for (mrc_ctl_ev_op_entry& entry : all) {
    EXPECT_EQ(entry.state, MRC_CTL_EV_GOOD);
    if (entry.ev.val[0] < 180) continue;
    entry.state = MRC_CTL_EV_DENIED;
    deny.push_back(entry);
  }
  ASSERT_GT(deny.size(), count / 8);
  ASSERT_EQ(ev_op(21, MRC_CTL_EV_OP_MODIFY_EV_STATE, deny), 0);
  for (const mrc_ctl_ev_op_entry& entry : array(21)) {
    EXPECT_EQ(entry.state, entry.ev.val[0] < 180 ? MRC_CTL_EV_GOOD : MRC_CTL_EV_DENIED);
  }
  // Each uSID has one byte for the tier and one generated byte. The index in OCP's example is
  // wrong, because it is used twice.
  ASSERT_EQ(format(22, MRC_CTL_EV_FMT_MODE_SRV6, {32, 16, 16, 16, 16}), 0);
  mrc_ctl_ev_field usids[5] = {
      {.width = 32, .init_val = 0xdeadcafe, .min_val = 0, .max_val = 0, .mask = 0}};
  for (std::uint32_t i = 1; i < 5; ++i) {
    usids[i] = {.width = 16, .init_val = i << 8, .min_val = 0, .max_val = 255, .mask = 0xff};
  }
  attr = {};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = MRC_CTL_EV_MODE_GEN;
  attr.ev_fmt_profile_id = 22;
  attr.ev_count = 64;
  attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS;
  attr.ev_fields_op.fields = usids;
  attr.ev_fields_op.field_count = 5;
  ASSERT_EQ(mrc_ctl_modify_ev_profile(context, 22, &attr, mask), 0) << std::strerror(errno);
  EXPECT_EQ(move_ev(22, MRC_CTL_PROFILE_ONLINE), 0);
}

// From OCP's examples/mrc_ctl_ev_probes.md.
TEST_F(CtlApi, ProbesOfOcpsExampleAreAnswered) {
  mrc_ctl_ep_req requests[2]{};
  mrc_ctl_ep_rsp answers[2]{};
  int count = -1;
  for (std::uint16_t i = 0; i < 2; ++i) {
    requests[i].req_id = static_cast<std::uint16_t>(i + 1);
    requests[i].sgid = requests[i].dgid = gid;
    requests[i].ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
    requests[i].req_ev = ev(0x12345678, static_cast<std::uint8_t>(i + 1));
  }
  const auto probe = [&](std::uint32_t timeout) {
    return mrc_ctl_ep_batch_send_wait(context, 0, MRC_CTL_EP_OP_EV_PROBE, requests, 2, timeout,
                                      answers, &count);
  };
  ASSERT_EQ(probe(4'000'000'000u), 0) << std::strerror(errno);
  ASSERT_EQ(count, 2);
  for (const mrc_ctl_ep_rsp& answer : answers) {
    EXPECT_EQ(answer.port, answer.req_id);
    EXPECT_GT(answer.rtt, 0u);
    EXPECT_EQ(answer.adj_svc_time, 0);
  }
  EXPECT_NE(answers[0].req_id, answers[1].req_id);
  // One of the two hosts does not exist. The answer of the existing host must still be returned.
  requests[1].dgid.raw[15] = 99;
  EXPECT_EQ(probe(50'000'000), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(answers[0].req_id, 1);
  // A port status update to a host that has no QP with us gets no answer.
  EXPECT_EQ(mrc_ctl_ep_batch_send_wait(context, 46, MRC_CTL_EP_OP_PORT_STATUS_UPDATE, requests, 1,
                                       20'000'000, answers, &count),
            -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  // Invalid calls.
  requests[1] = requests[0];
  EXPECT_EQ(probe(1000), -1);  // two requests with the same id
  EXPECT_EQ(errno, EINVAL);
  requests[1].req_id = 2;
  requests[1].req_ev.port = 9;
  EXPECT_EQ(probe(1000), -1);
  EXPECT_EQ(errno, EINVAL);
  requests[1].req_ev.port = 1;
  requests[1].sgid.raw[15] = 7;  // not an address of this host
  EXPECT_EQ(probe(1000), -1);
  EXPECT_EQ(errno, EINVAL);
  const auto wrong = [&](mrc_context* on, mrc_ctl_ep_req* req, int n, mrc_ctl_ep_rsp* rsp,
                         int* got) {
    const int result =
        mrc_ctl_ep_batch_send_wait(on, 0, MRC_CTL_EP_OP_EV_PROBE, req, n, 0, rsp, got);
    return result == -1 ? errno : 0;
  };
  EXPECT_EQ(wrong(nullptr, requests, 1, answers, &count), EINVAL);
  EXPECT_EQ(wrong(context, nullptr, 1, answers, &count), EINVAL);
  EXPECT_EQ(wrong(context, requests, 0, answers, &count), EINVAL);
  EXPECT_EQ(wrong(context, requests, 1, nullptr, &count), EINVAL);
  EXPECT_EQ(wrong(context, requests, 1, answers, nullptr), EINVAL);
  EXPECT_EQ(mrc_ctl_ep_batch_send_wait(context, 0, none_of<mrc_ctl_ep_op_type>(2), requests, 1, 0,
                                       answers, &count),
            -1);
  EXPECT_EQ(errno, ENOTSUP);
}

// From OCP's examples/mrc_ctl_ev_events.md. The events of this process go through the same
// directory as those of another process.
TEST_F(CtlApi, EvEventsOfOcpsExampleArrive) {
  ASSERT_EQ(format(30, MRC_CTL_EV_FMT_MODE_STEV, {16, 16}), 0);
  ASSERT_EQ(explicit_profile(30, 30, 1), 0);
  mrc_ctl_ev_op_entry entry{};
  entry.ev_new = ev(7, 2);
  entry.state = MRC_CTL_EV_GOOD;
  ASSERT_EQ(ev_op(30, MRC_CTL_EV_OP_REPLACE_EV, {entry}), 0);
  ASSERT_EQ(move_ev(30, MRC_CTL_PROFILE_ONLINE), 0);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_event_mask = MRC_CTL_EV_ASSUMED_BAD;
  ASSERT_EQ(mrc_ctl_modify_ev_profile(context, 30, &attr, MRC_CTL_EV_PROFILE_EVENT_MASK), 0);

  mrc_comp_channel* channel = nullptr;
  ASSERT_EQ(mrc_create_comp_channel(context, &channel), 0);
  int marker = 0;
  mrc_cq* const cq = mrc_ctl_create_ev_event_cq(context, 128, &marker, channel, 0);
  ASSERT_NE(cq, nullptr) << std::strerror(errno);
  mrc_ctl_ev_event events[4]{};
  EXPECT_EQ(mrc_ctl_poll_ev_event(cq, 4, events), 0);
  ASSERT_EQ(mrc_req_notify_cq(cq, 0), 0);
  auto state = control::ControllerState::open({.directory = directory, .device = "weft0"});
  ASSERT_TRUE(state);
  control::EvEventSender sender;
  ASSERT_TRUE(sender.refresh(*(*state)->events_directory(control::ControllerState::Make::kNo)));
  ASSERT_EQ(sender.listeners(), 1u);
  const control::EvEvent bad{
      .profile_id = 30, .ev = control::testing::stev(7, 2), .state = control::EvState::kAssumedBad};
  sender.send(bad);
  int fd = -1;
  ASSERT_EQ(mrc_get_comp_channel_fd(channel, &fd), 0);
  pollfd what{.fd = fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&what, 1, 10'000), 1) << "the channel was not told";
  mrc_cq* which = nullptr;
  void* program = nullptr;
  ASSERT_EQ(mrc_get_cq_event(channel, &which, &program), 0);
  EXPECT_EQ(which, cq);
  EXPECT_EQ(program, &marker);
  mrc_ack_cq_events(cq, 1);
  ASSERT_EQ(mrc_ctl_poll_ev_event(cq, 4, events), 1);
  EXPECT_EQ(events[0].profile_id, 30u);
  EXPECT_EQ(std::memcmp(&events[0].ev, &entry.ev_new, sizeof(mrc_ctl_ev)), 0);
  EXPECT_EQ(events[0].state, MRC_CTL_EV_ASSUMED_BAD);
  EXPECT_EQ(events[0].drop_count, 0u);
  EXPECT_EQ(mrc_destroy_comp_channel(channel), EBUSY);
  EXPECT_EQ(mrc_destroy_cq(cq), 0);
  EXPECT_EQ(mrc_destroy_comp_channel(channel), 0);
  // A program compiled for API 1.0.0 has a shorter event struct, without `state`.
  mrc_context_attr old{.mrc_api_version_used = MRC_API_VER(1, 0, 0),
                       .mrc_vendor_api_version_used = 0};
  mrc_context* const before = mrc_create_context(verbs, &old);
  ASSERT_NE(before, nullptr);
  mrc_cq* const plain = mrc_ctl_create_ev_event_cq(before, 1, nullptr, nullptr, 0);
  ASSERT_NE(plain, nullptr);
  ASSERT_TRUE(sender.refresh(*(*state)->events_directory(control::ControllerState::Make::kNo)));
  sender.send(bad);
  sender.send({.profile_id = 29, .ev = bad.ev, .state = control::EvState::kGood});
  alignas(8) std::byte close[2 * 48 + 16];
  std::memset(close, 0xee, sizeof close);
  ASSERT_EQ(mrc_ctl_poll_ev_event(plain, 2, reinterpret_cast<mrc_ctl_ev_event*>(close)), 2);
  std::uint64_t ids[2];
  std::memcpy(&ids[0], close, 8);
  std::memcpy(&ids[1], close + 48, 8);
  EXPECT_EQ(ids[0], 30u);
  EXPECT_EQ(ids[1], 29u);
  EXPECT_EQ(close[96], std::byte{0xee}) << "written behind the end";
  EXPECT_EQ(mrc_destroy_cq(plain), 0);
  EXPECT_EQ(mrc_destroy_context(before), 0);
  // Invalid calls.
  EXPECT_EQ(mrc_ctl_create_ev_event_cq(nullptr, 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_ctl_create_ev_event_cq(context, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(mrc_ctl_create_ev_event_cq(context, 1, nullptr, nullptr, 9), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_ctl_poll_ev_event(nullptr, 1, events), -EINVAL);
  mrc_cq* const data = mrc_create_cq(context, 1, nullptr, nullptr, 0);
  EXPECT_EQ(mrc_ctl_poll_ev_event(data, 1, events), -EINVAL);
  EXPECT_EQ(mrc_destroy_cq(data), 0);
}

TEST_F(CtlApi, CcProfilesAreConfiguredAndQueried) {
  mrc_ctl_cc_nscc_cfg config{};
  config.gamma = 0.75f;
  config.max_cwnd = 1'000'000;
  config.qa_gate = 3;
  mrc_ctl_cc_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.algorithm = "uet-1.0-nscc";
  attr.cc_config = &config;
  const auto modify = [&](int mask) {
    return mrc_ctl_modify_cc_profile(context, 5, &attr, mask) == 0 ? 0 : errno;
  };
  const int all =
      MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG;
  attr.algorithm = "cubic";
  EXPECT_EQ(modify(all), EINVAL);
  attr.algorithm = "uet-1.0-nscc";
  EXPECT_EQ(modify(all | 1 << 9), EINVAL);
  ASSERT_EQ(modify(all), 0);
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  ASSERT_EQ(modify(MRC_CTL_CC_PROFILE_STATE), 0);
  mrc_ctl_cc_nscc_cfg mine{};
  mrc_ctl_cc_profile_attr read{};
  read.cc_config = &mine;
  ASSERT_EQ(mrc_ctl_query_cc_profile(context, 5, &read, all), 0);
  EXPECT_EQ(read.profile_state, MRC_CTL_PROFILE_ONLINE);
  EXPECT_STREQ(read.algorithm, "uet-1.0-nscc");
  EXPECT_EQ(mine.gamma, 0.75f);
  EXPECT_EQ(mine.max_cwnd, 1'000'000u);
  read = {};
  ASSERT_EQ(mrc_ctl_query_cc_profile(context, 5, &read, MRC_CTL_CC_PROFILE_CONFIG), 0);
  ASSERT_NE(read.cc_config, nullptr);
  EXPECT_EQ(static_cast<const mrc_ctl_cc_nscc_cfg*>(read.cc_config)->qa_gate, 3);
  // A profile without congestion control.
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.algorithm = nullptr;
  ASSERT_EQ(mrc_ctl_modify_cc_profile(context, 6, &attr,
                                      MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM),
            0);
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  ASSERT_EQ(mrc_ctl_modify_cc_profile(context, 6, &attr, MRC_CTL_CC_PROFILE_STATE), 0);
  ASSERT_EQ(mrc_ctl_query_cc_profile(context, 6, &read, MRC_CTL_CC_PROFILE_ALGORITHM), 0);
  EXPECT_EQ(read.algorithm, nullptr);
  EXPECT_EQ(mrc_ctl_modify_cc_profile(nullptr, 5, &attr, 0), -1);
  EXPECT_EQ(mrc_ctl_modify_cc_profile(context, 5, nullptr, 0), -1);
  EXPECT_EQ(mrc_ctl_query_cc_profile(context, control::kCcProfilesMax, &read, 0), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(CtlApi, ADisabledPortReadsDownInVerbs) {
  const auto state_of = [&](std::uint8_t port) {
    ibv_port_attr attr{};
    EXPECT_EQ(ibv_query_port(verbs, port, &attr), 0);
    return attr.state;
  };
  mrc_ctl_port_attr attr{};
  ASSERT_EQ(mrc_ctl_query_port(context, 2, &attr, MRC_CTL_PORT_ADMIN_STATE), 0);
  EXPECT_EQ(attr.port_admin_state, MRC_CTL_PORT_ADMIN_ENABLED);
  EXPECT_EQ(state_of(2), IBV_PORT_ACTIVE);
  attr.port_admin_state = MRC_CTL_PORT_ADMIN_DISABLED;
  ASSERT_EQ(mrc_ctl_modify_port(context, 2, &attr, MRC_CTL_PORT_ADMIN_STATE), 0);
  EXPECT_EQ(state_of(2), IBV_PORT_DOWN);
  EXPECT_EQ(state_of(1), IBV_PORT_ACTIVE);
  // A probe over the disabled port must get no answer.
  mrc_ctl_ep_req request{};
  request.req_id = 1;
  request.sgid = request.dgid = gid;
  request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
  request.req_ev = ev(1, 2);
  mrc_ctl_ep_rsp answer{};
  int count = 0;
  EXPECT_EQ(mrc_ctl_ep_batch_send_wait(context, 0, MRC_CTL_EP_OP_EV_PROBE, &request, 1, 50'000'000,
                                       &answer, &count),
            -1);
  attr.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
  ASSERT_EQ(mrc_ctl_modify_port(context, 2, &attr, MRC_CTL_PORT_ADMIN_STATE), 0);
  EXPECT_EQ(state_of(2), IBV_PORT_ACTIVE);
  EXPECT_EQ(mrc_ctl_ep_batch_send_wait(context, 0, MRC_CTL_EP_OP_EV_PROBE, &request, 1,
                                       4'000'000'000u, &answer, &count),
            0);
  for (const std::uint8_t port : std::initializer_list<std::uint8_t>{0, 5, 255}) {
    EXPECT_EQ(mrc_ctl_query_port(context, port, &attr, MRC_CTL_PORT_ADMIN_STATE), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(mrc_ctl_modify_port(context, port, &attr, MRC_CTL_PORT_ADMIN_STATE), -1);
  }
  EXPECT_EQ(mrc_ctl_query_port(nullptr, 1, &attr, 1), -1);
  EXPECT_EQ(mrc_ctl_modify_port(context, 1, nullptr, 1), -1);
  EXPECT_EQ(mrc_ctl_modify_port(context, 1, &attr, 2), -1);
  attr.port_admin_state = none_of<mrc_ctl_port_admin_state>(2);
  EXPECT_EQ(mrc_ctl_modify_port(context, 1, &attr, 1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(CtlApi, WrongCallsOnProfilesAreRefusedAndChangeNothing) {
  mrc_ctl_ev_fmt_profile_attr fmt{};
  const auto set_fmt = [&](std::uint64_t id, int mask) {
    return mrc_ctl_modify_ev_fmt_profile(context, id, &fmt, mask) == 0 ? 0 : errno;
  };
  EXPECT_EQ(mrc_ctl_modify_ev_fmt_profile(nullptr, 0, &fmt, 0), -1);
  EXPECT_EQ(mrc_ctl_modify_ev_fmt_profile(context, 0, nullptr, 0), -1);
  EXPECT_EQ(set_fmt(device.ev.ev_max_fmt_profiles, MRC_CTL_EV_FMT_PROFILE_MODE), EINVAL);
  EXPECT_EQ(set_fmt(40, 1 << 12), EINVAL);
  fmt.ev_fmt_op.fmt_field_count = -1;
  EXPECT_EQ(set_fmt(40, MRC_CTL_EV_FMT_PROFILE_OP), EINVAL);
  fmt.ev_fmt_op.fmt_field_count = 1;
  EXPECT_EQ(set_fmt(40, MRC_CTL_EV_FMT_PROFILE_OP), EINVAL);  // the array is missing
  fmt.profile_state = none_of<mrc_ctl_profile_state>(3);
  EXPECT_EQ(set_fmt(40, MRC_CTL_EV_FMT_PROFILE_STATE), EINVAL);
  fmt.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
  EXPECT_EQ(mrc_ctl_query_ev_fmt_profile(context, 40, &fmt, MRC_CTL_EV_FMT_PROFILE_OP), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_ctl_query_ev_fmt_profile(context, 999, &fmt, 0), -1);
  ASSERT_EQ(mrc_ctl_query_ev_fmt_profile(context, 40, &fmt, MRC_CTL_EV_FMT_PROFILE_STATE), 0);
  EXPECT_EQ(fmt.profile_state, MRC_CTL_PROFILE_INIT);  // the refused calls changed nothing
  // A query fails if the array is too short for the fields.
  ASSERT_EQ(format(41, MRC_CTL_EV_FMT_MODE_SRV6, {32, 16, 16}), 0);
  EXPECT_EQ(format(42, MRC_CTL_EV_FMT_MODE_UDP, {9, 8}), E2BIG);
  mrc_ctl_ev_fmt_field widths[3]{};
  fmt = {};
  fmt.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
  fmt.ev_fmt_op.fmt_fields = widths;
  fmt.ev_fmt_op.fmt_field_count = 1;
  EXPECT_EQ(mrc_ctl_query_ev_fmt_profile(context, 41, &fmt, MRC_CTL_EV_FMT_PROFILE_OP), -1);
  EXPECT_EQ(errno, E2BIG);
  EXPECT_EQ(fmt.ev_fmt_op.fmt_field_count, 3);
  ASSERT_EQ(mrc_ctl_query_ev_fmt_profile(context, 41, &fmt, MRC_CTL_EV_FMT_PROFILE_OP), 0);
  EXPECT_EQ(widths[0].width, 32);
  EXPECT_EQ(widths[2].width, 16);

  mrc_ctl_ev_profile_attr attr{};
  const auto set = [&](std::uint64_t id, int mask) {
    return mrc_ctl_modify_ev_profile(context, id, &attr, mask) == 0 ? 0 : errno;
  };
  EXPECT_EQ(mrc_ctl_modify_ev_profile(nullptr, 0, &attr, 0), -1);
  EXPECT_EQ(mrc_ctl_modify_ev_profile(context, 0, nullptr, 0), -1);
  EXPECT_EQ(set(device.ev.ev_max_profiles, MRC_CTL_EV_PROFILE_MODE), EINVAL);
  EXPECT_EQ(set(43, 1 << 12), EINVAL);
  EXPECT_EQ(set(43, MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP), EINVAL);
  attr.ev_op.op = none_of<mrc_ctl_ev_op>(4);
  EXPECT_EQ(set(43, MRC_CTL_EV_PROFILE_EV_OP), EINVAL);
  attr.ev_op.op = MRC_CTL_EV_OP_REPLACE_EV;
  attr.ev_op.entry_count = 1;
  EXPECT_EQ(set(43, MRC_CTL_EV_PROFILE_EV_OP), EINVAL);  // the array is missing
  EXPECT_EQ(mrc_ctl_query_ev_profile(context, 43, &attr, MRC_CTL_EV_PROFILE_EV_OP), -1);
  EXPECT_EQ(errno, EINVAL);  // a query cannot have REPLACE_EV
  EXPECT_EQ(mrc_ctl_query_ev_profile(context, 999, &attr, 0), -1);
  ASSERT_EQ(explicit_profile(43, 41, 2), 0);
  mrc_ctl_ev_op_entry entry{};
  entry.ev = ev(5, 1);
  EXPECT_EQ(ev_op(43, MRC_CTL_EV_OP_MODIFY_EV_STATE, {entry}), EINVAL);  // the new state is missing
  entry.state = MRC_CTL_EV_DENIED;
  EXPECT_EQ(ev_op(43, MRC_CTL_EV_OP_MODIFY_EV_STATE, {entry}), ENOENT);
  entry.flags = 2;
  EXPECT_EQ(ev_op(43, MRC_CTL_EV_OP_MODIFY_EV_STATE, {entry}), EINVAL);
  attr = {};
  attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_STATE;
  attr.ev_op.entries = &entry;
  attr.ev_op.entry_count = 1;
  EXPECT_EQ(mrc_ctl_query_ev_profile(context, 43, &attr, MRC_CTL_EV_PROFILE_EV_OP), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(CtlApi, AQpKeepsItsProfilesOnline) {
  ASSERT_EQ(format(50, MRC_CTL_EV_FMT_MODE_STEV, {16, 16}), 0);
  ASSERT_EQ(explicit_profile(50, 50, 4), 0);
  std::vector<mrc_ctl_ev_op_entry> entries(4);
  for (std::uint8_t i = 0; i < 4; ++i) {
    entries[i].ev_new = ev(i, static_cast<std::uint8_t>(i + 1));
    entries[i].state = MRC_CTL_EV_GOOD;
  }
  ASSERT_EQ(ev_op(50, MRC_CTL_EV_OP_REPLACE_EV, entries), 0);
  ibv_pd* const pd = ibv_alloc_pd(verbs);
  mrc_cq* const cq = mrc_create_cq(context, 16, nullptr, nullptr, 0);
  mrc_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.pd = pd;
  init.cap.max_send_wr = init.cap.max_recv_wr = 4;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  mrc_qp* const qp = mrc_create_qp(context, &init);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  mrc_qp_attr mrc{};
  mrc.profile.ev_profile_id = 50;
  const auto to_init = [&] {
    return mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, &mrc,
                         MRC_QP_EV_PROFILE_ID);
  };
  EXPECT_NE(to_init(), 0);  // the EV profile is OFFLINE
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(move_ev(50, MRC_CTL_PROFILE_ONLINE), 0);
  ASSERT_EQ(to_init(), 0) << std::strerror(errno);
  EXPECT_EQ(move_ev(50, MRC_CTL_PROFILE_OFFLINE), EBUSY);
  mrc_ctl_ev_fmt_profile_attr fmt{};
  fmt.profile_state = MRC_CTL_PROFILE_OFFLINE;
  EXPECT_EQ(mrc_ctl_modify_ev_fmt_profile(context, 50, &fmt, MRC_CTL_EV_FMT_PROFILE_STATE), -1);
  EXPECT_EQ(errno, EBUSY);
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE, nullptr, 0), 0);
  EXPECT_EQ(move_ev(50, MRC_CTL_PROFILE_OFFLINE), 0);  // no QP uses the profile any longer
  EXPECT_EQ(mrc_destroy_qp(qp), 0);
  EXPECT_EQ(mrc_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

}  // namespace
}  // namespace weft::device
