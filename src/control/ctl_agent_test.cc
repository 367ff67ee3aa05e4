// How a controller's profiles change a device's own EVs and NSCC configuration.
#include "control/ctl_agent.h"

#include <gtest/gtest.h>

namespace weft::control {
namespace {

using View = ControllerState::EvView;

std::vector<fabric::Ev> device_evs() {
  return {{.value = 100, .port = 0},
          {.value = 200, .port = 1},
          {.value = 101, .port = 0},
          {.value = 201, .port = 1}};
}

View view_of(std::vector<fabric::Ev> paths) {
  View view;
  view.mode = fabric::EvMode::kExplicit;
  for (const fabric::Ev& path : paths) {
    View::Entry entry;
    entry.path = path;
    entry.ev = {.value = fabric::ev_bytes(path.value),
                .port = static_cast<std::uint8_t>(path.port + 1)};
    view.entries.push_back(entry);
  }
  return view;
}

TEST(CtlPaths, AutomaticProfileNamesAllEvsOfTheDevice) {
  const PathMap map = map_paths(View(), device_evs());
  EXPECT_EQ(map.named, std::vector<bool>(4, true));
  EXPECT_TRUE(map.of_entry.empty());
}

TEST(CtlPaths, EntriesTakeTheEvsOfTheirPortRoundRobinAndCopiesShareOne) {
  const PathMap map = map_paths(view_of({{.value = 7, .port = 1},
                                         {.value = 8, .port = 1},
                                         {.value = 7, .port = 1},  // a copy of the first entry
                                         {.value = 9, .port = 1},  // the port has only two EVs
                                         {.value = 7, .port = 0},
                                         {.value = 7, .port = 5}}),  // the device has no such port
                                device_evs());
  EXPECT_EQ(map.named, (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(map.of_entry, (std::vector<std::uint32_t>{1, 3, 1, 1, 0, PathMap::kNoPath}));
}

TEST(CtlCcProfile, OnlyFieldsThatAreSetReplaceTheDevicesConfiguration) {
  transport::NsccConfig config;
  config.base_rtt = Duration::us(100);
  config.cwnd_bytes_initial = 256u << 10;
  const transport::NsccConfig before = config;
  apply_cc({.nscc = {}}, config);
  EXPECT_EQ(config, before);
  apply_cc({.nscc = {.disable_qa = true,
                     .adjust_bytes = 5,
                     .adjust_period_ns = 6,
                     .base_rtt_ns = 12'000,
                     .eta = 614,
                     .fi = 20'480,
                     .fi_scale = 0.25f,
                     .gamma = 0.5f,
                     .max_md_jump = 0.125f,
                     .cwnd_bytes_max = 100'000,
                     .qa_gate = 4,
                     .qa_threshold_ns = 7,
                     .target_delay_ns = 9000}},
           config);
  EXPECT_TRUE(config.enabled);
  EXPECT_FALSE(config.quick_adapt);
  EXPECT_EQ(config.base_rtt, Duration::us(12));
  EXPECT_EQ(config.target_delay, Duration::us(9));
  EXPECT_EQ(config.qa_threshold, Duration::ns(7));
  EXPECT_EQ(config.qa_gate, 4u);
  EXPECT_EQ(config.cwnd_bytes_max, 100'000u);
  EXPECT_EQ(config.cwnd_bytes_initial, 100'000u);
  EXPECT_EQ(config.fair_increase_bytes, 20'480u);
  EXPECT_EQ(config.eta_bytes, 614u);
  EXPECT_EQ(config.fast_increase_q10, 256u);
  EXPECT_EQ(config.gamma_q10, 512u);
  EXPECT_EQ(config.jump_min_q10, 128u);
  EXPECT_EQ(config.adjust_bytes, 5u);
  EXPECT_EQ(config.adjust_period, Duration::ns(6));
  apply_cc({.algorithm = CcAlgorithm::kNone}, config);
  EXPECT_FALSE(config.enabled);
}

}  // namespace
}  // namespace weft::control
