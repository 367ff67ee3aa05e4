// A plane of a real network dies silently: two namespaces are joined by two links, and the receiver
// drops every packet of one link. The test checks the events that a controller gets, and the EV
// states that its queries return.
#include <mrc/mrc_ctl.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "mrc_end.h"
#include "other_process.h"
#include "two_hosts.h"

namespace weft::mrc_test {
namespace {

constexpr std::uint32_t kEvs = 64;  // in each plane
constexpr std::uint64_t kFormat = 20, kProfile = 20;

mrc_ctl_ev ev_of(std::uint32_t index) {
  mrc_ctl_ev ev{};
  ev.val[0] = static_cast<std::uint8_t>(1 + index / 256);
  ev.val[1] = static_cast<std::uint8_t>(index);
  ev.port = index < kEvs ? 1 : 2;
  return ev;
}

void make_profile(mrc_context* context) {
  mrc_ctl_ev_fmt_field width{16};
  mrc_ctl_ev_fmt_profile_attr format{};
  format.profile_state = MRC_CTL_PROFILE_OFFLINE;
  format.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
  format.ev_fmt_op = {
      .op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS, .fmt_fields = &width, .fmt_field_count = 1};
  ASSERT_EQ(
      mrc_ctl_modify_ev_fmt_profile(
          context, kFormat, &format,
          MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP),
      0);
  format.profile_state = MRC_CTL_PROFILE_ONLINE;
  ASSERT_EQ(mrc_ctl_modify_ev_fmt_profile(context, kFormat, &format, MRC_CTL_EV_FMT_PROFILE_STATE),
            0);
  mrc_ctl_ev_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = MRC_CTL_EV_MODE_EXP;
  attr.ev_fmt_profile_id = kFormat;
  attr.ev_count = 2 * kEvs;
  attr.ev_min_active = 4;
  attr.ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
  ASSERT_EQ(
      mrc_ctl_modify_ev_profile(context, kProfile, &attr,
                                MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                                    MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                                    MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK),
      0);
  std::vector<mrc_ctl_ev_op_entry> entries(2 * kEvs);
  for (std::uint32_t i = 0; i < 2 * kEvs; ++i) {
    entries[i].ev_new = ev_of(i);
    entries[i].state = MRC_CTL_EV_GOOD;
  }
  attr = {};
  attr.ev_op = {.op = MRC_CTL_EV_OP_REPLACE_EV,
                .entries = entries.data(),
                .entry_count = static_cast<int>(entries.size())};
  ASSERT_EQ(mrc_ctl_modify_ev_profile(context, kProfile, &attr, MRC_CTL_EV_PROFILE_EV_OP), 0);
  attr = {};
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  ASSERT_EQ(mrc_ctl_modify_ev_profile(context, kProfile, &attr, MRC_CTL_EV_PROFILE_STATE), 0);
}

// The sending process, which is also the controller.
class Sender {
 public:
  explicit Sender(const Line& line) : end_(host_, {.bytes = 256 << 10}) {
    make_profile(host_.context);
    promptly_ = mrc_ctl_create_ev_event_cq(host_.context, 256, nullptr, nullptr, 0);
    late_ = mrc_ctl_create_ev_event_cq(host_.context, 256, nullptr, nullptr, 0);
    EXPECT_TRUE(promptly_ != nullptr && late_ != nullptr);
    line.send(end_.wire());
    peer_ = line.receive<Wire>();
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    mrc_qp_attr mrc{};
    mrc.profile.ev_profile_id = kProfile;
    EXPECT_EQ(mrc_modify_qp(end_.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, &mrc,
                            MRC_QP_EV_PROFILE_ID),
              0);
    EXPECT_EQ(end_.to_rtr(peer_), 0);
    EXPECT_EQ(end_.to_rts(), 0);
    traffic_ = std::thread([this] { send_all(); });
  }
  ~Sender() {
    stop_ = true;
    traffic_.join();
    EXPECT_EQ(mrc_destroy_cq(promptly_), 0);
    EXPECT_EQ(mrc_destroy_cq(late_), 0);
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Reads events until exactly the EVs of port 2 are bad; or, with bad == false, until no EV is
  // bad.
  void wait_until_bad(bool bad) {
    const auto until = Clock::now() + kWaitMax;
    while (bad_.size() != (bad ? kEvs : 0)) {
      take_promptly();
      if (Clock::now() > until) {
        ADD_FAILURE() << bad_.size() << " EVs are known to be bad; " << (bad ? "died" : "healed");
        return;
      }
    }
  }
  // The EVs that a query of the profile reports as bad.
  std::set<std::uint32_t> bad_when_asked() {
    std::vector<mrc_ctl_ev_op_entry> entries(2 * kEvs);
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY,
                  .entries = entries.data(),
                  .entry_count = static_cast<int>(entries.size())};
    EXPECT_EQ(mrc_ctl_query_ev_profile(host_.context, kProfile, &attr, MRC_CTL_EV_PROFILE_EV_OP),
              0);
    std::set<std::uint32_t> out;
    for (std::uint32_t i = 0; i < 2 * kEvs; ++i) {
      if (entries[i].state == MRC_CTL_EV_ASSUMED_BAD) out.insert(i);
    }
    return out;
  }
  const std::set<std::uint32_t>& bad() const { return bad_; }
  std::uint64_t told() const { return told_; }
  // Results for the event queue that is read late: events read, and events reported as lost.
  struct Late {
    std::uint64_t came = 0, lost = 0;
  };
  Late read_late() {
    Late out;
    mrc_ctl_ev_event events[64];
    int count = 0;
    while ((count = mrc_ctl_poll_ev_event(late_, 64, events)) > 0) {
      for (int i = 0; i < count; ++i) {
        ++out.came;
        out.lost += events[i].drop_count;
      }
    }
    EXPECT_EQ(count, 0);
    return out;
  }

 private:
  void send_all() {
    int under_way = 0;
    while (!stop_ || under_way > 0) {
      if (!stop_ && under_way < 8 && end_.post(peer_, {.size = 128 << 10}) == 0) ++under_way;
      ibv_wc wc{};
      if (mrc_poll_cq(end_.send_cq, 1, &wc) != 1) continue;
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      --under_way;
    }
  }
  void take_promptly() {
    mrc_ctl_ev_event events[64];
    const int count = mrc_ctl_poll_ev_event(promptly_, 64, events);
    EXPECT_GE(count, 0);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(events[i].profile_id, kProfile);
      EXPECT_EQ(events[i].drop_count, 0u);
      ++told_;
      const std::uint32_t index = (events[i].ev.val[0] - 1u) * 256 + events[i].ev.val[1];
      EXPECT_EQ(events[i].ev.port, index < kEvs ? 1 : 2);
      if (events[i].state == MRC_CTL_EV_ASSUMED_BAD) {
        bad_.insert(index);
      } else {
        EXPECT_EQ(events[i].state, MRC_CTL_EV_GOOD);
        bad_.erase(index);
      }
    }
  }

  Host host_;
  End end_;
  Wire peer_;
  mrc_cq *promptly_ = nullptr, *late_ = nullptr;
  std::thread traffic_;
  std::atomic<bool> stop_{false};
  std::set<std::uint32_t> bad_;
  std::uint64_t told_ = 0;
};

TEST(Plane, ADeadAndARepairedPlaneAreReportedWithAnExactEventCount) {
  WEFT_NEEDS_FRESH_PROCESS();
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const TwoHosts hosts("wp" + std::to_string(getpid() % 100'000));
  if (!hosts.made()) GTEST_SKIP() << "no network namespaces or no nft here";
  // at least 3,328 events; the kernel holds at most 2,730 for each event queue
  constexpr int kDeaths = 26;
  std::string pattern = "/tmp/weft-plane-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::unique_ptr<std::string, void (*)(std::string*)> cleared(
      &pattern, [](std::string* path) { std::filesystem::remove_all(*path); });
  OtherProcess sender([&](const Line& line) {
    setenv("WEFT_STATE_DIR", (pattern + "/a").c_str(), 1);
    setenv("WEFT_EVS", std::to_string(kEvs).c_str(), 1);
    hosts.enter(1);
    Sender self(line);
    for (int death = 0; death < kDeaths; ++death) {
      line.send(1);
      line.receive<int>();  // wait until the plane is dead
      self.wait_until_bad(true);
      for (const std::uint32_t index : self.bad()) EXPECT_GE(index, kEvs);
      EXPECT_EQ(self.bad_when_asked(), self.bad());
      line.send(1);
      line.receive<int>();  // wait until the plane is repaired
      self.wait_until_bad(false);
      EXPECT_TRUE(self.bad_when_asked().empty());
      // This queue was not read, so events were lost. The next events must report how many.
      if (death == kDeaths - 2) {
        const auto late = self.read_late();
        EXPECT_LT(late.came, self.told());
        line.send(late.came);
        line.send(late.lost);
      }
    }
    const auto late = self.read_late();
    line.send(late.came);
    line.send(late.lost);
    line.send(self.told());
  });
  OtherProcess receiver([&](const Line& line) {
    setenv("WEFT_STATE_DIR", (pattern + "/b").c_str(), 1);
    setenv("WEFT_EVS", std::to_string(kEvs).c_str(), 1);
    hosts.enter(2);
    Host host;
    End end(host, {.bytes = 256 << 10});
    line.send(end.wire());
    end.connect(line.receive<Wire>());
    line.send(1);
    line.receive<int>();
  });
  const Wire of_sender = sender.line().receive<Wire>(),
             of_receiver = receiver.line().receive<Wire>();
  receiver.line().send(of_sender);
  receiver.line().receive<int>();
  sender.line().send(of_receiver);
  std::uint64_t came = 0, lost = 0;
  for (int death = 0; death < kDeaths; ++death) {
    sender.line().receive<int>();
    hosts.kill_plane();
    sender.line().send(1);
    sender.line().receive<int>();
    hosts.heal_plane();
    sender.line().send(1);
    if (death != kDeaths - 2) continue;
    came += sender.line().receive<std::uint64_t>();
    lost += sender.line().receive<std::uint64_t>();
  }
  came += sender.line().receive<std::uint64_t>();
  lost += sender.line().receive<std::uint64_t>();
  const auto told = sender.line().receive<std::uint64_t>();
  EXPECT_GE(told, std::uint64_t{2} * kDeaths * kEvs);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(came + lost, told);
  EXPECT_EQ(sender.join(), 0);
  receiver.line().send(1);
  EXPECT_EQ(receiver.join(), 0);
}

}  // namespace
}  // namespace weft::mrc_test
