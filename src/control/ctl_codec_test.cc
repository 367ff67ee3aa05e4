#include "control/ctl_codec.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "control/ctl_profiles.h"
#include "control/ctl_test_changes.h"

namespace weft::control {
namespace {

CtlModel sample() {
  CtlModel model;
  model.generation = 7;
  model.seed = 0x1234'5678'9abc'def0;
  model.ports_disabled = 0b100;
  bool changed = false;
  const EvContext context{.device = {.port_mask = 0b11110}};
  EXPECT_TRUE(modify_format(model, 13, testing::format_change({16, 16})));
  EXPECT_TRUE(modify_format(model, 13, {.state = ProfileState::kOnline}));
  EXPECT_TRUE(modify_ev_profile(model, 1, testing::ev_change(fabric::EvMode::kExplicit, 3), context,
                                changed));
  EXPECT_TRUE(modify_ev_profile(
      model, 1,
      {.ops =
           EvOps{.op = EvOp::kReplace, .entries = {{.ev_new = testing::stev(5, 1), .state = 4}}}},
      context, changed));
  EXPECT_TRUE(modify_cc_profile(model, 2,
                                {.state = ProfileState::kOffline,
                                 .algorithm = CcAlgorithm::kNscc,
                                 .nscc = NsccSettings{.eta = 1.5f, .gamma = 0.75f, .qa_gate = 2},
                                 .vendor = VendorConfig{std::byte{1}}},
                                {}));
  return model;
}

TEST(CtlCodec, ModelThatIsWrittenIsReadBackUnchanged) {
  for (const CtlModel& model : {CtlModel(), sample()}) {
    const auto bytes = to_bytes(model);
    const auto back = ctl_model_from(bytes);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, model);
    EXPECT_EQ(to_bytes(*back), bytes);
  }
}

TEST(CtlCodec, EveryFlippedBitAndEveryTruncationIsRefused) {
  auto bytes = to_bytes(sample());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(ctl_model_from(bytes)) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ctl_model_from(ConstBytes(bytes).first(size))) << size;
  }
}

// The checksum of each changed body is correct, so the parser itself must find what is wrong.
TEST(CtlCodec, ChangedBodyIsEitherRefusedOrAValidModel) {
  const auto bytes = to_bytes(sample());
  const std::vector<std::byte> body(bytes.begin() + kCtlFileHeaderBytes, bytes.end());
  Prng prng(5);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto mutated = body;
    for (std::uint32_t n = prng.below(3) + 1; n > 0; --n) {
      mutated[prng.below(static_cast<std::uint32_t>(mutated.size()))] =
          static_cast<std::byte>(prng.below(256));
    }
    const auto model = ctl_model_from(with_ctl_header(mutated));
    if (!model) {
      ++refused;
      EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
      continue;
    }
    EXPECT_TRUE(check_model(*model));
    EXPECT_EQ(to_bytes(*model), with_ctl_header(mutated));
  }
  EXPECT_GT(refused, 1000);
}

TEST(CtlCodec, ModelWithAllEvsInUseFitsTheFile) {
  CtlModel model;
  ASSERT_TRUE(modify_format(
      model, 13,
      {.state = ProfileState::kOffline, .mode = 2, .widths = std::vector<std::uint32_t>(8, 32)}));
  bool changed = false;
  for (std::uint32_t id = 0; id < kEvsMax / kEvsPerProfileMax; ++id) {
    ASSERT_TRUE(modify_ev_profile(model, id,
                                  testing::ev_change(fabric::EvMode::kExplicit, kEvsPerProfileMax),
                                  {.device = {.port_mask = 0b10}}, changed));
    for (EvEntry& entry : model.evs[id].evs) {
      entry.ev.value.fill(std::byte{0xff});
      entry.ev.port = 1;
    }
  }
  const auto bytes = to_bytes(model);
  EXPECT_LE(bytes.size(), kCtlFileBytesMax);
  ASSERT_TRUE(ctl_model_from(bytes));
}

}  // namespace
}  // namespace weft::control
