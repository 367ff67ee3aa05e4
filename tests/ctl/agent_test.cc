// CtlAgent, which applies a controller's settings to an endpoint: denied EVs, disabled ports,
// events.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "control/ctl_agent.h"
#include "control/ctl_test_changes.h"
#include "engine/process_config.h"
#include "transport/test_pair.h"

namespace weft::control {
namespace {

using testing::stev;
using transport::test::Fate;
using transport::test::Pair;

class CtlAgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/weft-agent-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    controller_ = open();
    Pair::Options options = Pair::defaults();
    options.endpoint.ev_news_max = 64;
    options.qp.ev_active = 128;
    evs_ = transport::test::make_evs({.ports = 2, .per_port = 8});
    pair_ = std::make_unique<Pair>(options);
    agent_ = std::make_unique<CtlAgent>(open(), evs_, engine::plane_congestion());
  }
  void TearDown() override {
    profiles_.reset();  // the profile stays in use by the agent
    agent_.reset();
    controller_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::unique_ptr<ControllerState> open() {
    auto state = ControllerState::open(
        {.directory = directory_, .device = "weft0", .shape = {.port_mask = 0b110}});
    EXPECT_TRUE(state);
    return std::move(state).value();
  }
  // EV profile 1 has EVs 1 to 4, on ports 1 and 2 in turn.
  void make_profile() {
    ASSERT_TRUE(controller_->modify_format(13, testing::format_change({16, 16})));
    ASSERT_TRUE(controller_->modify_format(13, {.state = ProfileState::kOnline}));
    EvChange change = testing::ev_change(fabric::EvMode::kExplicit, 4);
    EvOps& ops = change.ops.emplace();
    for (std::uint32_t i = 1; i <= 4; ++i) {
      ops.entries.push_back({.ev_new = stev(i, static_cast<std::uint8_t>(1 + i % 2)), .state = 1});
    }
    ASSERT_TRUE(controller_->modify_ev(1, change));
    ASSERT_TRUE(controller_->modify_ev(1, {.state = ProfileState::kOnline}));
  }
  // Makes a QP at end 0 that uses the profile, connected to a QP at end 1 without a profile.
  void connect() {
    const auto profiles = agent_->find({.ev = 1, .cc = 0});
    ASSERT_TRUE(profiles) << profiles.error().message;
    profiles_ = *profiles;
    qps_ = pair_->create();
    transport::QpConfig config = Pair::defaults().qp;
    config.ev_active = 128;
    config.evs = evs_;
    config.ev_min_active = profiles_->min_active;
    ASSERT_TRUE(pair_->end(0).configure_qp(qps_.qpn[0], config));
    for (int i = 0; i < 2; ++i) pair_->connect_one(qps_, i);
    agent_->set_qp(pair_->now, pair_->end(0), qps_.qpn[0], profiles_);
    agent_->service(pair_->now, pair_->end(0));
  }
  // Opens an event queue and lets the agent find it.
  auto listen() {
    auto queue =
        EvEventQueue::open(controller_->events_directory(ControllerState::Make::kYes).value());
    EXPECT_TRUE(controller_->touch());
    return queue;
  }
  // Sends data from end 0 and returns the EVs of its packets.
  std::set<std::uint32_t> used() {
    std::set<std::uint32_t> out;
    const auto before = pair_->fate;
    pair_->fate = [&](int from, const world::Datagram& d) {
      if (from == 0 && d.payload.size > 0) out.insert(d.entropy);
      return before ? before(from, d) : Fate::kDeliver;
    };
    EXPECT_TRUE(pair_->write(0, qps_.qpn[0], {.size = 100'000}));
    pair_->run_for(Duration::ms(1));
    EXPECT_EQ(pair_->completions(0).size(), 1u);
    pair_->fate = before;
    return out;
  }
  std::set<std::uint32_t> values(std::initializer_list<std::uint32_t> entries) const {
    std::set<std::uint32_t> out;
    for (const std::uint32_t i : entries) out.insert(evs_[profiles_->map.of_entry[i]].value);
    return out;
  }

  std::string directory_;
  std::unique_ptr<ControllerState> controller_;
  std::vector<fabric::Ev> evs_;
  std::unique_ptr<Pair> pair_;
  std::unique_ptr<CtlAgent> agent_;
  std::shared_ptr<const CtlAgent::Profiles> profiles_;
  Pair::Qps qps_{};
};

TEST_F(CtlAgentTest, AQpUsesTheEvsOfItsProfileUntilTheyAreDenied) {
  make_profile();
  connect();
  EXPECT_EQ(profiles_->min_active, 1u);
  EXPECT_EQ(used(), values({0, 1, 2, 3}));
  ASSERT_TRUE(controller_->modify_ev(
      1, {.ops = EvOps{.op = EvOp::kModifyState, .entries = {{.ev = stev(2, 1), .state = 4}}}}));
  EXPECT_EQ(used(), values({0, 1, 2, 3}));  // the agent has not read the change yet
  agent_->service(pair_->now, pair_->end(0));
  EXPECT_EQ(used(), values({0, 2, 3}));
  ASSERT_TRUE(controller_->modify_ev(
      1, {.ops = EvOps{.op = EvOp::kModifyState, .entries = {{.ev = stev(2, 1), .state = 1}}}}));
  agent_->service(pair_->now, pair_->end(0));
  EXPECT_EQ(used(), values({0, 1, 2, 3}));
  EXPECT_EQ(controller_->modify_ev(1, {.state = ProfileState::kOffline}).error().code, EBUSY);
}

TEST_F(CtlAgentTest, AnEvDeniedFromTheStartIsNeverUsed) {
  make_profile();
  ASSERT_TRUE(controller_->modify_ev(
      1, {.ops = EvOps{.op = EvOp::kModifyState, .entries = {{.ev = stev(1, 2), .state = 4}}}}));
  connect();
  EXPECT_EQ(used(), values({1, 2, 3}));
}

TEST_F(CtlAgentTest, ADisabledPortCarriesNoPackets) {
  make_profile();
  connect();
  ASSERT_TRUE(controller_->modify_port({.port = 2, .enabled = false}));
  EXPECT_TRUE(agent_->service(pair_->now, pair_->end(0)));
  EXPECT_EQ(agent_->ports_disabled(), 0b10u);
  EXPECT_EQ(used(), values({1, 3}));
  ASSERT_TRUE(controller_->modify_port({.port = 2, .enabled = true}));
  EXPECT_TRUE(agent_->service(pair_->now, pair_->end(0)));
  EXPECT_FALSE(agent_->service(pair_->now, pair_->end(0)));
  EXPECT_EQ(used(), values({0, 1, 2, 3}));
}

// The QPs stay connected: they stop using the replaced EVs and begin to use the new ones.
TEST_F(CtlAgentTest, ReplacedEvsReachRunningQps) {
  make_profile();
  connect();
  const std::set<std::uint32_t> before = used();
  EXPECT_EQ(before, values({0, 1, 2, 3}));
  EvOps ops{.op = EvOp::kReplace, .entries = {}};
  ops.entries.push_back({.ev = stev(1, 2), .ev_new = stev(9, 1), .state = 1});
  ops.entries.push_back({.ev = stev(3, 2), .ev_new = stev(10, 1), .state = 4});
  ASSERT_TRUE(controller_->modify_ev(1, {.ops = ops}));
  agent_->service(pair_->now, pair_->end(0));
  const std::set<std::uint32_t> after = used();
  EXPECT_EQ(after.size(), 3u);  // one of the four EVs is denied
  const auto port_of = [&](std::uint32_t value) {
    return std::find_if(evs_.begin(), evs_.end(),
                        [&](const fabric::Ev& ev) { return ev.value == value; })
        ->port;
  };
  for (const std::uint32_t value : after) EXPECT_EQ(port_of(value), 0) << value;
}

TEST_F(CtlAgentTest, ANewCongestionControlProfileReachesRunningQps) {
  make_profile();
  connect();
  EXPECT_TRUE(pair_->write(0, qps_.qpn[0], {.size = 100'000}));
  pair_->run_for(Duration::ms(1));
  EXPECT_EQ(pair_->completions(0).size(), 1u);
  const auto window = [&] { return pair_->end(0).view(qps_.qpn[0]).cwnd_bytes; };
  EXPECT_GT(window(), 20'000);
  ASSERT_TRUE(controller_->modify_cc(
      0, {.state = ProfileState::kOffline, .algorithm = CcAlgorithm::kNscc}));
  ASSERT_TRUE(controller_->modify_cc(
      0, {.state = ProfileState::kOnline, .nscc = NsccSettings{.cwnd_bytes_max = 20'000}}));
  agent_->service(pair_->now, pair_->end(0));
  EXPECT_LE(window(), 20'000);
  ASSERT_TRUE(controller_->modify_cc(0, {.nscc = NsccSettings{.cwnd_bytes_max = 12'000}}));
  agent_->service(pair_->now, pair_->end(0));
  EXPECT_LE(window(), 12'000);
  EXPECT_FALSE(used().empty());
}

TEST_F(CtlAgentTest, EvThatBecomesBadAndGoodAgainGivesTwoEvents) {
  make_profile();
  auto queue = listen();
  ASSERT_TRUE(queue);
  connect();
  const std::uint32_t victim = evs_[profiles_->map.of_entry[2]].value;
  pair_->fate = [&](int from, const world::Datagram& d) {
    return from == 0 && d.entropy == victim ? Fate::kDrop : Fate::kDeliver;
  };
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(pair_->write(0, qps_.qpn[0], {.size = 100'000}));
  pair_->run_for(Duration::ms(2));
  agent_->service(pair_->now, pair_->end(0));
  EvEvent events[4];
  ASSERT_EQ((*queue)->poll(events), 1u);
  EXPECT_EQ(events[0], (EvEvent{.profile_id = 1, .ev = stev(3, 2), .state = EvState::kAssumedBad}));
  // observed() has the states that QPs found, in every process. snapshot() has only the states that
  // the controller set.
  const auto states = [&](const CtlModel& model) {
    std::vector<EvState> out;
    for (const EvEntry& entry : model.evs[1].evs) out.push_back(entry.state);
    return out;
  };
  constexpr EvState kGood = EvState::kGood, kBad = EvState::kAssumedBad;
  EXPECT_EQ(states(**controller_->snapshot_with_bad_evs()),
            (std::vector{kGood, kGood, kBad, kGood}));
  EXPECT_EQ(states(**controller_->snapshot()), (std::vector{kGood, kGood, kGood, kGood}));
  pair_->fate = nullptr;
  pair_->run_for(Duration::ms(20));
  agent_->service(pair_->now, pair_->end(0));
  ASSERT_EQ((*queue)->poll(events), 1u);
  EXPECT_EQ(events[0], (EvEvent{.profile_id = 1, .ev = stev(3, 2), .state = EvState::kGood}));
  EXPECT_EQ(agent_->counters().events, 2u);
  EXPECT_EQ(states(**controller_->snapshot_with_bad_evs()),
            (std::vector{kGood, kGood, kGood, kGood}));
  // A state that is not in the event mask gives no event.
  ASSERT_TRUE(controller_->modify_ev(1, {.event_mask = 1}));
  agent_->service(pair_->now, pair_->end(0));
  pair_->fate = [&](int from, const world::Datagram& d) {
    return from == 0 && d.entropy == victim ? Fate::kDrop : Fate::kDeliver;
  };
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(pair_->write(0, qps_.qpn[0], {.size = 100'000}));
  pair_->run_for(Duration::ms(2));
  agent_->service(pair_->now, pair_->end(0));
  EXPECT_EQ((*queue)->poll(events), 0u);
  EXPECT_EQ(states(**controller_->snapshot_with_bad_evs()),
            (std::vector{kGood, kGood, kBad, kGood}));
  // When a QP is destroyed, EVs that only this QP found bad become good.
  agent_->remove_qp(qps_.qpn[0]);
  ASSERT_EQ((*queue)->poll(events), 1u);
  EXPECT_EQ(events[0].state, EvState::kGood);
  EXPECT_EQ(states(**controller_->snapshot_with_bad_evs()),
            (std::vector{kGood, kGood, kGood, kGood}));
}

// Denying an EV does not mean that a QP found the EV bad.
TEST_F(CtlAgentTest, DenyingAnEvGivesNoEvent) {
  make_profile();
  auto queue = listen();
  ASSERT_TRUE(queue);
  connect();
  ASSERT_TRUE(controller_->modify_ev(
      1, {.ops = EvOps{.op = EvOp::kModifyState, .entries = {{.ev = stev(2, 1), .state = 4}}}}));
  agent_->service(pair_->now, pair_->end(0));
  agent_->service(pair_->now, pair_->end(0));
  EvEvent events[4];
  EXPECT_EQ((*queue)->poll(events), 0u);
  EXPECT_EQ((*controller_->snapshot_with_bad_evs())->evs[1].evs[1].state, EvState::kDenied);
}

}  // namespace
}  // namespace weft::control
